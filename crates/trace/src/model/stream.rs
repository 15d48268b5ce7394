//! The seam between formats and their users: where events come from, and where
//! they go.
//!
//! A reader of a format implements [`EventSource`], a writer [`EventSink`].
//! Reports and copies are written against these traits, and [`crate::open()`] returns
//! a source for a file of any format, so a second format needs no change in them.

use std::ops::ControlFlow;

use crate::model::damage::{Losses, ReadError};
use crate::model::event::{Block, Event, Frames};
use crate::model::info::TraceInfo;
use crate::model::locate::Locate;
use crate::model::table::LocationTable;

/// A trace that is read event by event.
pub trait EventSource {
    /// What the trace says about itself.
    fn info(&self) -> &TraceInfo;

    /// The names and locations read so far. They cover every event returned so
    /// far.
    fn locations(&self) -> &LocationTable;

    /// What was wrong so far, and is missing from the events.
    fn losses(&self) -> &Losses;

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

    /// The id that the current domain's next allocation will have, where the
    /// format states it ahead of that allocation.
    fn next_id(&self) -> Option<u64> {
        None
    }
}

/// A trace that is written event by event.
///
/// A rejected event leaves the trace as it was.
pub trait EventSink {
    /// Why an event was not written.
    type Error: std::error::Error;

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
    ) -> Result<u64, Self::Error>;

    /// Writes the promotion of a block.
    fn promote(
        &mut self,
        domain: u16,
        time: u64,
        id: u64,
        locate: &mut dyn Locate,
    ) -> Result<(), Self::Error>;

    /// Writes the collection of a block.
    fn collect(
        &mut self,
        domain: u16,
        time: u64,
        id: u64,
        locate: &mut dyn Locate,
    ) -> Result<(), Self::Error>;

    /// The id that the domain's next allocation will get; `None` if the domain
    /// has no event yet.
    fn next_id(&self, domain: u16) -> Option<u64>;

    /// Numbers the domain's next allocations from `first` on. The domain begins
    /// at `time` if it is new.
    fn renumber(&mut self, domain: u16, time: u64, first: u64) -> Result<(), Self::Error>;

    /// Has the trace cover its program until this time, where the format can say so: after its
    /// last event.
    fn cover(&mut self, _time: u64, _locate: &mut dyn Locate) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Completes the trace.
    fn finish(self, locate: &mut dyn Locate) -> Result<Self::Output, Self::Error>
    where
        Self: Sized;
}
