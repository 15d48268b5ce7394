//! Reading traces: packet by packet, in bounded memory, trusting nothing.
//!
//! [`Reader`] returns events in the order of the file. Each packet is read,
//! checked and decoded as a whole before its first event is returned. The reader
//! keeps one packet, the tables of names and locations, and for each domain a
//! backtrace cache of 160 KiB and the last backtrace.
//!
//! In strict mode the first defect ends the reading. In lenient mode a damaged
//! packet is skipped (`damage`). What depended on it is unknown until the file
//! states it again (`known_slots`). If the next packet is not where the damaged
//! one says, the reader searches for the next plausible header (`resync`).
//!
//! With plain `inline` in place of `inline(always)`, `heaptap info` takes 11 % more
//! instructions and `heaptap check` 5.8 % (`callgrind`).
//!
//! The layers, from the bottom up; each file uses only those above it in this
//! list:
//!
//! - `ids`, `clock`, `names`, `resync`: small parts.
//! - `step`, `entry`, `frames`, `chain`: from the entries of a backtrace to its
//!   frames. `known_slots`: the same after a loss.
//! - `stack`, `domain`: what is kept for each domain.
//! - `batch`: the events of one packet, and returning them one by one.
//! - `body`, `context`, `event_loop`, `common_events`: the decoding of one packet into a
//!   batch.
//! - `first_packet`, `reader`, `damage`, `sequence`, `packets`, `merge`: the packets of a
//!   file.
//! - `held_ends`, `tail`: a file that is still being written.

mod batch;
mod body;
mod chain;
mod clock;
mod common_events;
mod context;
mod damage;
mod domain;
mod entry;
mod event_loop;
mod first_packet;
mod frames;
mod held_ends;
mod ids;
mod known_slots;
mod merge;
mod names;
mod packets;
mod reader;
mod resync;
mod sequence;
mod stack;
mod step;
mod tail;

pub use crate::memtrace::decode::merge::Merged;
pub use crate::memtrace::decode::reader::Reader;
pub(crate) use crate::memtrace::decode::tail::Tail;
