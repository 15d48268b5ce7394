//! How large tagged values are, with all that they reach: what `Obj.reachable_words` would count
//! for a block that points to all of them (`runtime/extern.c`), each block once.
//!
//! Measured inside a hook, while the program stands still and the collector knows which values are
//! alive. So it must be short: it ends after [`MAX_BLOCKS`], and then gives a lower bound; and it
//! is not begun again before 50 times as long has passed. In OCaml 5 each domain measures the
//! values that it has tagged, and what values of two domains share counts for both.

use super::values::{CLOSURE, INFIX, NO_SCAN, environment, header};
use crate::probes::{Cell, SizeShare};
use crate::sys::memory::{MappedVec, Region};
use crate::tracer::{Mutator, WORD};

/// The most blocks that are visited: a few milliseconds.
const MAX_BLOCKS: usize = 1 << 16;
/// Twice as many slots, so that a search in them is short.
const SLOTS: usize = 2 * MAX_BLOCKS;

/// At most a fiftieth of the time is spent on it.
const REST: u64 = 50;
/// The most nanoseconds that a block takes: it and its slot are not in a cache.
const BLOCK_NS: u64 = 400;

/// The memory for it, and what was measured last. Mapped at the first measurement.
pub(super) struct TagSizes {
    /// Blocks that were visited, by hash; 0 for none.
    slots: Region,
    /// The same blocks in the order in which they were found, with their slots.
    found: MappedVec<(usize, usize)>,
    /// Tagged blocks: probe and address.
    tagged: MappedVec<(u64, usize)>,
    /// What this mutator has said of each probe.
    shares: MappedVec<Option<SizeShare>>,
    /// Before this tick nothing is measured.
    not_before: u64,
}

impl TagSizes {
    /// `None` without memory.
    fn new() -> Option<TagSizes> {
        Some(TagSizes {
            slots: Region::new(SLOTS)?,
            found: MappedVec::new(MAX_BLOCKS)?,
            tagged: MappedVec::new(1_024)?,
            shares: MappedVec::new(16)?,
            not_before: 0,
        })
    }

    /// Adds a block to those found, unless it is there.
    fn find(&mut self, block: usize) {
        // Fibonacci hashing.
        let hash = (block >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = hash >> (usize::BITS - SLOTS.trailing_zeros());
        while let Some(slot) = self.slots.get_mut(at % SLOTS) {
            if *slot == block as u64 {
                return;
            }
            if *slot == 0 {
                let added = self.found.push((block, at % SLOTS));
                if added {
                    *slot = block as u64;
                }
                return;
            }
            at += 1;
        }
    }

    fn forget_found(&mut self) {
        for &(_, slot) in self.found.iter() {
            if let Some(slot) = self.slots.get_mut(slot) {
                *slot = 0;
            }
        }
        self.found.truncate(0);
    }

    /// Says what a probe's values of this mutator reach.
    fn publish(&mut self, probe: u64, cell: Option<&'static Cell>, share: SizeShare) {
        let at = probe as usize;
        while self.shares.len() <= at {
            if !self.shares.push(None) {
                return;
            }
        }
        if let (Some(last), Some(cell)) = (self.shares.get_mut(at), cell) {
            cell.size.change(last.replace(share), Some(share));
        }
    }
}

/// Measures what the tagged values of a mutator reach. `is_counted` tells whether a block is:
/// pointers to anything else are not followed.
///
/// # Safety
/// The program stands still, and the tagged values of the mutator are alive: all that they reach
/// can be read.
pub(super) unsafe fn measure(
    sizes: &mut Option<TagSizes>,
    mutator: &Mutator,
    is_counted: impl Fn(usize) -> bool,
) {
    if sizes.is_none() && !mutator.has_tagged() {
        return;
    }
    if sizes.is_none() {
        *sizes = TagSizes::new();
    }
    let Some(sizes) = sizes else { return };
    let begin = mutator.ticks();
    if begin < sizes.not_before {
        return;
    }
    sizes.tagged.truncate(0);
    for (address, probe) in mutator.tagged() {
        if !sizes.tagged.push((probe, address)) {
            return;
        }
    }
    sizes.tagged.sort_unstable();
    let probes = &mutator.session().probes;
    let (mut at, mut left) = (0, MAX_BLOCKS);
    let known = sizes.shares.len() as u64;
    let mut next = 0;
    while let Some(&(probe, _)) = sizes.tagged.get(at) {
        none_left(sizes, next..probe.min(known), mutator);
        next = probe + 1;
        sizes.forget_found();
        let mut cut = false;
        while let Some(&(_, block)) = sizes.tagged.get(at).filter(|&&(same, _)| same == probe) {
            cut |= sizes.found.len() >= left;
            if !cut {
                sizes.find(block);
            }
            at += 1;
        }
        // SAFETY: this function has the same requirements.
        let (words, all) = unsafe { visit(sizes, left, &is_counted) };
        left = left.saturating_sub(sizes.found.len());
        sizes.publish(probe, probes.cell(probe), SizeShare { words, cut: cut || !all });
    }
    none_left(sizes, next..known, mutator);
    let end = mutator.ticks();
    // A thread that had to wait for a processor has not worked meanwhile.
    let work =
        end.saturating_sub(begin).min(mutator.ticks_in((MAX_BLOCKS - left) as u64 * BLOCK_NS));
    sizes.not_before = end.saturating_add(work.saturating_mul(REST));
}

/// These probes have no values any more.
fn none_left(sizes: &mut TagSizes, probes: std::ops::Range<u64>, mutator: &Mutator) {
    for probe in probes {
        if sizes.shares.get(probe as usize).is_some_and(Option::is_some) {
            let none = SizeShare { words: 0, cut: false };
            sizes.publish(probe, mutator.session().probes.cell(probe), none);
        }
    }
}

/// The mutator ends: others measure its values from now on.
pub(super) fn withdraw(sizes: &mut Option<TagSizes>, mutator: &Mutator) {
    let Some(sizes) = sizes.take() else { return };
    for (probe, share) in sizes.shares.iter().enumerate() {
        if let (Some(_), Some(cell)) = (share, mutator.session().probes.cell(probe as u64)) {
            cell.size.change(*share, None);
        }
    }
}

/// The words of the blocks that were found, and of all that they reach. False: there are more
/// than `most`.
///
/// # Safety
/// As for [`measure`].
unsafe fn visit(
    sizes: &mut TagSizes,
    most: usize,
    is_counted: &impl Fn(usize) -> bool,
) -> (u64, bool) {
    let (mut at, mut total) = (0, 0);
    while let Some(&(block, _)) = sizes.found.get(at) {
        at += 1;
        // SAFETY: a block of the heap, by this function's contract.
        let head = unsafe { header(block) };
        total += head.words() as u64;
        if head.tag() >= NO_SCAN {
            continue;
        }
        // SAFETY: called with fields of this block only; a closure has two.
        let field = |index| unsafe { (block as *const usize).wrapping_add(index).read() };
        let first = if head.tag() == CLOSURE { environment(field(1)) } else { 0 };
        for value in (first..head.size()).map(field) {
            if value & 1 == 1 || value == 0 || !is_counted(value) {
                continue;
            }
            if sizes.found.len() >= most {
                return (total, false);
            }
            // SAFETY: a block, by this function's contract.
            sizes.find(unsafe { normalised(value) });
        }
    }
    (total, true)
}

/// The block that a pointer into a closure is part of (`Infix_offset_hd`).
///
/// # Safety
/// A block, or a pointer into one behind a header of its own.
unsafe fn normalised(value: usize) -> usize {
    // SAFETY: by this function's contract.
    let head = unsafe { header(value) };
    if head.tag() == INFIX { value - head.size() * WORD } else { value }
}
