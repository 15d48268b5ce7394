//! The seam between formats and their users: where events come from, and where
//! they go.
//!
//! A reader of a format implements [`TraceReader`], which is an [`EventSource`] that knows its
//! file; [`LiveSource`] if it can read a trace that is still being written; a writer
//! [`EventSink`]. The functions of `formats` return them for a file of any format, so that
//! reports, live views and copies know none. What the traced program itself writes goes through
//! [`LiveSink`](crate::LiveSink), which is for one format at a time, known when it is compiled.

use std::ops::ControlFlow;

use crate::model::damage::{Losses, ReadError};
use crate::model::event::{Block, End, Event, Frames};
use crate::model::format::TraceFormat;
use crate::model::head::Completion;
use crate::model::info::TraceInfo;
use crate::model::locate::Locate;
use crate::model::table::LocationTable;
use crate::model::totals::TraceTotals;
use crate::model::write_error::WriteError;

/// A trace that is read event by event.
pub trait EventSource {
    /// What the trace says about itself.
    fn info(&self) -> &TraceInfo;

    /// The names and locations read so far. They cover every event returned so
    /// far.
    fn locations(&self) -> &LocationTable;

    /// What was wrong so far, and is missing from the events.
    fn losses(&self) -> &Losses;

    /// The rate at which the block of the last allocation was sampled. It is that of the trace,
    /// unless the block comes from another part of a series.
    fn sampled_at(&self) -> f64 {
        self.info().sample_rate
    }

    /// The next event with the locations read so far; `None` at the end.
    fn next_located(&mut self) -> Result<Option<(Event<'_>, &LocationTable)>, ReadError>;

    /// Passes the events to `take` until it breaks or the trace ends.
    ///
    /// One call of a trait object reads many events: each would take some 90 instructions
    /// more through [`EventSource::next_located`] (callgrind, `heaptap report`).
    fn for_each(
        &mut self,
        take: &mut dyn FnMut(&Event<'_>, &LocationTable) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ReadError> {
        while let Some((event, table)) = self.next_located()? {
            if take(&event, table).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Where a reader is, besides its event: what a copy has to know.
pub struct Place<'a> {
    /// The names and locations read so far.
    pub locations: &'a LocationTable,
    /// What was wrong so far.
    pub losses: &'a Losses,
    /// The id of the domain's next allocation, from this event on, where the format states it ahead
    /// of that allocation.
    pub next_id: Option<u64>,
}

/// The trace in one file, read in the order of the file.
pub trait TraceReader: EventSource {
    /// [`EventSource::for_each`] for a copy of the trace.
    fn for_each_place(
        &mut self,
        take: &mut dyn FnMut(&Event<'_>, &Place<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ReadError>;

    /// Its format.
    fn format(&self) -> TraceFormat;

    /// Counts of what was read so far.
    fn totals(&self) -> &TraceTotals;

    /// Microseconds from the trace's start to the moment until which what was read so far
    /// covers its program, with or without events.
    fn covered(&self) -> u64;

    /// The domains that appeared so far, in that order.
    fn domains(&self) -> Vec<u16>;

    /// The number of bytes of the file that were processed.
    fn offset(&self) -> u64;
}

/// Why a live source returned no further event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    /// The caller broke off. There may be more events.
    BrokenOff,
    /// Everything that is written so far was returned.
    NothingYet,
    /// Everything was returned, and nothing more will be written.
    Ended,
}

/// A trace that is read while it grows.
pub trait LiveSource {
    /// Passes the events that are written so far to `take`, until it breaks off.
    fn poll(
        &mut self,
        take: &mut dyn FnMut(&Event<'_>, &LocationTable) -> ControlFlow<()>,
    ) -> Result<Polled, ReadError>;

    /// Reads what the trace says about itself; false if that is not written yet.
    fn begin(&mut self) -> Result<bool, ReadError>;

    /// Nothing more will be written, because the writer finished or died. `completion` is
    /// what the head of the file says now; `None` if that cannot be read again. The next
    /// [`LiveSource::poll`] returns the rest, and counts what is not whole as a loss.
    fn stop(&mut self, completion: Option<Completion>);

    /// The reader, once the trace has begun. Its names and locations cover every event
    /// returned so far.
    fn reader(&self) -> Option<&dyn TraceReader>;
}

/// A trace that is written event by event.
///
/// A rejected event leaves the trace as it was.
pub trait EventSink {
    /// What remains when the trace is complete, for instance the file.
    type Output;

    /// Writes an allocation and returns the block's id.
    fn alloc(
        &mut self,
        domain: u16,
        time: u64,
        block: Block,
        frames: Frames<'_>,
        locate: &mut dyn Locate,
    ) -> Result<u64, WriteError>;

    /// Writes the promotion or collection of a block.
    fn end(
        &mut self,
        end: End,
        domain: u16,
        time: u64,
        id: u64,
        locate: &mut dyn Locate,
    ) -> Result<(), WriteError>;

    /// The id that the domain's next allocation will get; `None` if the domain
    /// has no event yet.
    fn next_id(&self, domain: u16) -> Option<u64>;

    /// Numbers the domain's next allocations from `first` on. The domain begins
    /// at `time` if it is new.
    fn renumber(&mut self, domain: u16, time: u64, first: u64) -> Result<(), WriteError>;

    /// Has the trace cover its program until this time, where the format can say so: after its
    /// last event.
    fn cover(&mut self, _time: u64, _locate: &mut dyn Locate) -> Result<(), WriteError> {
        Ok(())
    }

    /// Completes the trace.
    fn finish(self: Box<Self>, locate: &mut dyn Locate) -> Result<Self::Output, WriteError>;
}
