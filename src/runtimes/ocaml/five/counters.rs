//! The collector's counters, as `Gc.quick_stat` has them (`caml_compute_gc_stats`,
//! `runtime/gc_stats.c`). That function sums what each domain has left at its last collection. It needs
//! the state of a domain, so the writer thread asks for the sums, and the next domain that ends
//! a minor collection computes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::fiber_stacks;
use crate::probes::{Heap, ReadHeap};
use crate::runtimes::attach::symbols::{function_at, lookup};

/// `struct gc_stats` in words: four of allocations, eight of the heap.
const WORDS: usize = 12;
/// What the function is given, in case it writes more.
const ROOM: usize = 64;
/// In every word before the call.
const UNTOUCHED: u64 = 0x7ea9_7a97_0000_dead;

static COMPUTE: AtomicUsize = AtomicUsize::new(0);
static WANTED: AtomicBool = AtomicBool::new(false);
/// Whether there are sums.
static KNOWN: AtomicBool = AtomicBool::new(false);
static SUMS: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// Reads the counters.
pub(super) fn reader() -> ReadHeap {
    COMPUTE.store(lookup(c"caml_compute_gc_stats").unwrap_or(0), Ordering::Relaxed);
    let counts = [
        c"caml_minor_collections_count",
        c"caml_major_cycles_completed",
        c"caml_compactions_count",
    ]
    .map(lookup);
    Arc::new(move || {
        WANTED.store(true, Ordering::Relaxed);
        fiber_stacks::record();
        // SAFETY: `uintnat` variables of the runtime, atomic ones among them.
        let count = |at: usize| unsafe { (at as *const u64).read_volatile() };
        let [minor_collections, major_collections, compactions] = counts.map(|at| at.map(count));
        Heap { minor_collections, major_collections, compactions, ..sums() }
    })
}

fn sums() -> Heap {
    if !KNOWN.load(Ordering::Acquire) {
        return Heap::default();
    }
    let word = |index: usize| SUMS.get(index).map(|sum| sum.load(Ordering::Relaxed));
    let [pool, pool_live, large] = [4, 6, 9].map(|index| word(index).unwrap_or(0));
    Heap {
        minor_words: word(0),
        promoted_words: word(1),
        major_words: word(2),
        heap_words: Some(pool.saturating_add(large)),
        live_words: Some(pool_live.saturating_add(large)),
        ..Heap::default()
    }
}

/// A minor collection of the running domain is over.
pub(super) fn after_minor_collection() {
    if !WANTED.load(Ordering::Relaxed) || !WANTED.swap(false, Ordering::Relaxed) {
        return;
    }
    let compute = COMPUTE.load(Ordering::Relaxed);
    if compute == 0 {
        return;
    }
    // SAFETY: `void caml_compute_gc_stats(struct gc_stats *)`, `runtime/gc_stats.c`.
    let compute: extern "C" fn(*mut u64) = unsafe { function_at(compute) };
    let mut room = [UNTOUCHED; ROOM];
    compute(room.as_mut_ptr());
    let (sums, rest) = room.split_at(WORDS);
    if sums.contains(&UNTOUCHED) || rest.iter().any(|&word| word != UNTOUCHED) {
        // Another structure than the one we know: its numbers would be wrong.
        COMPUTE.store(0, Ordering::Relaxed);
        return;
    }
    for (to, &sum) in SUMS.iter().zip(sums) {
        to.store(sum, Ordering::Relaxed);
    }
    KNOWN.store(true, Ordering::Release);
}
