//! Pointers and slots of suspended stacks that lead to no block.
//!
//! They are defects only where the block that has them is alive. A dead continuation may still point to a
//! stack that is free or that another fiber runs on, so what its slots say means nothing. Garbage may outlive the
//! garbage that it points to: OCaml 5.3.0 does not sweep all of the heap of a domain in the cycle that begins while
//! the domain ends (ocaml/ocaml#14025).
//!
//! No block that is alive can be missing without a finding: on the way to it from a root, the last one
//! that is not missing is alive, and its pointer is lost.

use super::heap_graph::{HeapGraph, LostPointer};
use super::reach::{Marking, Watchers};

impl HeapGraph {
    /// Those of blocks that are alive, in the order of the file.
    pub(crate) fn lost_pointers(&self) -> &[LostPointer] {
        &self.lost_pointers
    }

    /// How many pointers of blocks that are not alive lead to no block, without slots of stacks.
    pub(crate) fn lost_by_garbage(&self) -> u64 {
        self.lost_by_garbage
    }

    /// Forgets those of dead blocks. Once the graph is complete.
    pub(super) fn forget_what_garbage_lost(&mut self) {
        let mut pointers = std::mem::take(&mut self.lost_pointers);
        if !pointers.is_empty() {
            let watchers = Watchers::new(self);
            let mut marking = Marking::new(self, &watchers);
            marking.mark(self.roots().map(|root| root.1));
            let is_alive = |pointer: &LostPointer| marking.is_marked(pointer.block);
            let dead = pointers.iter().filter(|pointer| !is_alive(pointer));
            let lost = dead.filter(|pointer| pointer.field.is_some()).count() as u64;
            pointers.retain(is_alive);
            self.lost_by_garbage = lost;
        }
        self.lost_pointers = pointers;
    }
}
