//! Following a trace that is still being written.
//!
//! At any moment a trace file holds whole packets and possibly the beginning of one more. A
//! [`Follower`] returns the events of the whole packets, keeps its position before the
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
    Completion, Followed, Limits, LiveSource, LocationTable, Mode, ReadError, TraceReader,
};

/// Reads a trace while it grows.
pub(crate) struct Follower<R> {
    state: FollowState<R>,
    mode: Mode,
    limits: Limits,
    held: HeldEnds,
}

enum FollowState<R> {
    /// The first packet is not whole yet.
    Opening(Stream<R>),
    Reading(Box<Reader<Stream<R>>>),
    /// The file does not begin like a trace.
    Failed,
}

impl<R: Read> Follower<R> {
    /// Follows a stream that begins with the trace's first byte, which need not be there yet.
    pub(crate) fn new(stream: Stream<R>, mode: Mode, limits: Limits) -> Self {
        Follower { state: FollowState::Opening(stream), mode, limits, held: HeldEnds::default() }
    }
}

impl<R: Read> LiveSource for Follower<R> {
    fn poll(
        &mut self,
        take: &mut dyn FnMut(&Event<'_>, &LocationTable) -> ControlFlow<()>,
    ) -> Result<Followed, ReadError> {
        if !self.begin()? {
            return Ok(Followed::NothingYet);
        }
        let FollowState::Reading(reader) = &mut self.state else { return Ok(Followed::Ended) };
        loop {
            while let Some(event) = self.held.next_due() {
                if take(&event, reader.locations()).is_break() {
                    return Ok(Followed::BrokenOff);
                }
            }
            let Some((event, table, used)) = reader.next_with_ids()? else {
                if !reader.ended {
                    return Ok(Followed::NothingYet);
                }
                if self.held.len() == 0 {
                    return Ok(Followed::Ended);
                }
                self.held.release_all();
                continue;
            };
            if !self.held.hold(&event, used) && take(&event, table).is_break() {
                return Ok(Followed::BrokenOff);
            }
        }
    }

    /// Reads the first packet.
    fn begin(&mut self) -> Result<bool, ReadError> {
        let FollowState::Opening(stream) = &mut self.state else { return Ok(true) };
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
        let opening = std::mem::replace(&mut self.state, FollowState::Failed);
        if let FollowState::Opening(stream) = opening {
            let reader = Reader::after(first, stream, self.mode, self.limits);
            self.state = FollowState::Reading(Box::new(reader));
        }
        Ok(true)
    }

    fn stop(&mut self, completion: Option<Completion>) {
        match &mut self.state {
            FollowState::Opening(stream) => stream.stop_growing(),
            FollowState::Reading(reader) => {
                reader.input.stop_growing();
                if let Some(completion) = completion {
                    reader.set_completion(completion);
                }
            }
            FollowState::Failed => {}
        }
    }

    fn reader(&self) -> Option<&dyn TraceReader> {
        match &self.state {
            FollowState::Reading(reader) => Some(&**reader),
            FollowState::Opening(_) | FollowState::Failed => None,
        }
    }
}
