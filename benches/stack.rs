//! The walk over managed frames, on stacks made up in memory: what a sample costs when
//! nothing, the top, or everything has changed since the last one; and the naive walk.
//!
//! The modules are private to the plugin, so they are compiled in here.

#![allow(unsafe_code, reason = "the walk reads raw stacks")]

#[allow(dead_code, unused_imports, reason = "a bench uses part of a module")]
#[path = "../src/stack/mod.rs"]
mod stack;
#[allow(dead_code, unused_imports, reason = "a module that `stack` needs")]
#[path = "../src/sys/mod.rs"]
mod sys;

use std::hint::black_box;
use std::ptr::null;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use stack::formats::neutral::NeutralFrame;
use stack::memory::Live;
use stack::walk::{End, naive};
use stack::{FrameTables, Markers, SMALL_STACK, Start, Walker};

/// The limits are those of the plugin, not those of its unit tests.
const SMALL_LIMITS: bool = false;

/// Codes of no frame.
const MARKERS: Markers = Markers { label: 0, cut: 1, unknown: 2 };

const NO_PLACE: u32 = u32::MAX;
const BOUNDARY: u32 = u32::MAX;
const CODE: u64 = 0x40_0000;
const LAST: u64 = 0x3F_0000;
/// Call sites that the stacks are made of; their frames are of 16 to 112 bytes.
const SITES: u64 = 700;

/// At irregular distances, as calls are in code: evenly spaced ones would
/// collide in the walk's cache.
fn return_address(site: u64) -> u64 {
    CODE + 97 * site + site * site % 89
}

fn size(site: u64) -> u64 {
    16 * (1 + site % 7)
}

fn tables() -> FrameTables {
    let frame = |return_address: u64, size| NeutralFrame {
        return_address: return_address as usize,
        size,
        place: NO_PLACE,
    };
    let mut frames: Vec<_> =
        (0..SITES).map(|site| frame(return_address(site), size(site) as u32)).collect();
    frames.push(frame(LAST, BOUNDARY));
    let frames = frames.leak();
    let tables = FrameTables::new();
    // SAFETY: `frames` has the given length and is never freed.
    unsafe { tables.add_neutral(frames.as_ptr(), frames.len(), null(), 0) }.expect("sound");
    tables
}

/// A stack that grows down from the end of its memory.
struct Stack {
    memory: Vec<u64>,
    /// Stack pointer (an index) and return address of each frame.
    frames: Vec<(usize, u64)>,
}

impl Stack {
    fn new(depth: usize) -> Self {
        let words = depth * 16 + 64;
        let mut stack = Self { memory: vec![0; words], frames: Vec::new() };
        let bottom = words - 2;
        stack.memory[bottom - 1] = LAST;
        stack.frames.push((bottom, LAST));
        stack
    }

    fn push(&mut self, site: u64) {
        let (sp, _) = self.frames[self.frames.len() - 1];
        let sp = sp - size(site) as usize / 8;
        let return_address = return_address(site);
        self.memory[sp - 1] = return_address;
        self.frames.push((sp, return_address));
    }

    fn start(&self) -> Start {
        let (sp, return_address) = self.frames[self.frames.len() - 1];
        let sp = &raw const self.memory[sp] as u64;
        Start { return_address, sp }
    }
}

/// A site at random, the same ones in every run.
fn site(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*seed >> 33) % SITES
}

fn walker() -> Walker<Vec<u64>> {
    const MAX_FRAMES: usize = 262_144;
    Walker::new(MAX_FRAMES, |words| Some(vec![0; words]), |words| Some(vec![0; words]))
        .expect("as large as asked for")
}

fn walk(walker: &mut Walker<Vec<u64>>, tables: &FrameTables, stack: &Stack) -> (usize, usize) {
    // SAFETY: the tables describe all frames of the stack, which is borrowed.
    let walk = unsafe { walker.walk(tables, stack.start(), MARKERS) };
    let mark = walk.fresh.first().filter(|code| [MARKERS.cut, MARKERS.unknown].contains(code));
    assert_eq!(mark, None, "the walk is complete");
    (walk.prefix, walk.fresh.len())
}

fn walks(criterion: &mut Criterion) {
    let tables = tables();
    let mut group = criterion.benchmark_group("stack");
    for depth in [190, 100_000] {
        let mut seed = 1;
        let mut stacks = [Stack::new(depth), Stack::new(depth)];
        for _ in 0..depth {
            let site = site(&mut seed);
            stacks.iter_mut().for_each(|stack| stack.push(site));
        }
        group.throughput(Throughput::Elements(depth as u64));
        group.bench_function(BenchmarkId::new("unchanged", depth), |bencher| {
            let mut walker = walker();
            walk(&mut walker, &tables, &stacks[0]);
            bencher.iter(|| {
                let (_, fresh) = black_box(walk(&mut walker, &tables, &stacks[0]));
                assert_eq!(fresh, 0);
            });
        });
        // The same codes at other addresses, so that the last walk is not rejoined.
        group.bench_function(BenchmarkId::new("moved", depth), |bencher| {
            let mut walker = walker();
            let mut turn = 0;
            bencher.iter(|| {
                turn ^= 1;
                black_box(walk(&mut walker, &tables, &stacks[turn]))
            });
        });
    }
    group.throughput(Throughput::Elements(1));
    for top in [4, 15] {
        group.bench_function(format!("top {top} of 190"), |bencher| {
            let mut seed = 1;
            let mut stack = Stack::new(190);
            (0..190 - top).for_each(|_| stack.push(site(&mut seed)));
            let tops: Vec<Vec<u64>> =
                (0..64).map(|_| (0..top).map(|_| site(&mut seed)).collect()).collect();
            let mut walker = walker();
            let mut tops = tops.iter().cycle();
            bencher.iter(|| {
                stack.frames.truncate(191 - top);
                tops.next().into_iter().flatten().for_each(|&site| stack.push(site));
                let (prefix, fresh) = black_box(walk(&mut walker, &tables, &stack));
                assert_eq!(prefix + fresh, 190);
            });
        });
    }
    group.bench_function("recursion/100000", |bencher| {
        let mut stack = Stack::new(100_000);
        (0..100_000).for_each(|_| stack.push(3));
        let mut walker = walker();
        bencher.iter(|| {
            let (prefix, fresh) = black_box(walk(&mut walker, &tables, &stack));
            assert_eq!(prefix + fresh, 100_000);
        });
    });
    group.bench_function("small/15", |bencher| {
        let (mut seed, mut stack, mut walker) = (1, Stack::new(15), walker());
        (0..15).for_each(|_| stack.push(site(&mut seed)));
        let mut codes = [0; SMALL_STACK];
        bencher.iter(|| {
            let start = black_box(stack.start());
            // SAFETY: the tables describe all frames of the stack, which is borrowed.
            let count = unsafe { walker.walk_small(&tables, start, &mut codes) };
            assert_eq!(count, Some(15));
        });
    });
    group.bench_function("naive/190", |bencher| {
        let (mut seed, mut stack) = (1, Stack::new(190));
        (0..190).for_each(|_| stack.push(site(&mut seed)));
        // SAFETY: only the stack is read, along which the tables lead.
        let live = unsafe { Live::new() };
        bencher.iter(|| {
            let (codes, end) = black_box(naive::walk(&live, &tables, stack.start(), 1000));
            assert!(codes.len() == 190 && end == End::Complete);
        });
    });
    group.finish();
}

criterion_group!(benches, walks);
criterion_main!(benches);
