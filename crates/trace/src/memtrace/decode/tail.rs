//! Tailing a trace that is still being written.
//!
//! At any moment a trace file holds whole packets and possibly the beginning of one more. A
//! [`Tail`] returns the events of the whole packets, keeps its position before the
//! rest, and continues when it is called again.
//!
//! Events come in the order of the file, except that the end of a block never comes before
//! its allocation (`held_ends`).

use std::io::Read;
use std::ops::ControlFlow;

use crate::input::{Input as _, Stream};
use crate::memtrace::decode::first_packet::FirstPacket;
use crate::memtrace::decode::held_ends::HeldEnds;
use crate::memtrace::decode::reader::Reader;
use crate::memtrace::defect::Defect;
use crate::model::event::Event;
use crate::model::{
    Completion, EventSource as _, Limits, LiveSource, LocationTable, Mode, Polled, ReadError,
    TraceReader,
};

/// Reads a trace while it grows.
pub(crate) struct Tail<R> {
    state: TailState<R>,
    mode: Mode,
    limits: Limits,
    held: HeldEnds,
}

enum TailState<R> {
    /// The first packet is not whole yet.
    Opening(Stream<R>),
    Reading(Box<Reader<Stream<R>>>),
    /// The file does not begin like a trace.
    Failed,
}

impl<R: Read> Tail<R> {
    /// Tails a stream that begins with the trace's first byte, which need not be there yet.
    pub(crate) fn new(stream: Stream<R>, mode: Mode, limits: Limits) -> Self {
        Tail { state: TailState::Opening(stream), mode, limits, held: HeldEnds::default() }
    }
}

impl<R: Read> LiveSource for Tail<R> {
    fn poll(
        &mut self,
        take: &mut dyn FnMut(&Event<'_>, &LocationTable) -> ControlFlow<()>,
    ) -> Result<Polled, ReadError> {
        if !self.begin()? {
            return Ok(Polled::NothingYet);
        }
        let TailState::Reading(reader) = &mut self.state else { return Ok(Polled::Ended) };
        loop {
            while let Some(event) = self.held.next_due() {
                if take(&event, reader.locations()).is_break() {
                    return Ok(Polled::BrokenOff);
                }
            }
            let Some((event, table, used)) = reader.next_with_ids()? else {
                if !reader.ended {
                    return Ok(Polled::NothingYet);
                }
                if self.held.len() == 0 {
                    return Ok(Polled::Ended);
                }
                self.held.release_all();
                continue;
            };
            if !self.held.hold(&event, used) && take(&event, table).is_break() {
                return Ok(Polled::BrokenOff);
            }
        }
    }

    /// Reads the first packet.
    fn begin(&mut self) -> Result<bool, ReadError> {
        let TailState::Opening(stream) = &mut self.state else { return Ok(true) };
        let first = match FirstPacket::read(stream) {
            Err(ReadError::Defect(located))
                if stream.may_grow()
                    && matches!(
                        located.defect.downcast_ref(),
                        Some(Defect::Empty | Defect::Truncated { .. })
                    ) =>
            {
                return Ok(false);
            }
            first => first?,
        };
        let opening = std::mem::replace(&mut self.state, TailState::Failed);
        if let TailState::Opening(stream) = opening {
            let reader = Reader::after(first, stream, self.mode, self.limits);
            self.state = TailState::Reading(Box::new(reader));
        }
        Ok(true)
    }

    fn stop(&mut self, completion: Option<Completion>) {
        match &mut self.state {
            TailState::Opening(stream) => stream.stop_growing(),
            TailState::Reading(reader) => {
                reader.input.stop_growing();
                if let Some(completion) = completion {
                    reader.set_completion(completion);
                }
            }
            TailState::Failed => {}
        }
    }

    fn reader(&self) -> Option<&dyn TraceReader> {
        match &self.state {
            TailState::Reading(reader) => Some(&**reader),
            TailState::Opening(_) | TailState::Failed => None,
        }
    }
}
