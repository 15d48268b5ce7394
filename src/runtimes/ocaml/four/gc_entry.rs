//! A shortcut from native code to the profiler.
//!
//! An allocation that leads below the young limit calls `caml_garbage_collection`
//! (`runtime/signals_nat.c`), which finds out what was allocated and calls
//! `caml_alloc_small_dispatch` (`runtime/minor_gc.c`). That takes the allocation
//! back, does whatever is pending, collects if there is no room, allocates again,
//! and only then checks whether a sample falls there. Usually a sample is the only
//! reason. So the hook checks that first, and leaves everything else to the runtime.
//!
//! Everything that it reads was proved before: the layout of the state by `proof`,
//! the index of descriptors by [`Descriptors::find`]. If a proof fails, the runtime's
//! own function stays.
//!
//! Runs on mutators, inside hooks, under the master lock.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use super::symbols::Runtime;
use crate::runtimes::attach::symbols::{function_at, lookup};
use crate::runtimes::ocaml::frame_descriptor::{LIVE_COUNT, LIVE_SLOTS};
use crate::runtimes::ocaml::values::part_sizes;
use crate::runtimes::ocaml::{Descriptors, MajorVersion};
use crate::tracer::PartSizes;

/// What the shortcut needs of the runtime.
#[derive(Clone)]
pub(super) struct GcEntry {
    descriptors: Descriptors,
    pub(super) singles: Singles,
    /// `caml_something_to_do`
    pending: *const AtomicI32,
    pub(super) dispatch: Dispatch,
    pub(super) process_pending: extern "C-unwind" fn(),
}

/// `caml_alloc_small_dispatch`: words without the first header, flags, how many
/// blocks, and their encoded lengths. May raise.
pub(super) type Dispatch = extern "C-unwind" fn(usize, c_int, c_int, *const u8);

/// `CAML_DO_TRACK | CAML_FROM_CAML` (`runtime/caml/memory.h`).
const FROM_OCAML: c_int = 1 | 2;

// SAFETY: `pending` points to a variable of the runtime, which is atomic.
unsafe impl Send for GcEntry {}
// SAFETY: shared, it is only read.
unsafe impl Sync for GcEntry {}

/// What native code allocates in one go.
#[derive(Clone, Copy)]
pub(super) struct Allocation {
    /// How many blocks; 0 if the code only polls for pending actions.
    pub(super) count: u8,
    /// Their encoded lengths.
    lengths: *const u8,
}

impl Allocation {
    /// The words of each block, with its header.
    pub(super) fn parts(self) -> impl PartSizes {
        // SAFETY: `lengths` points into a frame descriptor, which the runtime never frees
        // while code of its module runs.
        unsafe { part_sizes(c_int::from(self.count), self.lengths) }
    }

    /// `Some` if it is one block only.
    pub(super) fn single(self) -> Option<usize> {
        if self.count == 1 { self.parts().next() } else { None }
    }

    /// Goes on as the runtime does.
    pub(super) fn pass_to(self, dispatch: Dispatch) {
        let wosize = self.parts().sum::<usize>() - 1;
        dispatch(wosize, FROM_OCAML, c_int::from(self.count), self.lengths);
    }
}

impl GcEntry {
    /// In a runtime for native code whose index of descriptors is as known. Before
    /// `main`.
    pub(super) fn find(runtime: &Runtime) -> Option<GcEntry> {
        runtime.gc_entry?;
        let descriptors = Descriptors::find(MajorVersion::Four)?;
        let dispatch = lookup(c"caml_alloc_small_dispatch")?;
        let process_pending = lookup(c"caml_process_pending_actions")?;
        Some(GcEntry {
            descriptors,
            singles: Singles::NONE,
            pending: runtime.something_to_do as *const AtomicI32,
            // SAFETY: `void caml_alloc_small_dispatch (intnat, int, int, unsigned char*)`.
            dispatch: unsafe { function_at(dispatch) },
            // SAFETY: `void caml_process_pending_actions (void)`, `runtime/signals.c`.
            process_pending: unsafe { function_at(process_pending) },
        })
    }

    /// What is allocated where native code has come from.
    pub(super) fn allocation(&self, return_address: u64) -> Allocation {
        let descriptor = self.descriptors.record(return_address) as *const u8;
        // SAFETY: native code calls `caml_garbage_collection` only where the compiler has
        // left a descriptor with allocation lengths (`runtime/signals_nat.c`).
        let slots = unsafe { descriptor.wrapping_add(LIVE_COUNT).cast::<u16>().read() };
        let count = descriptor.wrapping_add(LIVE_SLOTS + 2 * usize::from(slots));
        // SAFETY: the same descriptor; its lengths are behind the slots, and begin with their count.
        Allocation { count: unsafe { count.read() }, lengths: count.wrapping_add(1) }
    }

    /// Whether the runtime has something else to do.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        // SAFETY: `caml_something_to_do` is an `int` of the runtime that lives as long as
        // the program; signal handlers set it.
        unsafe { &*self.pending }.load(Ordering::Relaxed) != 0
    }
}

/// Return addresses at which native code allocates one block, with its words: those at
/// which a sample has fallen. Reading a descriptor instead takes several cache lines
/// that nothing else has used lately.
#[derive(Clone)]
pub(super) struct Singles([u64; 256]);

/// An entry is a return address, which is below 2^48, and from this bit on the words.
const WORDS_SHIFT: u32 = 48;

impl Singles {
    const NONE: Singles = Singles([0; 256]);

    /// The one entry that a return address can be in.
    fn place(return_address: u64) -> usize {
        usize::from(return_address as u8)
    }

    /// The words that are allocated there, if they are known.
    #[inline]
    pub(super) fn find(&self, return_address: u64) -> Option<usize> {
        let entry = self.0[Self::place(return_address)];
        let (address, words) = (entry & ((1 << WORDS_SHIFT) - 1), entry >> WORDS_SHIFT);
        (address == return_address && words != 0).then_some(words as usize)
    }

    pub(super) fn add(&mut self, return_address: u64, words: usize) {
        if return_address < 1 << WORDS_SHIFT {
            self.0[Self::place(return_address)] = return_address | (words as u64) << WORDS_SHIFT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_is_known_by_where_it_is_allocated() {
        let mut singles = Singles::NONE;
        assert_eq!((singles.find(0), singles.find(0x1234)), (None, None));
        singles.add(0x7fff_ffff_1234, 257);
        assert_eq!(singles.find(0x7fff_ffff_1234), Some(257));
        assert_eq!(singles.find(0x1234), None, "another with the same place");
        singles.add(0x1234, 2);
        assert_eq!((singles.find(0x1234), singles.find(0x7fff_ffff_1234)), (Some(2), None));
        singles.add(0x5_0000_0000_1234, 3);
        assert_eq!(singles.find(0x1234), Some(2), "there is no code up there");
    }
}
