//! The trace that a sidecar belongs to, and its clock.

use std::ffi::OsStr;

/// Converts the session's ticks.
pub(crate) trait SidecarClock {
    /// Nanoseconds since the epoch, this many ticks after the session's start.
    fn time_ns(&mut self, ticks: u64) -> u64;

    /// This many ticks in nanoseconds.
    fn length_ns(&self, ticks: u64) -> u64;
}

/// The trace that a sidecar belongs to, at one moment.
#[derive(Clone, Copy)]
pub(crate) struct TraceAt<'a> {
    /// The name of its file.
    pub(crate) file: &'a OsStr,
    /// When the file begins, in microseconds since the epoch.
    pub(crate) start_us: u64,
    /// The session's tick.
    pub(crate) now: u64,
    /// Whether functions of the program may be called: not once the session ends.
    pub(crate) observes: bool,
}

impl TraceAt<'_> {
    /// When the file begins, in nanoseconds since the epoch.
    pub(super) fn start_ns(&self) -> u64 {
        self.start_us.saturating_mul(1_000)
    }

    /// The time of events now. Not that of the start: those would say what was before.
    pub(super) fn time(&self, clock: &mut impl SidecarClock) -> u64 {
        clock.time_ns(self.now).max(self.start_ns().saturating_add(1_000))
    }
}

/// Whose sidecar it is.
pub(crate) struct SidecarOwner {
    pub(crate) host: String,
    pub(crate) program: String,
    pub(crate) pid: u32,
}
