//! Keeps a budget: on the writer thread, whenever that has read what was recorded.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::controller::{Controller, Reading};
use crate::sampling::Rate;
use crate::sys::processor_time;
use crate::tracer::registry::MutatorRegistry;
use crate::tracer::state::State;

/// The shortest time between two looks: each takes some microseconds.
const SHORTEST: Duration = Duration::from_millis(5);

/// If a look took longer, its thread stood still in between: the clocks and counters that it read are
/// of different moments, and samples of one seem to be the work of another.
const LONGEST_READING: Duration = Duration::from_micros(500);

/// Of the budget, what the time line may take, which no rate makes cheaper: a quarter. What it did not
/// take in the last seconds of the program's processor time is not saved.
const TIME_LINE_SHARE: f64 = 0.25;
const TIME_LINE_SAVINGS_NS: f64 = 2e9;

/// It is looked at this often in any case.
const TIME_LINE_LONGEST: Duration = Duration::from_secs(1);

/// What chooses the rate; `None` while there is no budget. Whoever changes the rate holds the lock.
pub(crate) type SharedController = Arc<Mutex<Option<Controller>>>;

/// What the writer thread needs for a budget.
pub(crate) struct BudgetKeeper {
    controller: SharedController,
    registry: Arc<Mutex<MutatorRegistry>>,
    state: Arc<State>,
    began: Instant,
    last_look: Instant,
    last_process_ns: u64,
    time_line: TimeLineBudget,
}

/// What the time line may take.
struct TimeLineBudget {
    /// By the processor time of the process; `None` without a budget.
    share: Option<f64>,
    /// In nanoseconds.
    credit: f64,
    last: Instant,
}

impl BudgetKeeper {
    pub(crate) fn new(
        controller: SharedController,
        registry: Arc<Mutex<MutatorRegistry>>,
        state: Arc<State>,
    ) -> BudgetKeeper {
        let now = Instant::now();
        BudgetKeeper {
            controller,
            registry,
            state,
            began: now,
            last_look: now,
            last_process_ns: processor_time::of_process(),
            time_line: TimeLineBudget { share: None, credit: 0.0, last: now },
        }
    }

    /// Looks at the cost if it is time, and changes the rate if that is needed. Does not wait for
    /// locks: those who hold them may wait for the writer thread.
    pub(crate) fn look(&mut self) {
        if self.last_look.elapsed() < SHORTEST {
            return;
        }
        let Ok(mut controller) = self.controller.try_lock() else { return };
        let Some(controller) = &mut *controller else {
            self.time_line.share = None;
            return;
        };
        let Ok(registry) = self.registry.try_lock() else { return };
        self.last_look = Instant::now();
        let totals = registry.stats().totals;
        drop(registry);
        let reading = Reading {
            wall_ns: self.began.elapsed().as_nanos() as u64,
            process_ns: processor_time::of_process(),
            threads_ns: processor_time::of_our_threads(),
            hooks_ns: self.state.ticks_ns(totals.hook_ticks),
            samples: totals.sampled_blocks(),
        };
        if self.last_look.elapsed() > LONGEST_READING {
            return;
        }
        let since = reading.process_ns.saturating_sub(self.last_process_ns) as f64;
        self.last_process_ns = reading.process_ns;
        self.time_line.earn(controller.budget().share * TIME_LINE_SHARE, since);
        if let Some(rate) = controller.observe(reading)
            && self.state.is_live()
        {
            self.state.set_rate(rate);
        }
    }

    /// Whether the time line may be written now: it has not taken too much of a budget.
    pub(crate) fn time_line_is_due(&self) -> bool {
        let line = &self.time_line;
        line.share.is_none() || line.credit > 0.0 || line.last.elapsed() >= TIME_LINE_LONGEST
    }

    /// It is being written. Returns what [`BudgetKeeper::end_time_line`] takes.
    pub(crate) fn begin_time_line(&mut self) -> Option<u64> {
        self.time_line.share?;
        self.time_line.last = Instant::now();
        Some(processor_time::of_this_thread())
    }

    pub(crate) fn end_time_line(&mut self, before: Option<u64>) {
        if let Some(before) = before {
            let took = processor_time::of_this_thread().saturating_sub(before);
            self.time_line.credit -= took as f64;
        }
    }

    /// The rate at which mutators are to sample.
    pub(crate) fn rate(&self) -> Option<Rate> {
        Rate::from_bits(self.state.rate_bits())
    }
}

impl TimeLineBudget {
    fn earn(&mut self, share: f64, process_ns: f64) {
        self.share = Some(share);
        let most = share * TIME_LINE_SAVINGS_NS;
        self.credit = (self.credit + share * process_ns).clamp(-most, most);
    }
}
