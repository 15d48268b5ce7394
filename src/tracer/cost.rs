//! What tracing costs, in processor time.
//!
//! The time of our threads is exact, by the kernel. That of hooks is an estimate: one hook of an
//! allocation in 32 is timed, by a clock that goes on while the thread does not run: one that took
//! much longer than those before is not believed. Taken together both may be no more than what the
//! process took.

use crate::sys::processor_time::{of_our_threads, of_process};

/// What was spent since a session began, in nanoseconds of processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) hooks_ns: u64,
    /// All threads of ours.
    pub(crate) threads_ns: u64,
    /// The rest of the process.
    pub(crate) program_ns: u64,
}

impl Cost {
    /// Hooks and our threads together.
    pub(crate) fn ours_ns(&self) -> u64 {
        self.hooks_ns.saturating_add(self.threads_ns)
    }

    /// The same by the time of the program; at most 100.
    pub(crate) fn share(&self) -> f64 {
        let ours = self.ours_ns() as f64;
        if ours == 0.0 { 0.0 } else { ours / (self.program_ns as f64).max(ours / 100.0) }
    }

    fn of(hooks_ns: u64, threads_ns: u64, process_ns: u64) -> Cost {
        let rest = process_ns.saturating_sub(threads_ns);
        let hooks_ns = hooks_ns.min(rest);
        Cost { hooks_ns, threads_ns, program_ns: rest - hooks_ns }
    }
}

/// The clocks when a session began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostMeter {
    threads_ns: u64,
    process_ns: u64,
}

impl CostMeter {
    pub(crate) fn start() -> CostMeter {
        CostMeter { threads_ns: of_our_threads(), process_ns: of_process() }
    }

    /// What was spent until now, so much of it in hooks.
    pub(crate) fn cost(&self, hooks_ns: u64) -> Cost {
        let threads_ns = of_our_threads().saturating_sub(self.threads_ns);
        Cost::of(hooks_ns, threads_ns, of_process().saturating_sub(self.process_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_what_the_process_took() {
        let cost = Cost::of(10, 30, 1040);
        assert_eq!(cost, Cost { hooks_ns: 10, threads_ns: 30, program_ns: 1000 });
        assert_eq!((cost.ours_ns(), cost.share()), (40, 0.04));
        // Hooks that waited for a processor, and clocks that were read one after the other.
        assert_eq!(Cost::of(500, 30, 100).program_ns, 0);
        assert_eq!(Cost::of(500, 30, 100).ours_ns(), 100);
        assert_eq!(Cost::of(5, 200, 100), Cost { hooks_ns: 0, threads_ns: 200, program_ns: 0 });
        assert_eq!((Cost::default().share(), Cost::of(5, 200, 100).share()), (0.0, 100.0));
    }
}
