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

/// What chooses the rate; `None` while there is no budget. Whoever changes the rate holds the lock.
pub(crate) type SharedController = Arc<Mutex<Option<Controller>>>;

/// What the writer thread needs for a budget.
pub(crate) struct BudgetKeeper {
    controller: SharedController,
    registry: Arc<Mutex<MutatorRegistry>>,
    state: Arc<State>,
    began: Instant,
    last_look: Instant,
}

impl BudgetKeeper {
    pub(crate) fn new(
        controller: SharedController,
        registry: Arc<Mutex<MutatorRegistry>>,
        state: Arc<State>,
    ) -> BudgetKeeper {
        let now = Instant::now();
        BudgetKeeper { controller, registry, state, began: now, last_look: now }
    }

    /// Looks at the cost if it is time, and changes the rate if that is needed. Does not wait for
    /// locks: those who hold them may wait for the writer thread.
    pub(crate) fn look(&mut self) {
        if self.last_look.elapsed() < SHORTEST {
            return;
        }
        let Ok(mut controller) = self.controller.try_lock() else { return };
        let Some(controller) = &mut *controller else { return };
        let Ok(registry) = self.registry.try_lock() else { return };
        let totals = registry.stats().totals;
        drop(registry);
        self.last_look = Instant::now();
        let reading = Reading {
            wall_ns: self.began.elapsed().as_nanos() as u64,
            process_ns: processor_time::of_process(),
            threads_ns: processor_time::of_our_threads(),
            hooks_ns: self.state.ticks_ns(totals.hook_ticks),
            samples: totals.sampled_blocks(),
        };
        if let Some(rate) = controller.observe(reading)
            && self.state.is_live()
        {
            self.state.set_rate(rate);
        }
    }

    /// The rate at which mutators are to sample.
    pub(crate) fn rate(&self) -> Option<Rate> {
        Rate::from_bits(self.state.rate_bits())
    }
}
