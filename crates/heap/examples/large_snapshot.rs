//! Writes a snapshot of many blocks to standard output, for benches: `large_snapshot BLOCKS`.
//!
//! A third of the blocks are long lists with strings, a third balanced trees, and a third arrays of
//! buckets whose entries are shared, so that some blocks have several holders.

use std::io::{self, BufWriter, Write};

use heaptap_heap::{Encoder, MetaKey, Root, RootOwner, Segment, SegmentKind, Sink, Workspace};

/// Standard output as the sink of an encoder.
struct Output(BufWriter<io::StdoutLock<'static>>);

impl Sink for Output {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), i32> {
        Write::write_all(&mut self.0, bytes).map_err(|error| error.raw_os_error().unwrap_or(5))
    }
}

const STRING: u32 = 252;
const START: u64 = 0x1000_0000;
/// Words between two blocks: five fields and a header.
const STRIDE: u64 = 6;

fn address(block: u64) -> u64 {
    START + (block * STRIDE + 1) * 8
}

fn write(blocks: u64) -> Result<(), i32> {
    let mut workspace = Box::new(Workspace::new());
    let sink = Output(BufWriter::new(io::stdout().lock()));
    let mut encoder = Encoder::new(sink, &mut workspace, 1);
    encoder.meta(MetaKey::RUNTIME, b"OCaml 4.14.1 native")?;
    encoder.meta(MetaKey::PROGRAM, b"large_snapshot")?;
    encoder.meta_number(MetaKey::HEADER_WORDS, 1)?;
    encoder.segment(Segment { kind: SegmentKind::Major, start: START, words: blocks * STRIDE })?;
    let third = blocks / 3;
    for block in 0..blocks {
        let within = block % third.max(1);
        let (words, tag, pointers) = match block / third.max(1) {
            // Cells and strings alternate; each list has 100,000 cells.
            0 if block % 2 == 1 => (4, STRING, [None; 3]),
            0 => {
                let next = (within + 2 < third && within % 200_000 != 199_998).then_some(block + 2);
                (2, 0, [Some(block + 1), next, None])
            }
            // A heap in an array: the children of n are 2n + 1 and 2n + 2.
            1 => {
                let child = |index: u64| (index < third).then_some(third + index);
                (5, 0, [child(2 * within + 1), child(2 * within + 2), None])
            }
            // Chains of three that share the entry of another chain.
            _ => {
                let next = (within % 3 != 2 && block + 1 < blocks).then_some(block + 1);
                let shared = Some(2 * third + within / 7);
                (3, 0, [shared, next, None])
            }
        };
        encoder.begin_block(address(block), words, tag)?;
        for (field, target) in (0..).zip(pointers) {
            if let Some(target) = target {
                encoder.pointer(field, address(target))?;
            }
        }
        encoder.end_block()?;
    }
    encoder.module(0, b"Lists")?;
    encoder.module(1, b"Trees")?;
    encoder.module(2, b"Buckets")?;
    let mut root = |module, field, block| {
        let owner = RootOwner::Global { module, field };
        encoder.root(Root { owner, target: address(block) })
    };
    for list in 0..third.div_ceil(200_000) {
        root(0, list as u32, list * 200_000)?;
    }
    root(1, 0, third)?;
    for bucket in (2 * third..blocks).step_by(3) {
        root(2, (bucket % 64) as u32, bucket)?;
    }
    let (_, mut sink) = encoder.finish()?;
    sink.0.flush().map_err(|error| error.raw_os_error().unwrap_or(5))
}

fn main() {
    let blocks = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let Some(blocks) = blocks.filter(|blocks| *blocks >= 3) else {
        eprintln!("usage: large_snapshot BLOCKS > FILE");
        std::process::exit(2);
    };
    if let Err(errno) = write(blocks) {
        eprintln!("large_snapshot: {}", io::Error::from_raw_os_error(errno));
        std::process::exit(1);
    }
}
