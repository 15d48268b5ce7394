//! What the reader keeps for each domain.

use std::collections::HashMap;

use crate::memtrace::decode::names::RecentNames;
use crate::memtrace::decode::stack::Stack;
use crate::model::LocationTable;

/// One domain's decoding state.
pub(crate) struct Domain {
    pub(crate) number: u16,
    pub(crate) names: RecentNames,
    pub(crate) stack: Stack,
    pub(crate) depth: CodedDepth,
    /// Time of the last event, or of the trace's start.
    pub(crate) last_time: u64,
    /// The id after the last known allocation.
    pub(crate) next_id: u64,
    /// Allocations were lost: the next packet's ids may leave some out.
    pub(crate) gap_expected: bool,
    /// The value of the reader's `losses_of_all` that was applied to this domain.
    pub(crate) losses_seen: u64,
    /// The number of allocations that the packets skipped since the last good one
    /// claim to contain. The ids of the next good one replace this estimate.
    pub(crate) left_out: u64,
}

/// The depth of the last backtrace according to the file. The next common prefix
/// is checked against it.
#[derive(Clone, Copy)]
pub(crate) struct CodedDepth {
    pub(crate) frames: u64,
    /// The depth may be larger: the writer ran out of room, or packets are lost.
    pub(crate) open: bool,
}

impl Domain {
    fn new(number: u16, start_time: u64) -> Self {
        Domain {
            number,
            names: RecentNames::new(),
            stack: Stack::new(),
            depth: CodedDepth { frames: 0, open: false },
            last_time: start_time,
            next_id: 0,
            gap_expected: false,
            losses_seen: 0,
            left_out: 0,
        }
    }

    /// Forgets what a lost packet may have changed.
    pub(crate) fn lose(&mut self, lost: Lost, table: &mut LocationTable) {
        if lost != Lost::Names {
            self.stack.lose();
            self.depth = CodedDepth { frames: 0, open: true };
            self.gap_expected = true;
        }
        if lost != Lost::Stack {
            self.names.lose(table);
        }
    }
}

/// What is unknown after a lost packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The recent names of a domain.
    Names,
    /// Its backtrace cache and last backtrace.
    Stack,
    /// Both.
    Everything,
}

/// The domains seen so far, most often one.
pub(crate) struct Domains {
    /// The domain of the current packet, separate from the others so that events
    /// need no lookup. Before the first packet it has no number yet.
    pub(crate) current: Domain,
    others: HashMap<u16, Domain>,
    /// Domain numbers in the order of their appearance.
    numbers: Vec<u16>,
    limit: usize,
    start_time: u64,
}

impl Domains {
    pub(crate) fn new(limit: usize, start_time: u64) -> Self {
        let current = Domain::new(0, start_time);
        Domains { current, others: HashMap::new(), numbers: Vec::new(), limit, start_time }
    }

    /// Makes a domain, new or not, the current one; false if there are too many.
    pub(crate) fn select(&mut self, number: u16) -> bool {
        if self.numbers.is_empty() && self.limit > 0 {
            self.current.number = number;
            self.numbers.push(number);
        }
        if self.current.number == number && !self.numbers.is_empty() {
            return true;
        }
        let next = match self.others.remove(&number) {
            Some(known) => known,
            None if self.numbers.len() >= self.limit => return false,
            None => {
                self.numbers.push(number);
                Domain::new(number, self.start_time)
            }
        };
        let last = std::mem::replace(&mut self.current, next);
        self.others.insert(last.number, last);
        true
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Domain> {
        std::iter::once(&mut self.current).chain(self.others.values_mut())
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u16> + '_ {
        self.numbers.iter().copied()
    }
}
