//! Measures the halves of an aggregation, which `heaptap` runs on two threads:
//!
//! ```text
//! cargo run --release -p heaptap-report --example stages -- TRACE [ROUNDS]
//! ```
//!
//! Prints nanoseconds an event, of processor time, in the fastest of the rounds: for
//! decoding alone, for decoding and finding call paths, and for counting. With two
//! processors a reading takes the larger of the last two, with one their sum.

use std::error::Error;
use std::fs;

use heaptap_report::{
    Aggregator, Depth, EventCounter, MOST_BLOCKS, Options, OverTime, ResolvedEvent,
};
use heaptap_trace::EventSource as _;
use heaptap_trace::{Mode, Reader};

type Outcome<T> = Result<T, Box<dyn Error>>;

const BATCH: usize = 16 << 10;

/// Seconds of processor time of this thread.
fn processor_time() -> Outcome<f64> {
    let times = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = times.split(' ').next().unwrap_or("0").parse()?;
    Ok(nanoseconds / 1e9)
}

/// Seconds to decode, and the number of events.
fn decode(trace: &[u8]) -> Outcome<(f64, u64)> {
    let mut reader = Reader::from_slice(trace, Mode::Lenient)?;
    let begin = processor_time()?;
    let mut events = 0;
    while reader.next_event()?.is_some() {
        events += 1;
    }
    Ok((processor_time()? - begin, events))
}

/// Seconds to decode and find call paths, and seconds to count.
fn aggregate(trace: &[u8], options: Options) -> Outcome<(f64, f64)> {
    let mut reader = Reader::from_slice(trace, Mode::Lenient)?;
    let (mut resolver, mut counter) = Aggregator::new(reader.info(), options).split();
    let (mut finding, mut counting) = (0.0, 0.0);
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
        }
        batch.push(resolver.resolve(&event, table));
        if batch.len() == BATCH {
            count(&mut counter, &mut batch)?;
        }
    }
    count(&mut counter, &mut batch)?;
    finding += processor_time()? - begin - counting;
    Aggregator::join(resolver, counter).finish();
    Ok((finding, counting))
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
        ("report", Options::default()),
        ("hot", whole),
        ("leaks", leaks),
        ("export --to html", page),
    ];
    println!("{:18} {:>8} {:>14} {:>9}   ns an event", "", "decoding", "finding paths", "counting");
    for (verb, options) in verbs {
        let (mut decoding, mut finding, mut counting) = (f64::MAX, f64::MAX, f64::MAX);
        let mut events = 0;
        for _ in 0..rounds {
            let (decoded, count) = decode(&trace)?;
            let (found, counted) = aggregate(&trace, options.clone())?;
            (decoding, finding) = (decoding.min(decoded), finding.min(found));
            (counting, events) = (counting.min(counted), count);
        }
        let each = |seconds: f64| seconds * 1e9 / events as f64;
        println!("{verb:18} {:8.0} {:14.0} {:9.0}", each(decoding), each(finding), each(counting));
    }
    Ok(())
}
