//! How fast traces are read and written.
//!
//! On the real 2 MB trace where it is there, else on one of the same shape that
//! the bench makes. Every bench asserts what it computed, so that none gets
//! faster by doing less. Part of `make bench`.

use std::hint::black_box;
use std::io::{self, Read};
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use heaptap_trace::EventSource as _;
use heaptap_trace::{
    Block, Code, Encoder, EventKind, Format, Frames, Locate, LocationList, LocationTable, Mode,
    Reader, Source, TraceInfo,
};

/// A trace's bytes and what is known of it.
struct Subject {
    name: &'static str,
    bytes: Vec<u8>,
    events: u64,
    frames: u64,
}

fn subject() -> Subject {
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/ocamlopt.v1.ctf");
    match std::fs::read(&real) {
        Ok(bytes) => Subject { name: "real", bytes, events: 175_035, frames: 9_810_710 },
        Err(_) => {
            eprintln!("no real trace at {}: measuring on a made one", real.display());
            made()
        }
    }
}

/// A program of mean depth 116 that moves through its stack like a compiler.
fn made() -> Subject {
    let info = TraceInfo {
        sample_rate: 1e-4,
        word_size: 64,
        executable: b"made".to_vec(),
        host: b"bench".to_vec(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time: 1_700_000_000_000_000,
        domain: 0,
    };
    let mut encoder = Encoder::new(Vec::new(), Format::V2, &info).expect("a valid info");
    let mut random = 1u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (random >> 33) % below
    };
    let (mut stack, mut frames): (Vec<Code>, u64) = (Vec::new(), 0);
    for at in 0..84_270u64 {
        let keep = (stack.len() as u64).saturating_sub(next(16)) as usize;
        stack.truncate(keep);
        let wanted = 100 + next(32) as usize;
        while stack.len() < wanted {
            let caller = stack.last().copied().unwrap_or(0);
            let callee = if next(4) > 0 { caller * 7 % 6_337 } else { next(6_337) };
            stack.push((callee + 1) << 4);
        }
        frames += stack.len() as u64;
        let block = Block { length: 1 + next(8), samples: 1, source: Source::Minor };
        let time = info.start_time + 10 * at;
        let id = encoder.domain(0).alloc(time, block, Frames::Whole(&stack), &mut Numbered);
        if at % 16 == 0 {
            encoder
                .domain(0)
                .promote(time, id.expect("a valid event"), &mut Numbered)
                .expect("valid");
        }
        if let Some(old) = at.checked_sub(1000) {
            encoder.domain(0).collect(time, old, &mut Numbered).expect("valid");
        }
    }
    let bytes = encoder.finish(&mut Numbered).expect("memory takes everything");
    Subject { name: "made", bytes, events: 84_270 + 84_270 / 16 + 1 + 83_270, frames }
}

/// Explains a code by its number.
struct Numbered;

impl Locate for Numbered {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        let name = format!("Module{}.function_{code}", code % 97);
        list.add(heaptap_trace::Location {
            file: name.as_bytes(),
            line: code as u32,
            start_char: 2,
            end_char: 30,
            definition: name.as_bytes(),
        });
    }
}

/// Events and frames, to show that all were read.
fn read_all<I: heaptap_trace::Input>(mut reader: Reader<I>) -> (u64, u64) {
    let (mut events, mut frames) = (0, 0);
    while let Some(event) = reader.next_event().expect("a sound trace") {
        events += 1;
        if let EventKind::Alloc(allocation) = event.kind {
            frames += allocation.backtrace.frames.len() as u64;
        }
    }
    (events, frames)
}

/// Gives at most one page at a time, as a pipe may.
struct Pipe<'a>(&'a [u8]);

impl Read for Pipe<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(4096);
        self.0.read(&mut buffer[..room])
    }
}

fn decode(criterion: &mut Criterion) {
    let subject = subject();
    let expected = (subject.events, subject.frames);
    let mut group = criterion.benchmark_group(format!("decode/{}", subject.name));
    group.throughput(Throughput::Elements(subject.events));
    for (name, mode) in [("strict", Mode::Strict), ("lenient", Mode::Lenient)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let reader = Reader::from_slice(black_box(&subject.bytes), mode);
                assert_eq!(read_all(reader.expect("a trace")), expected);
            });
        });
    }
    group.bench_function("pipe", |bencher| {
        bencher.iter(|| {
            let reader = Reader::new(Pipe(black_box(&subject.bytes)), Mode::Lenient);
            assert_eq!(read_all(reader.expect("a trace")), expected);
        });
    });
    group.finish();
}

/// An event apart from any reader, in few bytes: what the bench itself fetches
/// from memory counts too.
struct Owned {
    time: u64,
    /// Of an allocation its length, else the object's id.
    value: u64,
    prefix: u32,
    new: u32,
    samples: u32,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Alloc(Source),
    Promote,
    Collect,
}

/// A trace's events in memory, as a tracer would have them: of each stack the
/// part that is new. All stacks whole would take 78 MB, and the bench would
/// measure the fetching of those.
struct Events {
    info: TraceInfo,
    list: Vec<Owned>,
    new_frames: Vec<Code>,
    table: LocationTable,
}

impl Events {
    fn of(bytes: &[u8]) -> Events {
        let mut reader = Reader::from_slice(bytes, Mode::Strict).expect("a trace");
        let info = reader.info().clone();
        let (mut list, mut new_frames) = (Vec::new(), Vec::new());
        while let Some(event) = reader.next_event().expect("a sound trace") {
            let other = |value, kind| Owned {
                time: event.time,
                value,
                prefix: 0,
                new: 0,
                samples: 0,
                kind,
            };
            list.push(match event.kind {
                EventKind::Alloc(allocation) => {
                    new_frames.extend_from_slice(allocation.backtrace.new);
                    Owned {
                        prefix: allocation.backtrace.common_prefix as u32,
                        new: allocation.backtrace.new.len() as u32,
                        samples: allocation.samples as u32,
                        ..other(allocation.length, Kind::Alloc(allocation.source))
                    }
                }
                EventKind::Promote(id) => other(id, Kind::Promote),
                EventKind::Collect(id) => other(id, Kind::Collect),
                kind => panic!("{kind:?}"),
            });
        }
        Events { info, list, new_frames, table: reader.into_locations() }
    }

    /// Writes them all; how many bytes that takes.
    fn write(&self, whole: bool) -> usize {
        let mut locate = &self.table;
        let out = Vec::with_capacity(4 << 20);
        let mut encoder = Encoder::new(out, Format::V2, &self.info).expect("a valid info");
        let mut stack = Vec::new();
        let mut rest = &self.new_frames[..];
        for &Owned { time, value, prefix, new, samples, kind } in &self.list {
            let written = match kind {
                Kind::Alloc(source) => {
                    let (new, behind) = rest.split_at(new as usize);
                    rest = behind;
                    let frames = if whole {
                        stack.truncate(prefix as usize);
                        stack.extend_from_slice(new);
                        Frames::Whole(&stack)
                    } else {
                        Frames::Suffix { common_prefix: u64::from(prefix), new }
                    };
                    let block = Block { length: value, samples: u64::from(samples), source };
                    encoder.domain(0).alloc(time, block, frames, &mut locate).map(|_| ())
                }
                Kind::Promote => encoder.domain(0).promote(time, value, &mut locate),
                Kind::Collect => encoder.domain(0).collect(time, value, &mut locate),
            };
            written.expect("a valid event");
        }
        encoder.finish(&mut locate).expect("memory takes everything").len()
    }
}

fn encode(criterion: &mut Criterion) {
    let subject = subject();
    let events = Events::of(&subject.bytes);
    let expected = events.write(true);
    let mut group = criterion.benchmark_group(format!("encode/{}", subject.name));
    group.throughput(Throughput::Elements(subject.events));
    for (name, whole) in [("whole stacks", true), ("prefix and suffix", false)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| assert_eq!(black_box(&events).write(whole), expected));
        });
    }
    group.finish();
}

criterion_group!(benches, decode, encode);
criterion_main!(benches);
