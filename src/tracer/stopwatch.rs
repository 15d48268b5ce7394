//! The time since a session began, in clock ticks.

use crate::sys::clock::TickSource;

/// Measures time since the session's start. Each mutator has its own copy.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch {
    ticks: TickSource,
    start: u64,
}

impl Stopwatch {
    /// Starts now.
    pub(crate) fn start(ticks: TickSource) -> Stopwatch {
        Stopwatch { ticks, start: ticks.now() }
    }

    /// Ticks since the start.
    #[inline]
    pub(crate) fn ticks(self) -> u64 {
        self.ticks.now().saturating_sub(self.start)
    }

    /// Ticks from the start until this value of the tick source.
    pub(crate) fn ticks_until(self, value: u64) -> u64 {
        value.saturating_sub(self.start)
    }

    pub(crate) fn tick_source(self) -> TickSource {
        self.ticks
    }

    /// The tick source's value, `ticks` ticks after the start.
    pub(crate) fn at(self, ticks: u64) -> u64 {
        self.start.wrapping_add(ticks)
    }
}
