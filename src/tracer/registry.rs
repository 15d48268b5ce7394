//! Who takes part in a session. Behind a lock, and never on a hook's path.

use std::sync::Arc;

use crate::blocks::Generations;
use crate::tracer::counters::{Counters, Totals};

/// Mutators that are and were.
pub(crate) struct MutatorRegistry {
    /// Of each lane, the number of its next block: a mutator that takes the
    /// lane of an ended one goes on there.
    numbers: Vec<u64>,
    /// How many mutators there ever were; each has a stream of samples.
    begun: u64,
    counters: Vec<Arc<Counters>>,
    /// The sum of those that ended.
    ended: Totals,
    /// The host's handles of mutators.
    pub(crate) handles: Vec<usize>,
    /// Blocks that ended mutators have left to nobody.
    pub(crate) orphans: Generations,
}

/// Everything that is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionStats {
    pub(crate) totals: Totals,
    pub(crate) mutators: usize,
    pub(crate) live_blocks: u64,
    pub(crate) bytes: u64,
    pub(crate) hook_ns: u64,
}

impl MutatorRegistry {
    pub(crate) fn new(orphans: Generations) -> MutatorRegistry {
        MutatorRegistry {
            numbers: Vec::new(),
            begun: 0,
            counters: Vec::new(),
            ended: Totals::default(),
            handles: Vec::new(),
            orphans,
        }
    }

    /// A mutator takes a lane: its first number, its stream of samples and its
    /// counters.
    pub(crate) fn begin(&mut self, lane: u16) -> (u64, u64, Arc<Counters>) {
        let number = self.numbers.get(usize::from(lane)).copied().unwrap_or(0);
        let stream = self.begun;
        self.begun += 1;
        let counters = Arc::new(Counters::default());
        self.counters.push(Arc::clone(&counters));
        (number, stream, counters)
    }

    /// A mutator gives its lane back. Before its producer ends.
    pub(crate) fn end(&mut self, lane: u16, number: u64, counters: &Arc<Counters>) {
        let lane = usize::from(lane);
        if self.numbers.len() <= lane {
            self.numbers.resize(lane + 1, 0);
        }
        if let Some(next) = self.numbers.get_mut(lane) {
            *next = number;
        }
        counters.live_blocks.set(0);
        self.ended.add(counters);
        self.counters.retain(|known| !Arc::ptr_eq(known, counters));
    }

    pub(crate) fn stats(&self) -> SessionStats {
        let mut totals = self.ended;
        for counters in &self.counters {
            totals.add(counters);
        }
        SessionStats {
            totals,
            mutators: self.counters.len(),
            live_blocks: totals.live_blocks + self.orphans.len() as u64,
            ..SessionStats::default()
        }
    }
}
