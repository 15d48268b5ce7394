//! A timer's memory: no lock, and any number of intervals at once.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// What a timer has measured, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimerState {
    /// Of all intervals, those that run included.
    pub(super) ticks: u64,
    /// Intervals that have ended.
    pub(super) runs: u64,
    /// Intervals that run.
    pub(super) running: u32,
}

/// Added to every tick, and so to the difference between the two numbers of a timer while they
/// do not belong together: such a reading is far off, and is noticed.
const BIAS: u64 = 1 << 62;

/// Measures any number of intervals at once, without a lock: an interval takes its start off
/// `sum`, and adds its end.
pub(super) struct TimerCell {
    sum: AtomicU64,
    running: AtomicI64,
    runs: AtomicU64,
}

impl TimerCell {
    pub(super) fn new() -> TimerCell {
        TimerCell { sum: AtomicU64::new(0), running: AtomicI64::new(0), runs: AtomicU64::new(0) }
    }

    pub(super) fn start(&self, now: u64) {
        self.sum.fetch_sub(now.wrapping_add(BIAS), Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Release);
    }

    pub(super) fn stop(&self, now: u64) -> bool {
        let less = |running: i64| (running > 0).then(|| running - 1);
        if self.running.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less).is_err() {
            return false;
        }
        self.sum.fetch_add(now.wrapping_add(BIAS), Ordering::Relaxed);
        self.runs.fetch_add(1, Ordering::Release);
        true
    }

    pub(super) fn read(&self, now: u64) -> Option<TimerState> {
        /// Far more than a thread needs between its two changes, unless it is not running.
        const TRIES: usize = 1_000;
        for _ in 0..TRIES {
            let running = self.running.load(Ordering::Acquire).max(0) as u64;
            let sum = self.sum.load(Ordering::Acquire);
            let runs = self.runs.load(Ordering::Acquire);
            let ticks = sum.wrapping_add(now.wrapping_add(BIAS).wrapping_mul(running));
            // Four biases are nothing again: an error of one to three is noticed. An interval
            // that began after `now` was read makes the sum a little less than nothing.
            if ticks < BIAS / 2 {
                return Some(TimerState { ticks, runs, running: running as u32 });
            }
            if ticks.wrapping_neg() < BIAS / 2 {
                return Some(TimerState { ticks: 0, runs, running: running as u32 });
            }
            std::hint::spin_loop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_a_timer_add_up_even_if_they_overlap() {
        let timer = TimerCell::new();
        assert!(!timer.stop(5));
        timer.start(10);
        timer.start(20);
        assert_eq!(timer.read(30), Some(TimerState { ticks: 30, runs: 0, running: 2 }));
        assert!(timer.stop(40));
        assert!(timer.stop(50));
        assert!(!timer.stop(60));
        assert_eq!(timer.read(99), Some(TimerState { ticks: 60, runs: 2, running: 0 }));
    }

    #[test]
    fn a_timer_is_read_while_threads_use_it() {
        let timer = TimerCell::new();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for at in 0..200_000 {
                        timer.start(at);
                        assert!(timer.stop(at + 1));
                    }
                });
            }
            let mut last = 0;
            while last < 400_000 {
                if let Some(state) = timer.read(200_000) {
                    // Two intervals that run began at most 200,000 ticks ago.
                    assert!(state.ticks <= 800_000, "{state:?}");
                    last = state.runs;
                }
            }
        });
        assert_eq!(timer.read(0).map(|state| state.ticks), Some(400_000));
    }
}
