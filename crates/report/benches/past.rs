//! How long the figures of an earlier moment take, of a table of blocks that is full:
//! `cargo bench -p heaptap-report --bench past`. Fails if a moment takes more than 200 ms.
//!
//! The trace has 100,000 call paths of 14 frames, and a tenth of its blocks stay alive, so that
//! there is much to count at every moment.

use std::hint::black_box;
use std::time::Duration;

use heaptap_report::{Aggregator, Depth, MOST_BLOCKS, Options, Regex, Selection};
use heaptap_trace::{
    Allocation, Backtrace, Event, EventKind, Location, LocationTable, Source, TraceInfo,
};

const LIMIT: Duration = Duration::from_millis(200);
/// Microseconds between two allocations, and how long blocks live at least.
const STEP: u64 = 100;
const LIFE: u64 = 20_000;

fn info() -> TraceInfo {
    TraceInfo {
        sample_rate: 1e-3,
        word_size: 64,
        executable: b"past".to_vec(),
        host: Vec::new(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time: 0,
        domain: 0,
    }
}

/// A pseudo-random number.
fn scramble(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 27)
}

/// The stack of one of 100,000 call paths.
fn stack(path: u64) -> [u64; 14] {
    std::array::from_fn(|depth| match depth as u64 {
        depth @ 0..6 => depth,
        depth @ 6..10 => 1000 * depth + path / 1000,
        depth => 1000 * depth + path % 1000,
    })
}

fn table() -> LocationTable {
    let mut table = LocationTable::default();
    for code in (0..100_000).flat_map(stack) {
        if table.contains(code) {
            continue;
        }
        let (definition, file) =
            (format!("Module{}.function_{code}", code % 40), format!("{}.ml", code % 40));
        let location = Location {
            file: file.as_bytes(),
            line: 1,
            start_char: 0,
            end_char: 9,
            definition: definition.as_bytes(),
        };
        table.insert(code, &[location]);
    }
    table
}

fn read(locations: &LocationTable) -> Aggregator {
    let options = Options { depth: Depth::Whole, most_blocks: MOST_BLOCKS, ..Options::default() };
    let mut aggregator = Aggregator::new(&info(), options);
    for id in 0..MOST_BLOCKS as u64 {
        let (dice, time) = (scramble(id + 1), id * STEP);
        let frames = stack(dice % 100_000);
        let backtrace = Backtrace { frames: &frames, common_prefix: 0, new: &frames };
        let allocation = Allocation { id, length: 9, samples: 1, source: Source::Minor, backtrace };
        let mut happen = |kind| aggregator.event(&Event { time, domain: 0, kind }, locations);
        happen(EventKind::Alloc(allocation));
        // One in ten stays, and is promoted.
        let Some(old) = id.checked_sub(LIFE) else { continue };
        happen(if old % 10 == 0 { EventKind::Promote(old) } else { EventKind::Collect(old) });
    }
    aggregator
}

/// How long this thread has run: others use the machine, too. The first field of schedstat, in
/// nanoseconds (Documentation/scheduler/sched-stats.rst of Linux).
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds = text.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

fn main() {
    let locations = table();
    let mut aggregator = read(&locations);
    let (whole, blocks) = aggregator.aggregate_with_blocks();
    assert_eq!((blocks.len(), blocks.thinning()), (MOST_BLOCKS, 0), "the table is just full");
    let whole_options = || Options { depth: Depth::Whole, ..Options::default() };
    let filtered = Selection {
        include: vec![Regex::new("Module1[0-9]\\.function").expect("a regular expression")],
        ..Selection::default()
    };
    let ways: [(&str, Options); 3] = [
        ("all blocks", whole_options()),
        ("with a filter", Options { selection: filtered, ..whole_options() }),
        ("by domain", Options { depth: Depth::Domain, ..Options::default() }),
    ];
    let mut worst = Duration::ZERO;
    for (way, options) in &ways {
        for tenth in [1, 5, 9, 10] {
            // The best of seven: others use the caches, too.
            let moment = whole.duration() / 10 * tenth;
            let took = (0..7).map(|_| {
                let begin = on_processor();
                black_box(blocks.aggregate_until(moment, whole, &locations, options));
                on_processor() - begin
            });
            let took = took.min().unwrap_or_default();
            println!("{way}, at {} % of the trace: {:.0} ms", 10 * tenth, took.as_secs_f64() * 1e3);
            worst = worst.max(took);
        }
    }
    println!(
        "worst: {:.0} ms, at most {} are allowed",
        worst.as_secs_f64() * 1e3,
        LIMIT.as_millis()
    );
    if worst >= LIMIT {
        std::process::exit(1);
    }
}
