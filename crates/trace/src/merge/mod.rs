//! Several traces as one: one time line, one space of ids, one table of locations.
//!
//! - `info`: [`TraceInfo::merged`], what the traces say together, or why they cannot be
//!   merged.
//! - `locations`: one code for each list of locations, whatever the trace.
//! - `member`: a trace of the merge while it is read, with its next event.
//! - here: [`MergedTraces`], a heap of the traces by the time of their next event.
//!
//! A trace is opened when its start is reached and dropped after its last event. At
//! most [`MOST_OPEN`] are open at once: if more run at the same time, the one that is
//! needed last is dropped, and is read again from its beginning when its turn comes.
//! So memory depends on what happens at the same time, not on the number of traces.
//!
//! Domains keep their numbers: domain 0 of a merge is domain 0 of every trace.

mod info;
mod locations;
mod member;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::ops::Range;

use crate::model::{Event, EventSource, LocationTable, Losses, ReadError, TraceInfo};

pub use info::Mismatch;
pub(crate) use locations::MergedLocations;
use member::Member;

/// The most traces that are open at once. A reader of the memtrace format takes up to
/// 400 KiB for each domain.
const MOST_OPEN: usize = 64;

/// What must be known of a trace before it is merged with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceExtent {
    /// When it starts, in microseconds since the epoch.
    pub start_time: u64,
    /// Every id in it is below this.
    pub ids: u64,
    /// It goes on from the trace before it in the list: a block has the same id in both, and the end
    /// of that trace means nothing.
    pub continues: bool,
}

/// Opens the trace with this index from its beginning, in the order of time. It must
/// have the same events each time, and a code must not change its locations.
pub type OpenTrace<'a> = dyn FnMut(usize) -> Result<Box<dyn EventSource>, ReadError> + 'a;

/// Why a merge failed.
#[derive(Debug)]
pub enum MergeError {
    /// The ids of all traces up to this one do not fit 64 bits.
    Ids {
        /// Its index.
        trace: usize,
    },
    /// A trace could not be read.
    Read {
        /// Its index.
        trace: usize,
        /// Why.
        error: ReadError,
    },
    /// A trace has another event or id than before: it changes while it is read.
    Changed {
        /// Its index.
        trace: usize,
    },
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::Ids { trace } => write!(f, "trace {trace}: its ids are too large"),
            MergeError::Read { trace, error } => write!(f, "trace {trace}: {error}"),
            MergeError::Changed { trace } => write!(f, "trace {trace}: changed meanwhile"),
        }
    }
}

impl std::error::Error for MergeError {}

/// The next part of a merge.
pub enum MergedItem<'a> {
    /// An event, with the locations that are known so far, and the rate at which the last allocation
    /// of its trace was sampled.
    Event(Event<'a>, &'a LocationTable, f64),
    /// A trace ended before the next event.
    End {
        /// Its index.
        trace: usize,
        /// The ids that its blocks have in the merge.
        ids: Range<u64>,
    },
}

/// What comes next.
enum Step {
    /// The event that a trace is at. `continues`: the allocation before it was of the
    /// same trace.
    Event {
        trace: usize,
        continues: bool,
    },
    End {
        trace: usize,
        ids: Range<u64>,
    },
    Done,
}

/// A trace of the merge.
enum State {
    /// Not open. So many of its events have been returned.
    Closed {
        returned: u64,
    },
    Open(Box<Member>),
    Ended,
}

struct Trace {
    ids: Range<u64>,
    /// Another one continues it.
    is_continued: bool,
    state: State,
}

/// Reads several traces in the order of time.
pub struct MergedTraces<'a> {
    open: Box<OpenTrace<'a>>,
    traces: Vec<Trace>,
    /// The traces that have not ended, by the time of their next event or their start.
    /// The one used last is not in it.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// Its index, and the time of the event that was returned.
    last_used: Option<(usize, u64)>,
    /// The traces that have ended, by the time of their last event. What they have left
    /// counts until something happens later.
    ending: VecDeque<(u64, usize)>,
    open_count: usize,
    most_open: usize,
    locations: MergedLocations,
    /// The trace of the last allocation, whose stack its next one may continue.
    last_allocating: Option<usize>,
    info: TraceInfo,
    losses: Losses,
}

impl<'a> MergedTraces<'a> {
    /// Merges traces of these extents. `info` describes them together.
    pub fn new(
        info: TraceInfo,
        extents: &[TraceExtent],
        open: Box<OpenTrace<'a>>,
    ) -> Result<Self, MergeError> {
        MergedTraces::bounded(info, extents, open, MOST_OPEN)
    }

    fn bounded(
        info: TraceInfo,
        extents: &[TraceExtent],
        open: Box<OpenTrace<'a>>,
        most_open: usize,
    ) -> Result<Self, MergeError> {
        let mut traces = Vec::with_capacity(extents.len());
        let mut first = 0_u64;
        for group in extents.chunk_by(|_, next| next.continues) {
            let (trace, ids) = (traces.len(), group.iter().map(|extent| extent.ids).max());
            let end = first.checked_add(ids.unwrap_or(0)).ok_or(MergeError::Ids { trace })?;
            for number in 1..=group.len() {
                traces.push(Trace {
                    ids: first..end,
                    is_continued: number < group.len(),
                    state: State::Closed { returned: 0 },
                });
            }
            first = end;
        }
        let starts = extents.iter().map(|extent| extent.start_time).zip(0..);
        Ok(MergedTraces {
            open,
            traces,
            next: starts.map(Reverse).collect(),
            last_used: None,
            ending: VecDeque::new(),
            open_count: 0,
            most_open,
            locations: MergedLocations::default(),
            last_allocating: None,
            info,
            losses: Losses::default(),
        })
    }

    /// The next event, or the end of a trace; `None` at the end of the merge.
    pub fn next_item(&mut self) -> Result<Option<MergedItem<'_>>, MergeError> {
        Ok(match self.step()? {
            Step::Event { trace, continues } => {
                let rate = self.rate(trace);
                self.event(trace, continues)
                    .map(|event| MergedItem::Event(event, self.locations.table(), rate))
            }
            Step::End { trace, ids } => Some(MergedItem::End { trace, ids }),
            Step::Done => None,
        })
    }

    /// Finds what comes next.
    fn step(&mut self) -> Result<Step, MergeError> {
        if let Some((trace, time)) = self.last_used.take()
            && !self.advance(trace)?
            && self.traces.get(trace).is_some_and(|trace| !trace.is_continued)
        {
            self.ending.push_back((time, trace));
        }
        while let Some(&Reverse((time, trace))) = self.next.peek() {
            if let Some(end) = self.end_before(time) {
                return Ok(end);
            }
            self.next.pop();
            match self.traces.get(trace).map(|trace| &trace.state) {
                Some(State::Open(member)) => {
                    let continues = self.last_allocating == Some(trace);
                    if member.allocates() {
                        self.last_allocating = Some(trace);
                    }
                    self.last_used = Some((trace, time));
                    return Ok(Step::Event { trace, continues });
                }
                Some(&State::Closed { returned }) => self.open_trace(trace, returned)?,
                Some(State::Ended) | None => {}
            }
        }
        Ok(Step::Done)
    }

    /// The end of a trace whose last event was before `time`.
    fn end_before(&mut self, time: u64) -> Option<Step> {
        let &(last, trace) = self.ending.front()?;
        if last >= time {
            return None;
        }
        self.ending.pop_front();
        let Trace { ids, .. } = self.traces.get(trace)?;
        Some(Step::End { trace, ids: ids.clone() })
    }

    /// Opens a trace at its next event, and queues it.
    fn open_trace(&mut self, trace: usize, returned: u64) -> Result<(), MergeError> {
        if self.open_count >= self.most_open {
            self.close_one();
        }
        let failed = |error| MergeError::Read { trace, error };
        let source = (self.open)(trace).map_err(failed)?;
        let member = Member::new(source, returned).map_err(failed)?;
        let member = member.ok_or(MergeError::Changed { trace })?;
        let Some(slot) = self.traces.get_mut(trace) else { return Ok(()) };
        slot.state = State::Open(Box::new(member));
        self.open_count += 1;
        // A trace without events has nothing that could end.
        self.advance(trace)?;
        Ok(())
    }

    /// Closes the open trace whose next event is the latest. All open traces are queued.
    fn close_one(&mut self) {
        let open = self.traces.iter_mut().filter_map(|trace| match &trace.state {
            State::Open(member) => Some((member.time(), member.returned(), &mut trace.state)),
            State::Closed { .. } | State::Ended => None,
        });
        if let Some((_, returned, state)) = open.max_by_key(|&(time, ..)| time) {
            *state = State::Closed { returned };
            self.open_count -= 1;
        }
    }

    /// Reads a trace's next event and queues it; false, and the trace is dropped, if it
    /// has none.
    fn advance(&mut self, trace: usize) -> Result<bool, MergeError> {
        let Some(Trace { ids, state, .. }) = self.traces.get_mut(trace) else { return Ok(false) };
        let State::Open(member) = state else { return Ok(false) };
        let failed = |error| MergeError::Read { trace, error };
        if member.advance(&mut self.locations).map_err(failed)? {
            if member.next_id().is_some_and(|id| id >= ids.end - ids.start) {
                return Err(MergeError::Changed { trace });
            }
            self.next.push(Reverse((member.time(), trace)));
            return Ok(true);
        }
        *state = State::Ended;
        self.open_count -= 1;
        Ok(false)
    }

    /// The rate at which the last allocation of a trace was sampled.
    fn rate(&self, trace: usize) -> f64 {
        match self.traces.get(trace).map(|trace| &trace.state) {
            Some(State::Open(member)) => member.rate(),
            _ => self.info.sample_rate,
        }
    }

    /// The event that a trace is at.
    fn event(&self, trace: usize, continues: bool) -> Option<Event<'_>> {
        let Trace { ids, state, .. } = self.traces.get(trace)?;
        let State::Open(member) = state else { return None };
        Some(member.event(ids.start, continues))
    }
}

impl EventSource for MergedTraces<'_> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn locations(&self) -> &LocationTable {
        self.locations.table()
    }

    /// Nothing: the losses are those of each trace.
    fn losses(&self) -> &Losses {
        &self.losses
    }

    fn next_located(&mut self) -> Result<Option<(Event<'_>, &LocationTable)>, ReadError> {
        loop {
            match self.step().map_err(std::io::Error::other)? {
                Step::Event { trace, continues } => {
                    let event = self.event(trace, continues);
                    return Ok(event.map(|event| (event, self.locations.table())));
                }
                Step::End { .. } => {}
                Step::Done => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests;
