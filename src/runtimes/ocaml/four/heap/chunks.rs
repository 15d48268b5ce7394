//! The blocks of the major heap and of the young heap.
//!
//! The major heap is a list of chunks by ascending address. In front of each is its
//! `heap_chunk_head` (`runtime/caml/major_gc.h`), which has grown by a word in 4.14. Which of
//! the two it is shows when the sizes are added up.

use heaptap_heap::{MetaKey, SegmentKind};

use super::variables::Variables;
use crate::runtimes::ocaml::four::layout::ChunkHead;
use crate::runtimes::ocaml::heap::{BlockWriter, Region, Words};
use crate::runtimes::ocaml::values::Header;
use crate::snapshot::WalkError;
use crate::tracer::WORD;

/// Colours of headers (`runtime/caml/gc.h`).
const WHITE: usize = 0;
const BLUE: usize = 2 << 8;

/// `Phase_sweep`
const SWEEPING: i32 = 2;

/// The phases of the collector, by their numbers (`runtime/caml/major_gc.h`).
const PHASES: [&str; 4] = ["mark", "clean", "sweep", "idle"];

/// Writes all chunks, with their blocks, and prepares `writer` to tell which addresses are in
/// the heap.
pub(super) fn write(
    variables: &Variables,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    const BEYOND: WalkError = WalkError::Heap("a block beyond its chunk");
    let words = writer.words;
    let phase = words.int(variables.gc_phase);
    let name = usize::try_from(phase).ok().and_then(|phase| PHASES.get(phase));
    writer.encoder.meta(MetaKey::GC_PHASE, name.unwrap_or(&"unknown").as_bytes())?;
    let young = young_region(variables, words);
    let head = chunk_head(variables, words).ok_or(WalkError::Heap("the list of chunks"))?;
    Chunks::of(variables, head, words).try_for_each(|chunk| writer.regions.add(chunk))?;
    writer.regions.add(young)?;
    writer.regions.sort();
    let swept =
        Swept { position: words.word(variables.sweep_position), is_sweeping: phase == SWEEPING };
    for chunk in Chunks::of(variables, head, words).filter(|chunk| chunk.start < chunk.end) {
        writer.segment(SegmentKind::Major, chunk)?;
        writer.blocks(chunk, BEYOND, |at, header| swept.is_block(at, header))?;
    }
    if young.start < young.end {
        writer.segment(SegmentKind::Young, young)?;
    }
    writer.blocks(young, BEYOND, |_, _| true)
}

/// The blocks and words, without headers, of the major heap. After a collection.
pub(super) fn count(variables: &Variables, words: Words) -> Option<(u64, u64)> {
    let head = chunk_head(variables, words)?;
    let swept = Swept { position: 0, is_sweeping: false };
    let (mut blocks, mut size) = (0, 0);
    for chunk in Chunks::of(variables, head, words) {
        let mut at = chunk.start;
        while at < chunk.end {
            let header = Header(words.word(at));
            if swept.is_block(at, header) {
                blocks += 1;
                size += header.size() as u64;
            }
            at += (header.size() + 1) * WORD;
        }
    }
    Some((blocks, size))
}

/// What has been allocated in the young heap. It has no gaps.
fn young_region(variables: &Variables, words: Words) -> Region {
    let layout = variables.layout;
    Region {
        start: variables.state(words, layout.young_ptr),
        end: variables.state(words, layout.young_alloc_end),
    }
}

/// The layout with which the chunks add up to what the runtime counts.
fn chunk_head(variables: &Variables, words: Words) -> Option<ChunkHead> {
    let heap = variables.state(words, variables.layout.stat_heap_wsz) * WORD;
    let count = variables.state(words, variables.layout.stat_heap_chunks);
    variables.known.chunk_heads.iter().copied().find(|&head| {
        let mut left = (heap, count);
        for chunk in Chunks::of(variables, head, words) {
            let size = chunk.end.wrapping_sub(chunk.start);
            let is_plausible = size != 0 && size.is_multiple_of(WORD) && size <= left.0;
            if !is_plausible || left.1 == 0 {
                return false;
            }
            left = (left.0 - size, left.1 - 1);
        }
        left == (0, 0)
    })
}

/// The chunks of the major heap.
struct Chunks {
    words: Words,
    head: ChunkHead,
    /// 0 at the end.
    next: usize,
}

impl Chunks {
    fn of(variables: &Variables, head: ChunkHead, words: Words) -> Chunks {
        Chunks { words, head, next: words.word(variables.heap_start) }
    }
}

impl Iterator for Chunks {
    type Item = Region;

    fn next(&mut self) -> Option<Region> {
        let start = self.next;
        if start == 0 {
            return None;
        }
        let before = |words_before: usize| self.words.word(start - words_before * WORD);
        let (size, next) = (before(self.head.size), before(self.head.next));
        // The list is sorted. If it is not, the layout is another.
        self.next = if next > start && next.is_multiple_of(WORD) { next } else { 0 };
        Some(Region { start, end: start.wrapping_add(size) })
    }
}

/// How far the collector has swept.
struct Swept {
    position: usize,
    is_sweeping: bool,
}

impl Swept {
    /// Whether a header belongs to a block that is not free: the rule of `Gc.stat`
    /// (`heap_stats`, `runtime/gc_ctrl.c`).
    #[inline]
    fn is_block(&self, at: usize, header: Header) -> bool {
        match header.colour() {
            BLUE => false,
            WHITE => header.size() != 0 && !(self.is_sweeping && at >= self.position),
            _ => true,
        }
    }
}
