//! Sources of time: the processor's time-stamp counter and the system's clocks.
#![allow(unsafe_code, reason = "reads the counter and calls prctl and clock_gettime")]

use core::time::Duration;
use std::io::Read;

/// What mutators stamp events with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TickSource {
    /// The time-stamp counter.
    Counter,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    Monotonic,
}

impl TickSource {
    /// The counter if it runs at a constant rate in all sleep states and the kernel trusts
    /// it, else the clock.
    ///
    /// A kernel that finds the counters of its processors out of step removes `tsc` from
    /// its list of clock sources. A guest on KVM keeps it there beside `kvm-clock`. If the
    /// list cannot be read, the counter is not trusted.
    pub(crate) fn detect() -> Self {
        if counter_is_invariant() && kernel_trusts_counter() {
            return Self::Counter;
        }
        Self::Monotonic
    }

    /// The time now, in ticks. Runs inside hooks.
    #[inline]
    pub(crate) fn now(self) -> u64 {
        match self {
            // SAFETY: every amd64 processor has RDTSC. `detect` has checked that this process
            // may use it (PR_GET_TSC).
            Self::Counter => unsafe { core::arch::x86_64::_rdtsc() },
            Self::Monotonic => clock_ns(libc::CLOCK_MONOTONIC),
        }
    }
}

/// The bit "invariant TSC": bit 8 of EDX of CPUID leaf `0x8000_0007` (AMD64 manual volume
/// 3, Intel SDM volume 2).
fn counter_is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
}

fn kernel_trusts_counter() -> bool {
    // After prctl(PR_SET_TSC, PR_TSC_SIGSEGV) the instruction raises SIGSEGV.
    let mut mode: libc::c_int = 0;
    // SAFETY: PR_GET_TSC writes one int to the pointer.
    let status = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    let usable = status != 0 || mode == libc::PR_TSC_ENABLE;
    usable && clock_sources().is_some_and(|sources| lists_counter(&sources))
}

/// The first 256 bytes of the kernel's list, which names some ten sources at most.
fn clock_sources() -> Option<[u8; 256]> {
    let list = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let mut sources = [0; 256];
    std::fs::File::open(list).and_then(|mut list| list.read(&mut sources)).ok()?;
    Some(sources)
}

fn lists_counter(sources: &[u8]) -> bool {
    sources.split(|byte| matches!(byte, b' ' | b'\n' | 0)).any(|source| source == b"tsc")
}

/// What a [`Clock`](super::clock::Clock) reads. Tests implement it with a simulated machine.
pub(crate) trait ClockSource {
    fn ticks(&mut self) -> u64;
    fn monotonic_ns(&mut self) -> u64;
    /// Microseconds since the Unix epoch.
    fn wall_us(&mut self) -> u64;
    fn sleep_ns(&mut self, ns: u64);
}

/// The clocks of this machine.
pub(crate) struct SystemClocks {
    ticks: TickSource,
}

impl SystemClocks {
    pub(super) fn new(ticks: TickSource) -> Self {
        Self { ticks }
    }
}

impl ClockSource for SystemClocks {
    fn ticks(&mut self) -> u64 {
        self.ticks.now()
    }

    fn monotonic_ns(&mut self) -> u64 {
        clock_ns(libc::CLOCK_MONOTONIC)
    }

    fn wall_us(&mut self) -> u64 {
        clock_ns(libc::CLOCK_REALTIME) / 1000
    }

    fn sleep_ns(&mut self, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }
}

/// The time of a system clock in nanoseconds; 0 if there is no such clock.
pub(super) fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes one timespec to the pointer.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_found_in_the_kernels_list() {
        for list in ["tsc kvm-clock \n\0\0", "hpet tsc", "tsc"] {
            assert!(lists_counter(list.as_bytes()), "{list}");
        }
        for list in ["", "kvm-clock acpi_pm \n", "tsc-early hpet \n", "\0"] {
            assert!(!lists_counter(list.as_bytes()), "{list}");
        }
    }

    #[test]
    fn stamps_do_not_go_back() {
        for ticks in [TickSource::detect(), TickSource::Monotonic] {
            let first = ticks.now();
            let second = ticks.now();
            assert!(0 < first && first <= second, "{ticks:?}: {first}, then {second}");
        }
    }
}
