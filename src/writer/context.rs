//! What the writer needs to know about the session whose records it writes.

use std::ffi::OsStr;

use heaptap_trace::{Locate, WriteError};

use crate::queue::Part;
use crate::writer::dump::{DumpOrder, DumpReason, Dumped};

/// Resolves what records leave open: ticks to times, codes to locations. Lives on
/// the writer thread.
pub(crate) trait Context: Locate {
    /// Reads the clock, so that the following times are accurate.
    fn observe_time(&mut self);

    /// Looks at what tracing costs, and changes the rate if that is to have a bound. At most
    /// some milliseconds after the last time if much is being recorded.
    fn keep_budget(&mut self) {}

    /// The rate at which mutators are to sample now, if that can be another one than the file's.
    fn rate(&self) -> Option<f64> {
        None
    }

    /// Ticks since the session's start as microseconds since the epoch.
    fn micros(&mut self, ticks: u64) -> u64;

    /// Microseconds since the epoch, now.
    fn now(&mut self) -> u64;

    /// The code of a frame that allocates one part of a combined allocation, or a block of some
    /// kind: the same code for parts with the same location.
    fn part_code(&mut self, return_address: u64, part: Part) -> u64;

    /// Everything so far is in `output`, which begins at `start_time`, in microseconds: the
    /// moment to write what belongs beside it.
    fn flushed(&mut self, _output: &OsStr, _start_time: u64) {}

    /// `output` is complete. Another one may follow.
    fn ended(&mut self, _output: &OsStr, _start_time: u64) {}

    /// Whether the process may end at any moment: what is recorded is to be written at once.
    fn is_urgent(&self) -> bool {
        false
    }

    /// Why what is kept in memory should be written to files now, if it should.
    fn due_dump(&mut self) -> Option<DumpReason> {
        None
    }

    /// What is kept in memory will be written to files.
    fn before_dump(&mut self, _order: &DumpOrder) {}

    /// Writes what is kept in memory to files: everything so far is there.
    fn dump(&mut self, _order: &DumpOrder) -> Result<Dumped, String> {
        Err("nothing is kept in memory".into())
    }

    /// A block has died that carries a tag, and is not in the trace.
    fn tagged_ended(&mut self, _probe: u64) {}

    /// Somebody has truncated `output`, in which another trace begins now.
    fn truncated(&mut self, _output: &OsStr) {}

    /// Writing to `output` has failed, and is over.
    fn write_failed(&mut self, output: &OsStr, error: &WriteError);
}
