//! The blocks of the major heap, in pools and by themselves, and of the young heaps
//! (`runtime/shared_heap.c`, 5.3.0).

use heaptap_heap::SegmentKind;

use super::domains::Domains;
use super::variables::Variables;
use crate::runtimes::ocaml::five::layout::{POOL, POOL_HEADER};
use crate::runtimes::ocaml::heap::{BlockWriter, Region, Words};
use crate::runtimes::ocaml::values::Header;
use crate::snapshot::WalkError;
use crate::tracer::WORD;

/// In bytes: where a pool has the number of its size class, an `unsigned int`.
const POOL_SIZE_CLASS: usize = 24;

/// `wsize_sizeclass` (`runtime/caml/sizeclasses.h`): words with the header.
const SIZES: [usize; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 17, 19, 22, 25, 28, 32, 33, 37, 42, 47, 53, 59, 65, 73,
    81, 89, 99, 108, 118, 128,
];

/// `struct caml_heap_state`: four lists of pools for each size class, then two lists of
/// blocks by themselves.
const DOMAIN_POOLS: usize = 128;
const DOMAIN_LARGE: [usize; 2] = [128, 129];

/// `pool_freelist`: words where the pools of ended domains are, and their blocks by themselves.
const ORPHAN_POOLS: std::ops::Range<usize> = 0x70 / WORD..0x270 / WORD;
const ORPHAN_LARGE: usize = 0x270 / WORD;

/// `struct large_alloc`: owner, next; then the header of the block.
const LARGE_NEXT: usize = 1;
const LARGE_HEADER: usize = 2;

/// `caml_global_heap_state`: `GARBAGE`
const GARBAGE: usize = 2;

/// Writes all blocks, and prepares `writer` to tell which addresses are in the heap.
pub(super) fn write(
    variables: &Variables,
    domains: &Domains,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    let words = writer.words;
    for_each_part(variables, domains, words, &mut |part| writer.regions.add(part.region(words)))?;
    writer.regions.sort();
    let garbage = words.field(variables.heap_state, GARBAGE);
    for_each_part(variables, domains, words, &mut |part| part.write(writer, garbage))
}

/// A part of the heap.
#[derive(Clone, Copy)]
enum Part {
    Pool(usize),
    /// A block by itself, by the address of its `large_alloc`.
    Large(usize),
    Young(Region),
}

/// Calls `visit` for every part, always in the same order.
fn for_each_part(
    variables: &Variables,
    domains: &Domains,
    words: Words,
    visit: &mut dyn FnMut(Part) -> Result<(), WalkError>,
) -> Result<(), WalkError> {
    let mut list = |first: usize, next: usize, part: fn(usize) -> Part| -> Result<(), WalkError> {
        let mut at = first;
        while at != 0 {
            visit(part(at))?;
            at = words.field(at, next);
        }
        Ok(())
    };
    for domain in domains.all() {
        let heap = words.field(domain.state, variables.heap.shared_heap);
        if heap == 0 {
            continue;
        }
        for index in 0..DOMAIN_POOLS {
            list(words.field(heap, index), 0, Part::Pool)?;
        }
        for index in DOMAIN_LARGE {
            list(words.field(heap, index), LARGE_NEXT, Part::Large)?;
        }
    }
    for index in ORPHAN_POOLS {
        list(words.field(variables.pool_freelist, index), 0, Part::Pool)?;
    }
    list(words.field(variables.pool_freelist, ORPHAN_LARGE), LARGE_NEXT, Part::Large)?;
    for state in domains.waiting() {
        let start = words.field(state, variables.layout.young_ptr);
        let end = words.field(state, variables.layout.young_end);
        if start < end {
            visit(Part::Young(Region { start, end }))?;
        }
    }
    Ok(())
}

impl Part {
    fn region(self, words: Words) -> Region {
        match self {
            Part::Pool(pool) => Region { start: pool, end: pool + POOL * WORD },
            Part::Large(large) => {
                let start = large + LARGE_HEADER * WORD;
                let size = Header(words.word(start)).size();
                Region { start, end: start + (size + 1) * WORD }
            }
            Part::Young(region) => region,
        }
    }

    fn write(self, writer: &mut BlockWriter<'_, '_>, garbage: usize) -> Result<(), WalkError> {
        const BEYOND: WalkError = WalkError::Heap("a block beyond a young heap");
        let words = writer.words;
        let region = self.region(words);
        let kind = match self {
            Part::Pool(_) => SegmentKind::Major,
            Part::Large(_) => SegmentKind::Large,
            Part::Young(_) => SegmentKind::Young,
        };
        writer.segment(kind, region)?;
        let is_block = |header: Header| header.0 != 0 && header.colour() != garbage;
        match self {
            Part::Pool(pool) => write_pool(writer, pool, is_block),
            Part::Large(_) => {
                let header = Header(words.word(region.start));
                let block = region.start + WORD;
                if is_block(header) { writer.block(block, header) } else { Ok(()) }
            }
            // It has no gaps.
            Part::Young(region) => writer.blocks(region, BEYOND, |_, _| true),
        }
    }
}

/// A pool has slots of one size.
fn write_pool(
    writer: &mut BlockWriter<'_, '_>,
    pool: usize,
    is_block: impl Fn(Header) -> bool,
) -> Result<(), WalkError> {
    const WRONG: WalkError = WalkError::Heap("a pool");
    let words = writer.words;
    let class = usize::try_from(words.int(pool + POOL_SIZE_CLASS)).map_err(|_| WRONG)?;
    let slot = *SIZES.get(class).ok_or(WRONG)?;
    // What the slots leave over is in front of them (`wastage_sizeclass`).
    let slots = (POOL - POOL_HEADER) / slot;
    let first = pool + (POOL - slots * slot) * WORD;
    for index in 0..slots {
        let at = first + index * slot * WORD;
        let header = Header(words.word(at));
        if is_block(header) {
            if header.size() >= slot {
                return Err(WRONG);
            }
            writer.block(at + WORD, header)?;
        }
    }
    Ok(())
}
