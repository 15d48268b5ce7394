//! Following a trace that is still being written.
//!
//! At any moment a trace file holds whole packets and possibly the beginning of one more. A
//! [`Follower`] returns the events of the whole packets, keeps its position before the
//! rest, and continues when it is called again. It never waits: whoever calls it decides
//! when to try again, whether the file was replaced, and when nothing more will be written.
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
use crate::memtrace::header::Completion;
use crate::model::event::Event;
use crate::model::{Limits, LocationTable, Mode, ReadError, TraceInfo};

/// Why a follower returned no further event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The caller broke off. There may be more events.
    BrokenOff,
    /// Everything that is written so far was returned.
    NothingYet,
    /// Everything was returned, and nothing more will be written.
    Ended,
}

/// Reads a trace while it grows.
pub struct Follower<R> {
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
    /// Follows a source that begins with the trace's first byte, which need not be there
    /// yet. A read of 0 bytes, or one that would block, means that there is nothing yet.
    pub fn new(source: R, mode: Mode, limits: Limits) -> Self {
        let state = FollowState::Opening(Stream::growing(source));
        Follower { state, mode, limits, held: HeldEnds::default() }
    }

    /// Passes the events that are written so far to `take`, until it breaks off.
    pub fn poll(
        &mut self,
        take: &mut dyn FnMut(&Event<'_>, &LocationTable) -> ControlFlow<()>,
    ) -> Result<Followed, ReadError> {
        if !self.open()? {
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

    /// What the trace says about itself; `None` if that is not written yet.
    pub fn info(&mut self) -> Result<Option<&TraceInfo>, ReadError> {
        self.open()?;
        Ok(self.reader().map(Reader::info))
    }

    /// Reads the first packet; false if it is not all written yet.
    fn open(&mut self) -> Result<bool, ReadError> {
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

    /// Nothing more will be written, because the writer finished or died. `completion` is
    /// what the trace's first packet says now, in the bytes at [`Completion::OFFSET`];
    /// `None` if they cannot be read again. The next [`Follower::poll`] returns the rest,
    /// and counts a packet that is not whole as a loss.
    pub fn stop(&mut self, completion: Option<Completion>) {
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

    /// The reader, once the trace's first packet is written. Its names and locations cover
    /// every event returned so far.
    pub fn reader(&self) -> Option<&Reader<Stream<R>>> {
        match &self.state {
            FollowState::Reading(reader) => Some(reader),
            FollowState::Opening(_) | FollowState::Failed => None,
        }
    }

    /// How many promotions and collections wait for the allocation of their block, which
    /// another domain has not written yet.
    pub fn held(&self) -> usize {
        self.held.len()
    }
}
