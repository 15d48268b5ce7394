//! Native code's way to the profiler, shortened.
//!
//! An allocation that leads below the young limit calls `caml_garbage_collection`
//! (`runtime/signals_nat.c`), which finds out what was allocated and calls
//! `caml_alloc_small_dispatch` (`runtime/minor_gc.c`). That takes the allocation
//! back, does whatever may be pending, collects if there is no room, allocates
//! again, and only then asks whether a sample falls there. But mostly a sample is
//! all there is. So ours asks that first, and leaves everything else to the
//! runtime as it was.
//!
//! What it reads has been proved: the state's layout by [`super::probe`], the index
//! of descriptors by [`Descriptors::find`]. Where that fails, nothing is shortened.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use super::hooks::young_hit;
use super::host::{Host, host};
use super::layout::{LAST_RETURN_ADDRESS, Layout, TRIGGER};
use super::symbols::{GC_ENTRY, Runtime};
use crate::runtimes::attach::patch::Replacement;
use crate::runtimes::attach::symbols::{Symbol, lookup};
use crate::runtimes::ocaml::descriptors::Descriptors;
use crate::runtimes::ocaml::values::part_sizes;
use crate::runtimes::ocaml::version::MajorVersion;
use crate::sampling::PartSizes;

/// What is needed of the runtime.
pub(super) struct NoRoom {
    function: Symbol,
    descriptors: Descriptors,
    singles: Singles,
    /// `caml_something_to_do`
    pending: *const AtomicI32,
    dispatch: Dispatch,
    process_pending: extern "C-unwind" fn(),
}

/// `caml_alloc_small_dispatch`: words without the first header, flags, how many
/// blocks, and their encoded lengths. May raise.
type Dispatch = extern "C-unwind" fn(usize, c_int, c_int, *const u8);

/// `CAML_DO_TRACK | CAML_FROM_CAML` (`runtime/caml/memory.h`).
const FROM_OCAML: c_int = 1 | 2;

/// `frame_descr` (`runtime/caml/stack.h`): where the number of live slots is, and
/// the slots. Behind them are the lengths, and in front of those how many.
const LIVE_COUNT: usize = 10;
const LIVE_SLOTS: usize = 12;

/// What native code allocates in one go.
#[derive(Clone, Copy)]
struct Allocation {
    /// How many blocks; none if it only asks whether anything is pending.
    count: u8,
    /// Their encoded lengths.
    lengths: *const u8,
}

impl Allocation {
    /// The words of each block, with its header.
    fn parts(self) -> impl PartSizes {
        // SAFETY: a descriptor's, which stay.
        unsafe { part_sizes(c_int::from(self.count), self.lengths) }
    }

    /// `Some` if it is one block only.
    fn single(self) -> Option<usize> {
        if self.count == 1 { self.parts().next() } else { None }
    }

    /// Goes on as the runtime does.
    fn pass_to(self, dispatch: Dispatch) {
        let wosize = self.parts().sum::<usize>() - 1;
        dispatch(wosize, FROM_OCAML, c_int::from(self.count), self.lengths);
    }
}

impl NoRoom {
    /// In a runtime for native code whose index of descriptors is as known. Before
    /// `main`.
    pub(super) fn find(runtime: &Runtime, layout: Layout) -> Option<NoRoom> {
        if !layout.native {
            return None;
        }
        let function = runtime.gc_entry.filter(|function| function.size > 0)?;
        let descriptors = Descriptors::find(MajorVersion::Four)?;
        let dispatch = lookup(c"caml_alloc_small_dispatch")?;
        let process_pending = lookup(c"caml_process_pending_actions")?;
        Some(NoRoom {
            function,
            descriptors,
            singles: Singles::NONE,
            pending: runtime.something_to_do as *const AtomicI32,
            // SAFETY: `void caml_alloc_small_dispatch (intnat, int, int, unsigned char*)`.
            dispatch: unsafe { std::mem::transmute::<usize, Dispatch>(dispatch) },
            // SAFETY: `void caml_process_pending_actions (void)`, `runtime/signals.c`.
            process_pending: unsafe {
                std::mem::transmute::<usize, extern "C-unwind" fn()>(process_pending)
            },
        })
    }

    pub(super) fn replacement(&self) -> Replacement {
        let Symbol { address, size } = self.function;
        Replacement { name: GC_ENTRY, address, size, with: gc_entry as *const () as usize }
    }

    /// What is allocated where native code has come from.
    fn allocation(&self, return_address: u64) -> Allocation {
        let descriptor = self.descriptors.record(return_address) as *const u8;
        // SAFETY: native code allocates where there is a descriptor that says so.
        let slots = unsafe { descriptor.wrapping_add(LIVE_COUNT).cast::<u16>().read() };
        let count = descriptor.wrapping_add(LIVE_SLOTS + 2 * usize::from(slots));
        // SAFETY: as above.
        Allocation { count: unsafe { count.read() }, lengths: count.wrapping_add(1) }
    }

    /// Whether a sample falls on the allocation, and there is nothing else to do.
    #[inline]
    fn is_only_sampled(&self, host: &Host) -> bool {
        // SAFETY: a variable of the runtime, of this size; handlers of signals set it.
        let pending = unsafe { &*self.pending }.load(Ordering::Relaxed) != 0;
        let pointer = host.young_pointer();
        !pending && pointer >= host.word(TRIGGER) && pointer < host.trigger()
    }
}

/// In place of `caml_garbage_collection`: native code's allocation has led below
/// the young limit. May raise, and owns nothing.
extern "C-unwind" fn gc_entry() {
    // SAFETY: a hook, and nothing is borrowed any more when others are called.
    let Some(host) = (unsafe { host() }) else { return };
    let return_address = host.word(LAST_RETURN_ADDRESS) as u64;
    // Both are there before there is a jump to here.
    let Some(gc_entry) = &host.gc_entry else { return };
    let only_sampled = gc_entry.is_only_sampled(host);
    if only_sampled && let Some(words) = gc_entry.singles.find(return_address) {
        return young_hit(std::iter::once(words));
    }
    let allocation = gc_entry.allocation(return_address);
    let NoRoom { process_pending, dispatch, .. } = *gc_entry;
    if allocation.count == 0 {
        return process_pending();
    }
    if !only_sampled {
        return allocation.pass_to(dispatch);
    }
    let Some(words) = allocation.single() else { return young_hit(allocation.parts()) };
    if let Some(gc_entry) = &mut host.gc_entry {
        gc_entry.singles.add(return_address, words);
    }
    young_hit(std::iter::once(words));
}

/// Where native code allocates one block, and its words: as far as samples have
/// fallen there. To read a descriptor takes several lines of memory that nothing
/// else has used lately.
struct Singles([u64; 256]);

/// Where in an entry the words are. Addresses of code are below.
const WORDS_SHIFT: u32 = 48;

impl Singles {
    const NONE: Singles = Singles([0; 256]);

    /// A return address belongs to one entry only.
    fn place(return_address: u64) -> usize {
        usize::from(return_address as u8)
    }

    /// The words that are allocated there, if that is known.
    #[inline]
    fn find(&self, return_address: u64) -> Option<usize> {
        let entry = self.0[Self::place(return_address)];
        let (address, words) = (entry & ((1 << WORDS_SHIFT) - 1), entry >> WORDS_SHIFT);
        (address == return_address && words != 0).then_some(words as usize)
    }

    fn add(&mut self, return_address: u64, words: usize) {
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
