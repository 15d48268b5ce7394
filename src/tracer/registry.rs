//! The mutators of a session. Behind a lock, and never on a hook's path.

use std::sync::Arc;

use crate::blocks::Generations;
use crate::tracer::cost::Cost;
use crate::tracer::counters::{Counters, Totals};

/// The mutators of a session, those that ended included.
pub(crate) struct MutatorRegistry {
    /// By lane, the number of its next block: a mutator on a lane that was used
    /// before continues its numbers.
    next_numbers: Vec<u64>,
    /// How many mutators have ever started; each has its own stream of samples.
    started: u64,
    /// Those of the mutators that have not ended.
    counters: Vec<Arc<Counters>>,
    /// The sum of the counters of those that have.
    ended: Totals,
    /// The host's handles of mutators, in the order in which they were added.
    pub(crate) handles: Vec<usize>,
    /// Blocks of ended mutators that no mutator has adopted.
    pub(crate) orphans: Orphans,
}

/// Blocks that nobody sweeps.
pub(crate) struct Orphans {
    pub(crate) blocks: Generations,
    /// Those that carry a tag.
    pub(crate) tags: Generations,
}

impl Orphans {
    /// None. `None` without memory.
    pub(crate) fn new() -> Option<Orphans> {
        Some(Orphans { blocks: Generations::new()?, tags: Generations::new()? })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.tags.is_empty()
    }
}

/// What a new mutator gets from the registry.
pub(crate) struct Registered {
    /// The number of its first block.
    pub(crate) number: u64,
    /// Which stream of samples is its own.
    pub(crate) stream: u64,
    pub(crate) counters: Arc<Counters>,
}

/// Everything that a session counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionStats {
    pub(crate) totals: Totals,
    pub(crate) mutators: usize,
    pub(crate) live_blocks: u64,
    pub(crate) bytes: u64,
    pub(crate) hook_ns: u64,
    /// What it all takes.
    pub(crate) cost: Cost,
}

impl MutatorRegistry {
    pub(crate) fn new(orphans: Orphans) -> MutatorRegistry {
        MutatorRegistry {
            next_numbers: Vec::new(),
            started: 0,
            counters: Vec::new(),
            ended: Totals::default(),
            handles: Vec::new(),
            orphans,
        }
    }

    /// Registers a mutator on a lane.
    pub(crate) fn register(&mut self, lane: u16) -> Registered {
        let number = self.next_numbers.get(usize::from(lane)).copied().unwrap_or(0);
        let stream = self.started;
        self.started += 1;
        let counters = Arc::new(Counters::default());
        self.counters.push(Arc::clone(&counters));
        Registered { number, stream, counters }
    }

    /// Removes a mutator whose next block would have had this number. Must come
    /// before its producer ends, which lets another mutator take the lane.
    pub(crate) fn remove(&mut self, lane: u16, number: u64, counters: &Arc<Counters>) {
        let lane = usize::from(lane);
        if self.next_numbers.len() <= lane {
            self.next_numbers.resize(lane + 1, 0);
        }
        if let Some(next) = self.next_numbers.get_mut(lane) {
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
            live_blocks: totals.live_blocks + self.orphans.blocks.len() as u64,
            ..SessionStats::default()
        }
    }
}
