//! Where time comes from: the processor's counter and the system's clocks.
#![allow(unsafe_code, reason = "reads the counter and calls clock_gettime")]

use core::time::Duration;
#[cfg(target_arch = "x86_64")]
use std::io::Read;

/// How mutators stamp events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TickSource {
    /// The time-stamp counter.
    #[cfg(target_arch = "x86_64")]
    Counter,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    Monotonic,
}

impl TickSource {
    /// The counter, where it runs at one rate in all sleep states and the kernel
    /// trusts it.
    ///
    /// A kernel that finds the counters of its processors apart takes `tsc` off
    /// the list of clock sources; a guest on KVM keeps it there beside
    /// `kvm-clock`. Without that list nothing is known, so the clock is taken.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if counter_is_invariant() && kernel_trusts_counter() {
            return Self::Counter;
        }
        Self::Monotonic
    }

    /// The time now, in ticks. Runs inside hooks.
    #[inline(always)]
    pub(crate) fn now(self) -> u64 {
        match self {
            // SAFETY: every amd64 processor has the instruction, and Linux
            // leaves it open to programs unless they forbid it to themselves.
            #[cfg(target_arch = "x86_64")]
            Self::Counter => unsafe { core::arch::x86_64::_rdtsc() },
            Self::Monotonic => clock_ns(libc::CLOCK_MONOTONIC),
        }
    }
}

/// Bit 8 of edx of leaf `0x8000_0007` (AMD64 manual volume 3, Intel SDM volume 2).
#[cfg(target_arch = "x86_64")]
fn counter_is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
}

#[cfg(target_arch = "x86_64")]
fn kernel_trusts_counter() -> bool {
    // prctl(PR_SET_TSC) can make the instruction a SIGSEGV.
    let mut mode: libc::c_int = 0;
    // SAFETY: writes one int to the place given.
    let asked = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    let open = asked != 0 || mode == libc::PR_TSC_ENABLE;
    open && clock_sources().is_some_and(|sources| names_counter(&sources))
}

/// The kernel's list, as far as it has ever been long: there are some ten sources.
#[cfg(target_arch = "x86_64")]
fn clock_sources() -> Option<[u8; 256]> {
    let list = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let mut sources = [0; 256];
    std::fs::File::open(list).and_then(|mut list| list.read(&mut sources)).ok()?;
    Some(sources)
}

#[cfg(target_arch = "x86_64")]
fn names_counter(sources: &[u8]) -> bool {
    sources.split(|byte| matches!(byte, b' ' | b'\n' | 0)).any(|source| source == b"tsc")
}

/// What a [`Clock`](super::clock::Clock) reads; tests have one of their own.
pub(crate) trait Source {
    fn ticks(&mut self) -> u64;
    fn monotonic_ns(&mut self) -> u64;
    /// Microseconds since the Unix epoch.
    fn wall_us(&mut self) -> u64;
    fn sleep_ns(&mut self, ns: u64);
}

/// The machine's own.
pub(crate) struct System {
    ticks: TickSource,
}

impl System {
    pub(super) fn new(ticks: TickSource) -> Self {
        Self { ticks }
    }
}

impl Source for System {
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

/// A clock of the system in nanoseconds; 0 if there is no such clock.
pub(super) fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec to the place given.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_counter_is_one_of_the_kernels_sources() {
        for list in ["tsc kvm-clock \n\0\0", "hpet tsc", "tsc"] {
            assert!(names_counter(list.as_bytes()), "{list}");
        }
        for list in ["", "kvm-clock acpi_pm \n", "tsc-early hpet \n", "\0"] {
            assert!(!names_counter(list.as_bytes()), "{list}");
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
