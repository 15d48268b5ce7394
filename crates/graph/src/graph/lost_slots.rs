//! Slots of suspended stacks that lead to no block.
//!
//! A slot holds something only as long as its continuation is alive. A dead continuation may still
//! point to a stack that is free or that another fiber runs on, so what its slots say means nothing.

use super::heap_graph::{HeapGraph, LostSlot};
use super::reach::{Marking, Watchers};

impl HeapGraph {
    /// Those whose continuation is alive.
    pub(crate) fn lost_slots(&self) -> &[LostSlot] {
        &self.lost_slots
    }

    /// Forgets slots whose continuation is dead. Once the graph is complete.
    pub(super) fn forget_slots_of_dead_continuations(&mut self) {
        let mut slots = std::mem::take(&mut self.lost_slots);
        if !slots.is_empty() {
            let watchers = Watchers::new(self);
            let mut marking = Marking::new(self, &watchers);
            marking.mark(self.roots().map(|root| root.1));
            slots.retain(|slot| marking.is_marked(slot.continuation));
        }
        self.lost_slots = slots;
    }
}
