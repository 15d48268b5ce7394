//! How fast snapshots are written and read: `cargo bench -p heaptap-heap`.
//!
//! A heap as real ones are: most blocks have few words and three pointers, most pointers lead to
//! neighbours, some to blocks that many point to, some anywhere. Throughput is in blocks.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use heaptap_heap::{Encoder, Item, Reader, Segment, SegmentKind, Sink, Workspace};

const BLOCKS: u64 = 1_000_000;
const START: u64 = 0x7f12_3400_0000;

/// Counts bytes.
struct CountingSink(u64);

impl Sink for CountingSink {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), i32> {
        self.0 += bytes.len() as u64;
        Ok(())
    }
}

/// Size, tag and three targets of a block.
struct BenchBlock {
    address: u64,
    words: u64,
    tag: u32,
    targets: [u64; 3],
}

fn heap() -> Vec<BenchBlock> {
    let mut seed = 1u64;
    let mut address = START + 8;
    let mut blocks: Vec<BenchBlock> = Vec::new();
    for number in 0..BLOCKS {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let random = seed >> 24;
        let words = [3, 3, 4, 3, 5, 3, 4, 8][(random % 8) as usize];
        let earlier = |back: u64| {
            let index = number.saturating_sub(back) as usize;
            blocks.get(index).map_or(START + 8, |block| block.address)
        };
        let targets = [
            earlier(1 + random % 3),
            earlier(2 + (random >> 8) % 30),
            match (random >> 16) % 4 {
                0 => earlier(random % BLOCKS),
                _ => START + 8 + ((random >> 20) % 4) * 32,
            },
        ];
        blocks.push(BenchBlock { address, words, tag: (random >> 30) as u32 % 4, targets });
        address += (words + 1) * 8;
    }
    blocks
}

fn write<S: Sink>(blocks: &[BenchBlock], sink: S, workspace: &mut Workspace) -> S {
    let mut encoder = Encoder::new(sink, workspace, 1);
    let mut write = || -> Result<(), i32> {
        let segment = Segment { kind: SegmentKind::Major, start: START, words: BLOCKS * 10 };
        encoder.segment(segment)?;
        for block in blocks {
            encoder.begin_block(block.address, block.words, block.tag)?;
            for (field, target) in (0..).zip(block.targets) {
                encoder.pointer(field, target)?;
            }
            encoder.end_block()?;
        }
        Ok(())
    };
    write().expect("a sink that takes everything");
    encoder.finish().expect("a sink that takes everything").1
}

fn bench(criterion: &mut Criterion) {
    let blocks = heap();
    let mut workspace = Box::new(Workspace::new());
    let file = write(&blocks, Vec::new(), &mut workspace);
    let words: u64 = blocks.iter().map(|block| block.words + 1).sum();
    println!(
        "{} bytes, {:.2} a block, {:.1} % of the heap",
        file.len(),
        file.len() as f64 / BLOCKS as f64,
        100.0 * file.len() as f64 / (words * 8) as f64
    );
    let mut group = criterion.benchmark_group("snapshot");
    group.throughput(Throughput::Elements(BLOCKS)).sample_size(10);
    group.bench_function("write", |bencher| {
        bencher.iter(|| {
            let written = write(black_box(&blocks), CountingSink(0), &mut workspace);
            assert_eq!(written.0, file.len() as u64);
        });
    });
    group.bench_function("read", |bencher| {
        bencher.iter(|| {
            let mut reader = Reader::new(black_box(&file[..])).expect("a snapshot");
            let mut pointers = 0;
            while let Some(item) = reader.next_item().expect("a sound snapshot") {
                if let Item::Block(block) = item {
                    pointers += block.pointers.len() as u64;
                }
            }
            assert_eq!(pointers, 3 * BLOCKS);
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
