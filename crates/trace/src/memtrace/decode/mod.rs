//! Reading traces: packet by packet, in bounded memory, trusting nothing.
//!
//! [`Reader`] hands out events in the order of the file. Each packet is read,
//! checked and decoded whole ([`batch`]) before its first event is handed out.
//! What it keeps is one packet, the tables of names and locations, and for
//! each domain a backtrace cache of 160 KiB and the last backtrace.
//!
//! In strict mode the first defect ends the reading. In lenient mode a damaged
//! packet is left out ([`damage`]); what depended on it is in doubt ([`doubt`])
//! and becomes known again as the file repeats it. Where the next packet is not
//! where the damaged one says it is, the reader looks for the next plausible
//! header ([`resync`]).

mod batch;
mod chain;
mod clock;
mod damage;
mod domain;
mod doubt;
mod entry;
mod frames;
mod ids;
mod input;
mod merge;
mod names;
mod packet;
mod quick;
mod rare;
mod reader;
mod resync;
mod stack;
mod tally;

pub use crate::memtrace::decode::input::{Input, Stream};
pub use crate::memtrace::decode::merge::Merged;
pub use crate::memtrace::decode::reader::Reader;
pub use crate::memtrace::decode::tally::{Losses, Tally};

/// What to do about a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Stop there.
    Strict,
    /// Leave the packet out, say so in [`Losses`], go on.
    Lenient,
}

/// Bounds on what a trace may make the reader keep.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Frames in the last backtraces of all domains together, 8 bytes each.
    pub frames: usize,
    /// Domains; each takes 160 KiB when it is busy.
    pub domains: usize,
}

impl Default for Limits {
    /// Four million frames, 4,096 domains.
    fn default() -> Self {
        Limits { frames: 4 << 20, domains: 4096 }
    }
}
