//! The collector's counters, as `Gc.quick_stat` has them (`runtime/gc_ctrl.c`). Read on the writer
//! thread, while the program changes them: a number may be that of a moment ago.

use std::sync::Arc;

use super::layout::StateLayout;
use super::state::State;
use super::symbols::Runtime;
use crate::probes::{Heap, ReadHeap};
use crate::runtimes::attach::symbols::lookup;
use crate::tracer::WORD;

/// Reads the counters of a runtime whose layout is proved.
pub(super) fn reader(runtime: &Runtime, layout: &'static StateLayout) -> ReadHeap {
    let state = runtime.state;
    let free = lookup(c"caml_fl_cur_wsz");
    let allocated = lookup(c"caml_allocated_words");
    Arc::new(move || read(state, layout, free, allocated).unwrap_or_default())
}

fn read(
    state: usize,
    layout: &StateLayout,
    free: Option<usize>,
    allocated: Option<usize>,
) -> Option<Heap> {
    // SAFETY: `Caml_state`, a variable of the runtime.
    let state = unsafe { variable(state) };
    if state == 0 {
        // Before the runtime has started.
        return None;
    }
    // SAFETY: the state is never freed, and `prove` has shown its layout.
    let word = |index: usize| unsafe { variable(state + index * size_of::<usize>()) };
    let words = |index| f64::from_bits(word(index) as u64).max(0.0) as u64;
    // The three before it are numbers of words, in the order of `domain_state.tbl`.
    let minor_collections = layout.stat_major_collections - 1;
    let heap_words = word(layout.stat_heap_wsz) as u64;
    // SAFETY: `asize_t caml_fl_cur_wsz`, `runtime/freelist.c`.
    let free = free.map(|free| unsafe { variable(free) } as u64);
    // SAFETY: `uintnat caml_allocated_words`, `runtime/memory.c`: since the last slice.
    let allocated = allocated.map_or(0, |allocated| unsafe { variable(allocated) } as u64);
    Some(Heap {
        minor_words: Some(words(minor_collections - 3)),
        promoted_words: Some(words(minor_collections - 2)),
        major_words: Some(words(minor_collections - 1).saturating_add(allocated)),
        minor_collections: Some(word(minor_collections) as u64),
        major_collections: Some(word(layout.stat_major_collections) as u64),
        compactions: Some(word(layout.stat_heap_wsz + 2) as u64),
        heap_words: Some(heap_words),
        live_words: free.map(|free| heap_words.saturating_sub(free)),
    })
}

/// The words that the program has allocated, those in its young heap included. Under the master lock;
/// `None` before the runtime has a heap.
pub(super) fn allocated_words(state: State) -> Option<u64> {
    if !state.exists() || state.young_start() == 0 {
        return None;
    }
    let heap = read(state.pointer as usize, state.layout, None, lookup(c"caml_allocated_words"))?;
    let young = state.word(state.layout.young_alloc_end).checked_sub(state.young_pointer())?;
    let all = heap.minor_words? + heap.major_words? + (young / WORD) as u64;
    all.checked_sub(heap.promoted_words?)
}

/// A word that another thread may change.
///
/// # Safety
/// It can be read.
unsafe fn variable(address: usize) -> usize {
    // SAFETY: readable, by this function's contract.
    unsafe { (address as *const usize).read_volatile() }
}
