//! Made programs, and traces of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use heaptap_report::{Aggregate, Aggregator, BlockTable, Metric, Options};
use heaptap_trace::EventSource as _;
use heaptap_trace::{
    Block, Code, Encoder, Format, Frames, Locate, Location, LocationList, LocationTable, Mode,
    Reader, Source, TraceInfo,
};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) const START: u64 = 1_600_000_000_000_000;

/// A block of a made program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    /// Words, without the header.
    pub(crate) length: u64,
    pub(crate) site: u64,
    /// Microseconds since the start.
    pub(crate) born: u64,
    pub(crate) promoted: Option<u64>,
    pub(crate) dies: Option<u64>,
}

pub(crate) const METRICS: [Metric; 6] =
    [Metric::Allocated, Metric::Promoted, Metric::Peak, Metric::At, Metric::Live, Metric::Survived];

/// Programs of up to 200 blocks, with less than `longest_wait` microseconds
/// between one and the next.
pub(crate) fn programs(longest_wait: u64) -> impl Strategy<Value = Vec<Life>> {
    let life = (
        0..40_u64,
        0..12_u64,
        0..longest_wait,
        prop::option::of(0..8 * longest_wait),
        any::<bool>(),
    );
    prop::collection::vec(life, 1..200).prop_map(|lives| {
        let mut now = 0;
        let made = lives.into_iter().map(|(length, site, wait, lifetime, old)| {
            now += wait;
            let promoted = old.then_some(now + 1);
            let dies = lifetime.map(|lifetime| now + 2 + lifetime);
            Life { length, site, born: now, promoted, dies }
        });
        made.collect()
    })
}

pub(crate) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Exponential, with this mean.
    pub(crate) fn wait(&mut self, mean: f64) -> u64 {
        (-(1.0 - self.unit()).ln() * mean) as u64
    }

    /// Words from one sample to the next: geometric.
    pub(crate) fn gap(&mut self, rate: f64) -> u64 {
        if rate >= 1.0 {
            return 1;
        }
        1 + ((1.0 - self.unit()).ln() / (1.0 - rate).ln()) as u64
    }
}

/// Codes of sites are their numbers from here on; their line is the number.
pub(crate) const SITES: Code = 0x1000;
pub(crate) const CALLERS: Code = 0x100_0000;
/// Of these, all are one function of the standard library.
pub(crate) const LIBRARY: Code = 0x200_0000;
const MAIN: Code = 0x10;

struct Sources;

impl Locate for Sources {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        let (file, name, line) = match code {
            LIBRARY.. => ("bytes.ml", "Stdlib__Bytes.create".to_owned(), 3),
            CALLERS.. => ("lib/caller.ml", format!("Caller.f{}", code - CALLERS), 7),
            SITES.. => ("bin/site.ml", format!("Site.f{}", code - SITES), (code - SITES) as u32),
            _ => ("bin/main.ml", "Main.main".to_owned(), 1),
        };
        let location = Location {
            file: file.as_bytes(),
            line: line.max(1),
            start_char: 2,
            end_char: 9,
            definition: name.as_bytes(),
        };
        list.add(location);
    }
}

/// The usual stack of a site.
pub(crate) fn stack(site: u64) -> Vec<Code> {
    vec![MAIN, CALLERS + site / 4, SITES + site]
}

pub(crate) fn info(rate: f64) -> TraceInfo {
    TraceInfo {
        sample_rate: rate,
        word_size: 64,
        executable: b"made".to_vec(),
        host: Vec::new(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time: START,
        domain: 0,
    }
}

/// A trace being written.
pub(crate) struct Writer(Encoder<Vec<u8>>);

impl Writer {
    pub(crate) fn new(rate: f64) -> Writer {
        Writer(Encoder::new(Vec::new(), Format::V2, &info(rate)).unwrap())
    }

    pub(crate) fn alloc(&mut self, at: u64, length: u64, samples: u64, stack: &[Code]) -> u64 {
        let block = Block { length, samples, source: Source::Minor };
        self.0.domain(0).alloc(START + at, block, Frames::Whole(stack), &mut Sources).unwrap()
    }

    pub(crate) fn promote(&mut self, at: u64, id: u64) {
        self.0.domain(0).promote(START + at, id, &mut Sources).unwrap();
    }

    pub(crate) fn collect(&mut self, at: u64, id: u64) {
        self.0.domain(0).collect(START + at, id, &mut Sources).unwrap();
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0.finish(&mut Sources).unwrap()
    }
}

/// The trace of a program, in the order of birth, at this rate.
pub(crate) fn traced(program: &[Life], rate: f64, seed: u64) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let (mut words, mut next) = (0, dice.gap(rate));
    write_program(program, Writer::new(rate), |_, life| {
        words += life.length + 1;
        let mut samples = 0;
        while next <= words {
            samples += 1;
            next += dice.gap(rate);
        }
        samples
    })
}

/// The trace of a program, in the order of birth, with as many samples of each block as `samples` draws.
pub(crate) fn write_program(
    program: &[Life],
    mut writer: Writer,
    mut samples: impl FnMut(usize, &Life) -> u64,
) -> Vec<u8> {
    let mut due: BinaryHeap<Reverse<(u64, bool, u64)>> = BinaryHeap::new();
    let happen = |writer: &mut Writer, due: &mut BinaryHeap<_>, until: u64| {
        while let Some(&Reverse((at, dies, id))) = due.peek()
            && at <= until
        {
            due.pop();
            if dies { writer.collect(at, id) } else { writer.promote(at, id) }
        }
    };
    for (number, life) in program.iter().enumerate() {
        let samples = samples(number, life);
        if samples == 0 {
            continue;
        }
        happen(&mut writer, &mut due, life.born);
        let id = writer.alloc(life.born, life.length, samples, &stack(life.site));
        due.extend(life.promoted.map(|at| Reverse((at, false, id))));
        due.extend(life.dies.map(|at| Reverse((at, true, id))));
    }
    happen(&mut writer, &mut due, u64::MAX);
    writer.finish()
}

/// A stack without repeated cycles, the outermost first: plainly, each time the end
/// of what is pushed is there twice, once.
pub(crate) fn folded<T: Clone + PartialEq>(stack: &[T]) -> Vec<T> {
    let mut folded: Vec<T> = Vec::new();
    for frame in stack {
        folded.push(frame.clone());
        let length = folded.len();
        let repeats = |&period: &usize| {
            folded[length - period..] == folded[length - 2 * period..length - period]
        };
        if let Some(period) = (1..=(length / 2).min(32)).find(repeats) {
            folded.truncate(length - period);
        }
    }
    folded
}

/// What is gathered from a trace, and its locations.
pub(crate) fn gathered(trace: &[u8], options: Options) -> (Aggregate, LocationTable) {
    let (aggregate, _, locations) = gathered_with_blocks(trace, options);
    (aggregate, locations)
}

/// The same, and the table of its blocks.
pub(crate) fn gathered_with_blocks(
    trace: &[u8],
    options: Options,
) -> (Aggregate, BlockTable, LocationTable) {
    let mut reader = Reader::from_slice(trace, Mode::Strict).unwrap();
    let mut aggregator = Aggregator::new(reader.info(), options);
    while let Some((event, table)) = reader.next_located().unwrap() {
        aggregator.event(&event, table);
    }
    let (aggregate, blocks) = aggregator.finish_with_blocks();
    (aggregate, blocks, reader.into_locations())
}
