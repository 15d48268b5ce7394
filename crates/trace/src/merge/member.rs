//! A trace of a merge while it is read, with a copy of its next event.

use std::collections::HashMap;

use heaptap_codec::seeded::Seeded;

use crate::merge::locations::MergedLocations;
use crate::model::event::Event;
use crate::model::{Allocation, Backtrace, Block, Code, EventKind, EventSource, ReadError};

/// The kind of an event, without its backtrace.
#[derive(Clone, Copy)]
enum NextKind {
    Alloc { id: u64, block: Block },
    Promote(u64),
    Collect(u64),
}

/// An open trace.
pub(super) struct Member {
    source: Box<dyn EventSource>,
    /// The events before the next one.
    returned: u64,
    /// The next event: its time and domain, and what happens.
    time: u64,
    domain: u16,
    kind: NextKind,
    /// The rate at which the last allocation was sampled.
    rate: f64,
    /// Whether the next event has been read.
    has_next: bool,
    /// The codes of the merge for codes of the trace.
    codes: HashMap<Code, Code, Seeded>,
    /// The last stack, in codes of the trace and in codes of the merge.
    stack: Vec<Code>,
    merged_stack: Vec<Code>,
    /// The domain of the last stack, and how much of it the stack before has, too.
    stack_domain: Option<u16>,
    common: usize,
}

impl Member {
    /// A trace at its beginning; `returned` events are passed over. `None` if it has
    /// fewer.
    pub(super) fn new(
        mut source: Box<dyn EventSource>,
        returned: u64,
    ) -> Result<Option<Member>, ReadError> {
        for _ in 0..returned {
            if source.next_located()?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(Member {
            rate: source.sampled_at(),
            source,
            returned,
            time: 0,
            domain: 0,
            kind: NextKind::Collect(0),
            has_next: false,
            codes: HashMap::default(),
            stack: Vec::new(),
            merged_stack: Vec::new(),
            stack_domain: None,
            common: 0,
        }))
    }

    /// Reads the next event; false if there is none.
    pub(super) fn advance(&mut self, locations: &mut MergedLocations) -> Result<bool, ReadError> {
        self.returned += u64::from(self.has_next);
        let Some((event, table)) = self.source.next_located()? else {
            self.has_next = false;
            return Ok(false);
        };
        self.has_next = true;
        (self.time, self.domain) = (event.time, event.domain);
        self.kind = match event.kind {
            EventKind::Alloc(allocation) => {
                let frames = allocation.backtrace.frames;
                let stated = allocation.backtrace.common_prefix;
                let common = common_prefix(&self.stack, frames, stated);
                self.stack.truncate(common);
                self.merged_stack.truncate(common);
                for &code in frames.get(common..).unwrap_or(&[]) {
                    let merged = match self.codes.get(&code) {
                        Some(&merged) => merged,
                        None => {
                            let merged = locations.code(code, table);
                            self.codes.insert(code, merged);
                            merged
                        }
                    };
                    self.stack.push(code);
                    self.merged_stack.push(merged);
                }
                let same_domain = self.stack_domain.replace(event.domain) == Some(event.domain);
                self.common = if same_domain { common } else { 0 };
                NextKind::Alloc { id: allocation.id, block: allocation.block() }
            }
            EventKind::Promote(id) => NextKind::Promote(id),
            EventKind::Collect(id) => NextKind::Collect(id),
        };
        self.rate = self.source.sampled_at();
        Ok(true)
    }

    /// The rate at which the last allocation was sampled, up to the next event.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// The time of the next event.
    pub(super) fn time(&self) -> u64 {
        self.time
    }

    /// The number of events before the next one.
    pub(super) fn returned(&self) -> u64 {
        self.returned
    }

    /// Whether the next event is an allocation.
    pub(super) fn allocates(&self) -> bool {
        matches!(self.kind, NextKind::Alloc { .. })
    }

    /// The id that the next event is about.
    pub(super) fn next_id(&self) -> Option<u64> {
        match self.kind {
            NextKind::Alloc { id, .. } | NextKind::Promote(id) | NextKind::Collect(id) => Some(id),
        }
    }

    /// The next event in terms of the merge, where ids of this trace begin at `first_id`.
    /// `continues`: the last allocation of the merge was of this trace.
    pub(super) fn event(&self, first_id: u64, continues: bool) -> Event<'_> {
        let kind = match self.kind {
            NextKind::Alloc { id, block: Block { length, samples, source } } => {
                let frames = self.merged_stack.as_slice();
                let common = if continues { self.common } else { 0 };
                let new = frames.get(common..).unwrap_or(&[]);
                let backtrace = Backtrace { frames, common_prefix: common as u64, new };
                EventKind::Alloc(Allocation {
                    id: first_id + id,
                    length,
                    samples,
                    source,
                    backtrace,
                })
            }
            NextKind::Promote(id) => EventKind::Promote(first_id + id),
            NextKind::Collect(id) => EventKind::Collect(first_id + id),
        };
        Event { time: self.time, domain: self.domain, kind }
    }
}

/// The number of leading frames that two stacks share. The prefix that the file states
/// may be of another domain's stack, or wrong because part of the file was lost.
fn common_prefix(last: &[Code], frames: &[Code], stated: u64) -> usize {
    let stated = usize::try_from(stated).unwrap_or(usize::MAX).min(last.len()).min(frames.len());
    if last.get(..stated) == frames.get(..stated) {
        return stated;
    }
    last.iter().zip(frames).take_while(|(last, frame)| last == frame).count()
}
