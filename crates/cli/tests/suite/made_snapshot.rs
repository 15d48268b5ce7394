//! A heap snapshot with one of everything: all kinds of holders, shared and cyclic blocks,
//! ephemerons, memory outside the heap, a suspended stack, garbage, and names that are hostile.

use std::io::Cursor;

use heaptap_graph::{DominatorTree, HeapGraph, HolderTree, Kinds, LoadOptions};
use heaptap_heap::{
    Encoder, Finaliser, FinaliserKind, MetaKey, Name, Root, RootOwner, Segment, SegmentKind,
    Workspace,
};

/// A name that would leave a string, a line, an element or a comment.
pub(crate) const HOSTILE: &[u8] = b"q\"\\\n</svg><b>&;\x1b[31m{|}'*/-->\xff";

/// How many blocks there are, with garbage.
pub(crate) const BLOCKS: usize = 3000;

const CLOSURE: u32 = 247;
const CONTINUATION: u32 = 245;
const STRING: u32 = 252;
const CUSTOM: u32 = 255;
const CONTINUATION_BLOCK: usize = 40;
const EPHEMERONS: [usize; 2] = [50, 51];

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// A block before it is written.
struct MadeBlock {
    address: u64,
    words: u64,
    tag: u32,
}

fn blocks(numbers: &mut Numbers) -> Vec<MadeBlock> {
    let mut end = 0x1_0000;
    let shape = |number: usize, numbers: &mut Numbers| match number {
        CONTINUATION_BLOCK => (2, CONTINUATION),
        50 | 51 => (4, 251),
        // A big array.
        60 => (1000, 0),
        _ => match number % 11 {
            0 => (1 + numbers.below(40) as u64, STRING),
            1 => (3, CUSTOM),
            2 => (4, CLOSURE),
            3 => (20, 0),
            4 => (1, 3),
            5 => (0, 0),
            _ => (2, 0),
        },
    };
    let block = |number| {
        let (words, tag) = shape(number, numbers);
        let address = end + 8;
        end = address + words * 8;
        MadeBlock { address, words, tag }
    };
    (0..BLOCKS).map(block).collect()
}

type MadeEncoder<'w> = Encoder<'w, Vec<u8>>;

/// The bytes of the file.
pub(crate) fn made_snapshot() -> Vec<u8> {
    let mut workspace = Box::new(Workspace::new());
    let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let blocks = blocks(&mut numbers);
    let mut write = || -> Result<(), i32> {
        encoder.meta(MetaKey::RUNTIME, b"OCaml 5.3.0 native")?;
        encoder.meta_number(MetaKey::HEADER_WORDS, 1)?;
        let last = blocks.last().unwrap();
        let words = (last.address - 0x1_0000) / 8 + last.words;
        encoder.segment(Segment { kind: SegmentKind::Major, start: 0x1_0000, words })?;
        for number in 0..BLOCKS {
            write_block(&mut encoder, &blocks, number, &mut numbers)?;
        }
        // The data of the first is alive through it; the key of the second is garbage.
        for (ephemeron, keys, data) in [(0, [10, 20], 2500), (1, [30, 2999], 2600)] {
            encoder.begin_ephemeron(blocks[EPHEMERONS[ephemeron]].address)?;
            for (index, key) in keys.into_iter().enumerate() {
                encoder.ephemeron_key(index as u64, blocks[key].address)?;
            }
            encoder.ephemeron_data(blocks[data].address)?;
            encoder.end_ephemeron()?;
        }
        encoder.custom_kind(0x700, HOSTILE)?;
        encoder.module(0, b"Cache")?;
        encoder.module(1, HOSTILE)?;
        encoder.thread(7, 1, HOSTILE)?;
        let (function, file) = (HOSTILE, &b"a;b.ml"[..]);
        encoder.name(Name { address: 0x900, function, file, line: 3 })?;
        write_roots(&mut encoder, &blocks)
    };
    write().unwrap();
    encoder.finish().unwrap().1
}

/// Blocks point to later ones mostly. Those from 1900 on are held by the array of a variable alone
/// but for a few; from 2700 on they are garbage.
fn write_block(
    encoder: &mut MadeEncoder<'_>,
    blocks: &[MadeBlock],
    number: usize,
    numbers: &mut Numbers,
) -> Result<(), i32> {
    let &MadeBlock { address, words, tag } = &blocks[number];
    encoder.begin_block(address, words, tag)?;
    match tag {
        STRING => {}
        CUSTOM => {
            // One has more than fits into 32 bits.
            let outside = if number == 12 { 5 << 30 } else { 100 * (number as u64 % 5) };
            encoder.custom(0x700, outside)?;
        }
        CLOSURE => {
            encoder.code(0, 0x900)?;
            encoder.pointer(2, blocks[(number + 1).min(last_of(number))].address)?;
            encoder.pointer(3, blocks[number / 2].address)?;
        }
        0 | 3 => {
            for field in 0..words {
                let to = match (number, field % 3) {
                    (60, 0) => 1900 + numbers.below(700),
                    (_, 1) if number > 60 => number + 1 + numbers.below(40),
                    // Not to the array.
                    (_, 0) if number < 60 => 61 + numbers.below(100),
                    _ => continue,
                };
                encoder.pointer(field, blocks[to.min(last_of(number))].address)?;
            }
        }
        _ => {}
    }
    encoder.end_block()
}

/// The last block that a block may point to.
fn last_of(number: usize) -> usize {
    match number {
        60 | 1900..2700 => 2699,
        0..1900 => 1899,
        _ => BLOCKS - 1,
    }
}

fn write_roots(encoder: &mut MadeEncoder<'_>, blocks: &[MadeBlock]) -> Result<(), i32> {
    let continuation = blocks[CONTINUATION_BLOCK].address;
    let stack = |depth| RootOwner::Stack { thread: 7, depth, return_address: 0x900, slot: 1 };
    let suspended = |slot| RootOwner::Continuation {
        block: continuation,
        depth: 0,
        return_address: 0x900,
        slot,
    };
    let roots = [
        (RootOwner::Global { module: 0, field: 0 }, 60),
        (RootOwner::Global { module: 0, field: 3 }, 61),
        (RootOwner::Global { module: 1, field: 0 }, 6),
        (RootOwner::Global { module: 1, field: 1 }, 10),
        (stack(0), 700),
        (stack(0), 702),
        (stack(1), 900),
        (RootOwner::LocalC { thread: 7 }, 20),
        (RootOwner::GlobalC { slot: 0x50 }, CONTINUATION_BLOCK),
        (RootOwner::GlobalC { slot: 0x58 }, 12),
        (RootOwner::Hook { slot: 0x60 }, EPHEMERONS[0]),
        (RootOwner::Hook { slot: 0x68 }, EPHEMERONS[1]),
        (suspended(1), 1200),
        (suspended(2), 1201),
        (suspended(3), 1500),
        (RootOwner::Host { kind: 4, index: 9 }, 1800),
    ];
    for (owner, target) in roots {
        encoder.root(Root { owner, target: blocks[target].address })?;
    }
    for kind in [FinaliserKind::First, FinaliserKind::Last] {
        let (value, function) = (blocks[2100].address, blocks[2].address);
        encoder.finaliser(Finaliser { kind, value, function })?;
    }
    Ok(())
}

/// What the library finds in a snapshot.
pub(crate) struct Analysed {
    pub(crate) graph: HeapGraph,
    pub(crate) holders: HolderTree,
    pub(crate) tree: DominatorTree,
    pub(crate) kinds: Kinds,
}

pub(crate) fn analysed(file: &[u8]) -> Analysed {
    let options = LoadOptions { memory: 1 << 30, fields: true };
    let graph = HeapGraph::load(Cursor::new(file), options).unwrap();
    let holders = HolderTree::new(&graph).unwrap();
    let tree = DominatorTree::new(&graph, &holders).unwrap();
    let kinds = Kinds::new(&graph);
    Analysed { graph, holders, tree, kinds }
}
