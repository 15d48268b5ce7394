//! Tailing a trace of any format while it is written.
//!
//! A [`Tail`] never waits: whoever calls it decides when to try again, whether the file was
//! replaced, and when nothing more will be written.

use std::io::Read;
use std::ops::ControlFlow;

use crate::formats::tail;
use crate::input::{Input as _, Stream};
use crate::model::{
    Completion, Event, EventSource, Limits, LiveSource, LocationTable, Mode, Polled, ReadError,
    TraceInfo, TraceReader,
};
use crate::recognise::FileKind;

/// Reads a trace while it grows.
pub struct Tail<'a, R> {
    state: TailState<'a, R>,
    mode: Mode,
    limits: Limits,
}

enum TailState<'a, R> {
    /// Its format is not known yet.
    Opening(Stream<R>),
    Open(Box<dyn LiveSource + 'a>),
    /// Its first bytes could not be read.
    Failed,
}

impl<'a, R: Read + 'a> Tail<'a, R> {
    /// Tails a source that begins with the trace's first byte, which need not be there
    /// yet. A read of 0 bytes, or one that would block, means that there is nothing yet.
    pub fn new(source: R, mode: Mode, limits: Limits) -> Self {
        Tail { state: TailState::Opening(Stream::growing(source)), mode, limits }
    }

    /// See [`LiveSource::poll`].
    pub fn poll(
        &mut self,
        take: &mut dyn FnMut(&Event<'_>, &LocationTable) -> ControlFlow<()>,
    ) -> Result<Polled, ReadError> {
        self.open()?;
        match &mut self.state {
            TailState::Opening(_) => Ok(Polled::NothingYet),
            TailState::Open(source) => source.poll(take),
            TailState::Failed => Ok(Polled::Ended),
        }
    }

    /// What the trace says about itself; `None` if that is not written yet.
    pub fn info(&mut self) -> Result<Option<&TraceInfo>, ReadError> {
        self.open()?;
        if let TailState::Open(source) = &mut self.state {
            source.begin()?;
        }
        Ok(self.reader().map(EventSource::info))
    }

    /// Finds out the format, once the bytes that tell are there.
    fn open(&mut self) -> Result<(), ReadError> {
        let TailState::Opening(stream) = &mut self.state else { return Ok(()) };
        stream.fill(FileKind::LONGEST_MAGIC)?;
        if FileKind::is_undecided(stream.visible()) && stream.may_grow() {
            return Ok(());
        }
        let opening = std::mem::replace(&mut self.state, TailState::Failed);
        if let TailState::Opening(stream) = opening {
            self.state = TailState::Open(tail(stream, self.mode, self.limits)?);
        }
        Ok(())
    }

    /// See [`LiveSource::stop`].
    pub fn stop(&mut self, completion: Option<Completion>) {
        match &mut self.state {
            TailState::Opening(stream) => stream.stop_growing(),
            TailState::Open(source) => source.stop(completion),
            TailState::Failed => {}
        }
    }

    /// See [`LiveSource::reader`].
    pub fn reader(&self) -> Option<&dyn TraceReader> {
        match &self.state {
            TailState::Open(source) => source.reader(),
            TailState::Opening(_) | TailState::Failed => None,
        }
    }
}
