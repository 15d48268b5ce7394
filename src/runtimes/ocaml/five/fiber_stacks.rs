//! The memory of suspended fibers, for the time line.
//!
//! A fiber has a stack from malloc. While it is suspended only its continuation knows it, a block
//! of two words, and the runtime keeps no count. So each domain counts the continuations in its
//! pools at the end of each major cycle, where all domains stand still and young heaps are empty;
//! that is inside a hook, and must be short. It looks at [`MOST_POOLS`] pools and, if there are
//! more, at each n-th of them. It does not follow continuations: one that is dead may point to a stack
//! that is freed (`stack::is_whole`, in `heap`). The writer thread does that for some of them,
//! with reads that cannot fault, for the mean size of a stack.
//!
//! Not counted are the stacks of running fibers, those that the runtime keeps for later, and the stacks
//! of continuations that were collected without being resumed: 5.3.0 never frees these
//! (`runtime/shared_heap.c`).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

use super::layout::{
    HANDLER_PARENT, HANDLER_WORDS, HeapLayout, POOL, POOL_HEADER, STACK_HANDLER, word,
};
use crate::probes::ProbeKind;
use crate::runtimes::attach::attached;
use crate::runtimes::attach::symbols::lookup;
use crate::runtimes::ocaml::values::{CONTINUATION, Header};
use crate::sys::clock::TickSource;
use crate::sys::memory::{MappedArray, Zeroable};
use crate::sys::process_memory::read_word;
use crate::tracer::WORD;

/// The most pools that a domain looks at, 32 KiB each: about a millisecond.
const MOST_POOLS: usize = 256;
/// More pools than any domain has: a list that does not end.
const LONGEST_LIST: usize = 1 << 24;

/// Where `struct caml_heap_state` has the four lists of pools whose slots have three words, which is
/// what a continuation takes (`runtime/shared_heap.c`, 5.3.0).
const POOL_LISTS: [usize; 4] = [2, 34, 66, 98];
const SLOT: usize = 3;
/// The size of a continuation.
const CONTINUATION_WORDS: usize = 2;

/// As many domains as the runtime allows unless it is asked for more; others are not counted.
const DOMAINS: usize = 128;
/// Stacks of a domain whose sizes are looked at: ten milliseconds of the writer thread.
const SAMPLES: usize = 16_384;
/// Fibers of one continuation that are looked at.
const MOST_FIBERS: usize = 64;

/// What a domain has counted.
struct DomainFibers {
    /// Continuations that were not resumed.
    suspended: AtomicU64,
    /// Stacks of some of them: [`SAMPLES`] places, made when the first is found.
    stacks: OnceLock<MappedArray<StackPlace>>,
    /// How many of these places are filled.
    filled: AtomicUsize,
    /// How many pools there were.
    pools: AtomicUsize,
    /// Changes when the domain begins to count, and when it has counted; even while it does not.
    version: AtomicU32,
}

/// The address of a stack.
struct StackPlace(AtomicUsize);

// SAFETY: a number, which may be zero and needs no drop.
unsafe impl Zeroable for StackPlace {}

static FIBERS: [DomainFibers; DOMAINS] = [const {
    DomainFibers {
        suspended: AtomicU64::new(0),
        stacks: OnceLock::new(),
        filled: AtomicUsize::new(0),
        pools: AtomicUsize::new(0),
        version: AtomicU32::new(0),
    }
}; DOMAINS];

static IS_ON: AtomicBool = AtomicBool::new(false);
/// Changes when a domain has counted.
static COUNTED: AtomicU32 = AtomicU32::new(0);
static SEEN: AtomicU32 = AtomicU32::new(0);
/// Whether there were ever any fibers.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Has domains count, if the program can have fibers. Before `main`.
pub(super) fn watch(is_native: bool) {
    // Bytecode does not say so here.
    let may_have_fibers = !is_native || lookup(c"camlStdlib__Effect").is_some();
    IS_ON.store(may_have_fibers, Ordering::Relaxed);
}

/// Counts the suspended fibers of a domain. In its last hook of a major cycle.
///
/// # Safety
/// The state of the domain that runs, of a release with this layout. All domains stand still, or promote into
/// their own pools.
pub(super) unsafe fn count(state: usize, layout: Option<&HeapLayout>) {
    let Some(layout) = layout.filter(|_| IS_ON.load(Ordering::Relaxed)) else { return };
    // SAFETY: the state has this word, by the contract; an `int`.
    let id = unsafe { word(state, layout.id) } as u32;
    // SAFETY: the state has this word too, by the contract; NULL or the domain's heap.
    let heap = unsafe { word(state, layout.shared_heap) };
    let Some(fibers) = FIBERS.get(id as usize).filter(|_| heap != 0) else { return };
    fibers.version.fetch_add(1, Ordering::AcqRel);
    let stride = fibers.pools.load(Ordering::Relaxed).div_ceil(MOST_POOLS).max(1);
    let (mut pools, mut looked_at, mut found) = (0usize, 0u64, 0usize);
    for list in POOL_LISTS {
        // SAFETY: the heap of a domain has these words.
        let mut pool = unsafe { word(heap, list) };
        while pool != 0 && pools < LONGEST_LIST {
            if pools % stride == 0 {
                looked_at += 1;
                // SAFETY: a pool of this domain, which only this thread changes.
                unsafe { for_each_stack(pool, |stack| fibers.sample(&mut found, stack)) };
            }
            pools += 1;
            // SAFETY: the same pool; its first word is the next one.
            pool = unsafe { word(pool, 0) };
        }
    }
    fibers.pools.store(pools, Ordering::Relaxed);
    let all = (found as u64).saturating_mul(pools as u64) / looked_at.max(1);
    fibers.suspended.store(all, Ordering::Relaxed);
    fibers.filled.store(found.min(SAMPLES), Ordering::Relaxed);
    fibers.version.fetch_add(1, Ordering::AcqRel);
    COUNTED.fetch_add(1, Ordering::Release);
}

/// A domain ends: whoever takes its pools counts what is in them.
///
/// # Safety
/// The state of a domain of a release with this layout.
pub(super) unsafe fn withdraw(state: usize, layout: Option<&HeapLayout>) {
    let Some(layout) = layout else { return };
    // SAFETY: the state has this word, an `int`.
    let id = unsafe { word(state, layout.id) } as u32;
    if let Some(fibers) = FIBERS.get(id as usize) {
        fibers.suspended.store(0, Ordering::Relaxed);
        COUNTED.fetch_add(1, Ordering::Release);
    }
}

/// Calls `found` with the stack of each continuation in a pool that was not resumed.
///
/// # Safety
/// A pool with slots of [`SLOT`] words that nobody changes.
unsafe fn for_each_stack(pool: usize, mut found: impl FnMut(usize)) {
    let slots = (POOL - POOL_HEADER) / SLOT;
    // What the slots leave over is in front of them.
    let first = pool + (POOL - slots * SLOT) * WORD;
    for index in 0..slots {
        let slot = first + index * SLOT * WORD;
        // SAFETY: a slot of the pool, which begins with a header.
        let header = Header(unsafe { word(slot, 0) });
        if (header.tag(), header.size()) == (CONTINUATION, CONTINUATION_WORDS) {
            // SAFETY: a block of two words is behind the header.
            let stack = unsafe { word(slot, 1) } & !1;
            if stack != 0 {
                found(stack);
            }
        }
    }
}

impl DomainFibers {
    /// Keeps a random choice of the stacks that were found so far (algorithm R, Vitter 1985).
    fn sample(&self, found: &mut usize, stack: usize) {
        let place =
            if *found < SAMPLES { *found } else { scatter(scatter(*found) ^ stack) % (*found + 1) };
        if self.stacks.get().is_none()
            && let Some(places) = MappedArray::new(SAMPLES)
        {
            // Nobody else sets it: one domain has this number at a time.
            let _ = self.stacks.set(places);
        }
        if let Some(place) = self.stacks.get().and_then(|places| places.get(place)) {
            place.0.store(stack, Ordering::Relaxed);
        }
        *found += 1;
    }

    /// The stacks that were kept.
    fn sampled(&self) -> impl Iterator<Item = usize> {
        let places = self.stacks.get().map_or(&[][..], |places| places);
        let filled = self.filled.load(Ordering::Relaxed);
        places.iter().take(filled).map(|place| place.0.load(Ordering::Relaxed))
    }

    /// The bytes of all stacks of suspended fibers. `None` if the domain has counted meanwhile.
    fn bytes(&self) -> Option<f64> {
        let version = self.version.load(Ordering::Acquire);
        let sizes: Vec<usize> =
            self.sampled().filter_map(|stack| chain_bytes(stack, read_word)).collect();
        let suspended = self.suspended.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if !version.is_multiple_of(2) || self.version.load(Ordering::Relaxed) != version {
            return None;
        }
        let mean = sizes.iter().sum::<usize>() as f64 / sizes.len().max(1) as f64;
        Some(mean * suspended as f64)
    }
}

/// A number that looks random (the last step of `MurmurHash3`).
fn scatter(number: usize) -> usize {
    let mut mixed = number as u64;
    mixed = (mixed ^ mixed >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (mixed ^ mixed >> 33) as usize
}

/// The bytes of a stack and of those below it; `None` if there is none any more.
fn chain_bytes(first: usize, read: impl Fn(usize) -> Option<usize>) -> Option<usize> {
    /// The largest stack that OCaml makes unless it is asked for more, 128 M words.
    const LARGEST: usize = 1 << 30;
    let (mut bytes, mut stack) = (0, first);
    for _ in 0..MOST_FIBERS {
        let handler = read(stack.checked_add(STACK_HANDLER * WORD)?)?;
        let size =
            handler.checked_sub(stack).filter(|size| *size <= LARGEST && size % WORD == 0)?;
        bytes += size + HANDLER_WORDS * WORD;
        stack = read(handler.checked_add(HANDLER_PARENT * WORD)?)?;
        if stack == 0 {
            break;
        }
    }
    Some(bytes)
}

/// Records what was counted since the last call, as a value of the time line. Writer thread.
pub(super) fn record() {
    let counted = COUNTED.load(Ordering::Acquire);
    if SEEN.load(Ordering::Relaxed) == counted {
        return;
    }
    // Where a domain counts right now, the next call has it.
    let Some(bytes) = FIBERS.iter().map(DomainFibers::bytes).sum::<Option<f64>>() else { return };
    SEEN.store(counted, Ordering::Relaxed);
    // A program without fibers has no such value.
    if bytes == 0.0 && !IS_SHOWN.load(Ordering::Relaxed) {
        return;
    }
    let Some(attached) = attached() else { return };
    let clock = TickSource::detect();
    if let Some(probe) = attached.probes.open(ProbeKind::Value, NAME, clock) {
        IS_SHOWN.store(true, Ordering::Relaxed);
        probe.value.set(bytes.round());
    }
}

/// The name of the value.
const NAME: &[u8] = b"OCaml/suspended fibers (bytes of stacks)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuations_that_were_not_resumed_are_found_in_a_pool() {
        let mut pool = vec![0usize; POOL];
        let continuation = CONTINUATION_WORDS << 10 | usize::from(CONTINUATION);
        let slots = (POOL - POOL_HEADER) / SLOT;
        let first = POOL - slots * SLOT;
        let mut put = |slot: usize, header: usize, field: usize| {
            pool[first + slot * SLOT] = header;
            pool[first + slot * SLOT + 1] = field;
        };
        put(0, continuation, 0x1001);
        put(1, continuation | 1 << 8, 0x2001);
        put(2, continuation, 1);
        put(3, 2 << 10, 0x3000);
        put(slots - 1, continuation | 2 << 8, 0x4001);
        let mut stacks = Vec::new();
        // SAFETY: words of this test.
        unsafe { for_each_stack(pool.as_ptr() as usize, |stack| stacks.push(stack)) };
        assert_eq!(stacks, [0x1000, 0x2000, 0x4000]);
    }

    #[test]
    fn stacks_below_are_added_and_what_is_no_stack_has_no_size() {
        // Two stacks of 0x300 and 0x500 bytes, with their handlers.
        let words = [(0x1010, 0x1300), (0x1318, 0x2000), (0x2010, 0x2500), (0x2518, 0)];
        let read = |at: usize| words.iter().find(|(place, _)| *place == at).map(|word| word.1);
        assert_eq!(chain_bytes(0x1000, read), Some(0x300 + 0x500 + 64));
        assert_eq!(chain_bytes(0x3000, read), None);
        assert_eq!(chain_bytes(0x1000, |_| Some(0x10)), None, "the handler is in front");
        assert_eq!(chain_bytes(usize::MAX - 4, |_| Some(0)), None);
    }

    #[test]
    fn a_choice_of_the_stacks_is_kept() {
        let fibers = &FIBERS[DOMAINS - 1];
        let kept = || fibers.sampled().collect::<Vec<_>>();
        let mut found = 0;
        (1..=10).for_each(|stack| fibers.sample(&mut found, stack));
        fibers.filled.store(found, Ordering::Relaxed);
        assert_eq!(kept(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let all = 16 * SAMPLES;
        (11..=all).for_each(|stack| fibers.sample(&mut found, stack));
        fibers.filled.store(SAMPLES, Ordering::Relaxed);
        // Each has the same chance: of the last half, half of the choice; σ = 64.
        let late = kept().iter().filter(|stack| **stack > all / 2).count();
        assert!(late.abs_diff(SAMPLES / 2) < 5 * 64, "{late} of {SAMPLES}");
    }
}
