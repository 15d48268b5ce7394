//! The session's ticks as times. On the writer thread.

use crate::probes::SidecarClock;
use crate::sys::clock::Clock;
use crate::tracer::stopwatch::Stopwatch;

/// Turns ticks since the session's start into times.
pub(crate) struct SessionClock {
    clock: Clock,
    stopwatch: Stopwatch,
}

impl SessionClock {
    pub(crate) fn new(clock: Clock, stopwatch: Stopwatch) -> SessionClock {
        SessionClock { clock, stopwatch }
    }

    /// Reads the clock, so that the following times are accurate.
    pub(crate) fn observe(&mut self) {
        self.clock.observe();
    }

    /// Ticks since the session's start, now.
    pub(crate) fn ticks(&self) -> u64 {
        self.stopwatch.ticks()
    }

    /// Ticks since the session's start as microseconds since the epoch.
    pub(crate) fn micros(&mut self, ticks: u64) -> u64 {
        self.clock.micros(self.stopwatch.at(ticks))
    }

    /// Microseconds since the epoch, now.
    pub(crate) fn now(&mut self) -> u64 {
        self.clock.micros(self.stopwatch.tick_source().now())
    }
}

impl SidecarClock for SessionClock {
    fn time_ns(&mut self, ticks: u64) -> u64 {
        self.clock.nanos(self.stopwatch.at(ticks))
    }

    fn length_ns(&self, ticks: u64) -> u64 {
        self.clock.nanoseconds(ticks)
    }
}
