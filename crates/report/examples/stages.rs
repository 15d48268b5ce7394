//! Measures the halves of an aggregation, which `heaptap` runs on two threads:
//!
//! ```text
//! cargo run --release -p heaptap-report --example stages -- TRACE [ROUNDS]
//! ```
//!
//! Prints nanoseconds an event, of processor time, in the fastest of the rounds: for
//! decoding alone, for decoding and finding call paths, and for counting. With two
//! processors a reading takes the larger of the last two, with one their sum. And how large
//! the call tree is at the end, and how often it was pruned.
//!
//! The first line has what the work depends on: how deep stacks are, and how many of their
//! frames differ from the stack before.

use std::error::Error;
use std::fs;

use heaptap_report::{
    Aggregator, Depth, EventCounter, MOST_BLOCKS, Options, OverTime, ResolvedEvent,
};
use heaptap_trace::{Allocation, EventKind, EventSource as _, Mode, Reader};

type Outcome<T> = Result<T, Box<dyn Error>>;

const BATCH: usize = 16 << 10;

/// Seconds of processor time of this thread.
fn processor_time() -> Outcome<f64> {
    let times = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = times.split(' ').next().unwrap_or("0").parse()?;
    Ok(nanoseconds / 1e9)
}

/// What a trace has.
#[derive(Default)]
struct Size {
    events: u64,
    stacks: u64,
    frames: u64,
    /// Those that the stack before does not have at the same depth.
    new_frames: u64,
}

fn size(trace: &[u8]) -> Outcome<Size> {
    let mut reader = Reader::from_slice(trace, Mode::Lenient)?;
    let mut size = Size::default();
    while let Some(event) = reader.next_event()? {
        size.events += 1;
        if let EventKind::Alloc(Allocation { backtrace, .. }) = event.kind {
            size.stacks += 1;
            size.frames += backtrace.frames.len() as u64;
            size.new_frames += backtrace.new.len() as u64;
        }
    }
    Ok(size)
}

/// Seconds to decode.
fn decode(trace: &[u8]) -> Outcome<f64> {
    let mut reader = Reader::from_slice(trace, Mode::Lenient)?;
    let begin = processor_time()?;
    while reader.next_event()?.is_some() {}
    Ok(processor_time()? - begin)
}

/// What an aggregation took, and what came of it.
struct Aggregation {
    /// Seconds to decode and find call paths, and to count.
    finding: f64,
    counting: f64,
    nodes: usize,
    prunings: u32,
}

fn aggregate(trace: &[u8], options: Options) -> Outcome<Aggregation> {
    let mut reader = Reader::from_slice(trace, Mode::Lenient)?;
    let (mut resolver, mut counter) = Aggregator::new(reader.info(), options).split();
    let (mut finding, mut counting, mut prunings) = (0.0, 0.0, 0);
    let mut batch: Vec<ResolvedEvent> = Vec::with_capacity(BATCH);
    let mut count = |counter: &mut EventCounter, batch: &mut Vec<ResolvedEvent>| -> Outcome<()> {
        let begin = processor_time()?;
        batch.drain(..).for_each(|event| counter.event(&event));
        counting += processor_time()? - begin;
        Ok(())
    };
    let begin = processor_time()?;
    while let Some((event, table)) = reader.next_located()? {
        if let Some(moves) = resolver.make_room(&event) {
            count(&mut counter, &mut batch)?;
            counter.move_paths(&moves);
            prunings += 1;
        }
        batch.push(resolver.resolve(&event, table));
        if batch.len() == BATCH {
            count(&mut counter, &mut batch)?;
        }
    }
    count(&mut counter, &mut batch)?;
    finding += processor_time()? - begin - counting;
    let nodes = Aggregator::join(resolver, counter).finish().nodes();
    Ok(Aggregation { finding, counting, nodes, prunings })
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, rest @ ..] = arguments.as_slice() else {
        return Err("usage: stages TRACE [ROUNDS]".into());
    };
    let rounds = rest.first().map_or(Ok(3), |rounds| rounds.parse::<u32>())?;
    let trace = fs::read(path)?;
    let whole = Options { depth: Depth::Whole, ..Options::default() };
    let leaks = Options { over_time: OverTime::LiveSize, ..whole.clone() };
    let page = Options { most_blocks: MOST_BLOCKS, ..leaks.clone() };
    let verbs = [
        ("report", Options { depth: Depth::OwnCode, ..Options::default() }),
        ("report --json", Options::default()),
        ("hot", whole),
        ("leaks", leaks),
        ("export --to html", page),
    ];
    let Size { events, stacks, frames, new_frames } = size(&trace)?;
    let of_stack = |frames: u64| frames as f64 / stacks.max(1) as f64;
    println!(
        "{events} events, {stacks} stacks of {:.1} frames, of which {:.1} are new\n",
        of_stack(frames),
        of_stack(new_frames)
    );
    println!(
        "{:18} {:>8} {:>14} {:>9} {:>9} {:>9}",
        "ns an event", "decoding", "finding paths", "counting", "nodes", "prunings"
    );
    let each = |seconds: f64| seconds * 1e9 / events as f64;
    for (verb, options) in verbs {
        let mut decoding = f64::MAX;
        let mut best = aggregate(&trace, options.clone())?;
        for round in 0..rounds {
            decoding = decoding.min(decode(&trace)?);
            if round > 0 {
                let again = aggregate(&trace, options.clone())?;
                best.finding = best.finding.min(again.finding);
                best.counting = best.counting.min(again.counting);
            }
        }
        let Aggregation { finding, counting, nodes, prunings } = best;
        let (decoding, finding, counting) = (each(decoding), each(finding), each(counting));
        println!("{verb:18} {decoding:8.0} {finding:14.0} {counting:9.0} {nodes:9} {prunings:9}");
    }
    Ok(())
}
