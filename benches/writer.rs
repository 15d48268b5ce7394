//! The time that the writer thread takes for a program's records: reading the
//! lanes, keeping the stack, encoding, and writing packets into memory.
//!
//! The input is made: traces of programs that move through their stacks like a
//! parser, 60 frames deep or a dozen. Their events become records in the form in
//! which a mutator writes them; small stacks are whole. The writer must turn them
//! into the same events again.
//!
//! The modules are private to the package, so this file includes their sources.

use core::time::Duration;
use std::ffi::OsStr;
use std::io;
use std::sync::{Arc, Mutex};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use heaptap_trace::{
    Block, Code, Encoder, End, EventKind, Format, Frames, Locate, Location, LocationList, Mode,
    Reader, Source, TraceFormat, TraceInfo, WriteError,
};
use queue::{BUFFER_WORDS, BlockId, BlockRun, Channel, Part, Record, Sample};
use writer::{Context, Mailbox, NewFile, Request, TraceOutput, Writer};

#[allow(dead_code, unused_imports, reason = "the package uses more of it")]
#[path = "../src/queue/mod.rs"]
mod queue;
#[allow(dead_code, unused_imports, reason = "the package uses more of it")]
#[path = "../src/sys/mod.rs"]
mod sys;

/// The limits are those of the plugin, not those of its unit tests.
const SMALL_LIMITS: bool = false;
#[allow(dead_code, unused_imports, reason = "the package uses more of it")]
#[path = "../src/writer/mod.rs"]
mod writer;

const ALLOCATIONS: u64 = 20_000;
const START: u64 = 1_700_000_000_000_000;

/// Stacks of at most this many frames are recorded whole: `FEW` of the walker, which is not built in.
const SMALL: usize = 32;

fn info() -> TraceInfo {
    TraceInfo {
        sample_rate: 1e-4,
        word_size: 64,
        executable: b"made".to_vec(),
        host: b"bench".to_vec(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time: START,
        domain: 0,
    }
}

/// A tick is a microsecond, and the location of a code is made from its number.
struct Numbered;

impl Locate for Numbered {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        let name = format!("Module{}.function_{code}", code % 97);
        list.add(Location {
            file: name.as_bytes(),
            line: code as u32,
            start_char: 2,
            end_char: 30,
            definition: name.as_bytes(),
        });
    }
}

impl Context for Numbered {
    fn observe_time(&mut self) {}

    fn micros(&mut self, ticks: u64) -> u64 {
        START + ticks
    }

    fn now(&mut self) -> u64 {
        START
    }

    fn part_code(&mut self, return_address: u64, part: Part) -> u64 {
        part.in_code(return_address)
    }

    fn write_failed(&mut self, output: &OsStr, error: &WriteError) {
        panic!("{}: {error}", output.display());
    }
}

/// The trace of a program around `deep` frames deep, of which a few change from
/// one sample to the next; blocks live for 1,000 others, some are promoted.
fn made(deep: u64) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new(), Format::V2, &info()).expect("a valid info");
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let mut stack: Vec<Code> = Vec::new();
    for at in 0..ALLOCATIONS {
        stack.truncate(stack.len().saturating_sub(random(9) as usize));
        let depth = (deep * 5 / 6 + random(deep / 3)) as usize;
        while stack.len() < depth {
            let caller = stack.last().map_or(1, |code| code >> 4);
            let callee = if random(4) > 0 { caller * 7 % 601 } else { random(601) };
            stack.push((callee + 1) << 4);
        }
        let block = Block { length: 1 + random(8), samples: 1, source: Source::Minor };
        let time = START + 10 * at;
        let id = encoder.domain(0).alloc(time, block, Frames::Whole(&stack), &mut Numbered);
        if at % 16 == 0 {
            encoder.domain(0).promote(time, id.expect("valid"), &mut Numbered).expect("valid");
        }
        if let Some(old) = at.checked_sub(1_000) {
            encoder.domain(0).collect(time, old, &mut Numbered).expect("valid");
        }
    }
    encoder.finish(&mut Numbered).expect("memory takes everything")
}

/// Event buffers as a mutator would have filled them for a trace's events.
struct Recorded {
    buffers: Vec<Vec<u64>>,
    events: u64,
}

fn recorded(trace: &[u8]) -> Recorded {
    let mut recorded = Recorded { buffers: vec![Vec::new()], events: 0 };
    let mut reader = Reader::from_slice(trace, Mode::Strict).expect("a trace");
    let run = |id| BlockRun::one(BlockId::new(0, id));
    while let Some(event) = reader.next_event().expect("a sound trace") {
        recorded.events += 1;
        let time = Record::Time(event.time - START);
        match event.kind {
            EventKind::Alloc(block) => {
                let (source, samples, length) = (block.source, block.samples, block.length);
                let frames = block.backtrace.frames;
                if (source, samples) == (Source::Minor, 1) && frames.len() <= SMALL {
                    let inner_first: Vec<_> = frames.iter().rev().copied().collect();
                    let head = Sample::header(event.time - START, inner_first.len(), length);
                    let sample = Sample { header: &head, inner_first: &inner_first };
                    put(&mut recorded.buffers, &[Record::Sample(sample)]);
                    continue;
                }
                let keep = block.backtrace.common_prefix as usize;
                let stack = Record::Frames { keep, new: block.backtrace.new };
                let alloc = match (source, samples) {
                    (Source::Minor, 1) => Record::SmallAlloc { length },
                    _ => Record::Alloc { source, part: Part::NONE, samples, length },
                };
                put(&mut recorded.buffers, &[time, stack, alloc]);
            }
            EventKind::Promote(id) => {
                put(&mut recorded.buffers, &[time, Record::End(End::Promote, run(id))]);
            }
            EventKind::Collect(id) => {
                put(&mut recorded.buffers, &[time, Record::End(End::Collect, run(id))]);
            }
            _ => {}
        }
    }
    recorded
}

fn put(buffers: &mut Vec<Vec<u64>>, records: &[Record<'_>]) {
    let words: usize = records.iter().map(Record::len).sum();
    if buffers.last().is_none_or(|last| last.len() + words > BUFFER_WORDS) {
        buffers.push(Vec::new());
    }
    let Some(last) = buffers.last_mut() else { return };
    let from = last.len();
    last.resize(from + words, 0);
    let mut room = &mut last[from..];
    for record in records {
        room = record.encode(room).expect("room was made");
    }
}

/// A file in memory that outlives its writer.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("one thread").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TraceOutput for Memory {
    fn name(&self) -> &OsStr {
        OsStr::new("memory")
    }

    fn set_completion(&mut self, _: heaptap_trace::Completion) {}
}

/// A writer that has all the records before it, and is asked to stop.
fn writer(recorded: &Recorded, out: &Memory) -> Writer<Numbered, Memory> {
    let (channel, consumer) = Channel::new(recorded.buffers.len() + 1).expect("memory");
    let mut producer = channel.producer().expect("a lane");
    for buffer in &recorded.buffers {
        producer.reserve(buffer.len()).expect("enough buffers").copy_from_slice(buffer);
        producer.commit(buffer.len());
    }
    producer.end();
    let mailbox = Arc::new(Mailbox::new());
    assert!(mailbox.post(Request::Stop));
    let first = NewFile { out: out.clone(), info: info(), late_params: None };
    Writer::new(consumer, mailbox, Numbered, TraceFormat::Memtrace2, first, None)
        .expect("memory takes everything")
}

/// Every event of a trace, as text.
fn events(trace: &[u8]) -> Vec<String> {
    let mut reader = Reader::from_slice(trace, Mode::Strict).expect("a trace");
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().expect("a sound trace") {
        events.push(match event.kind {
            EventKind::Alloc(block) => {
                format!("{} {} {:?}", event.time, block.length, block.backtrace.frames)
            }
            other => format!("{} {other:?}", event.time),
        });
    }
    events
}

fn encode(criterion: &mut Criterion) {
    for (name, deep) in [("records to packets", 60), ("small stacks to packets", 12)] {
        let trace = made(deep);
        let recorded = recorded(&trace);
        let out = Memory::default();
        let mut group = criterion.benchmark_group("writer");
        group.throughput(Throughput::Elements(recorded.events));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || {
                    out.0.lock().expect("one thread").clear();
                    writer(&recorded, &out)
                },
                Writer::run,
                BatchSize::PerIteration,
            );
        });
        group.finish();
        let written = events(&out.0.lock().expect("one thread"));
        assert_eq!(written.len() as u64, recorded.events);
        assert!(written == events(&trace), "the writer changed the events");
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30);
    targets = encode
}
criterion_main!(benches);
