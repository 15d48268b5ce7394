//! How large the file of a program becomes that runs for long, thinned as the plugin thins it:
//! `thinned_sidecar [HOURS [PROBES]]` prints the size at its largest and at its end for a program that is
//! idle, one that is busy, and one that also has probes which change all the time.

use std::time::{Duration, Instant};

use heaptap_probes::{
    Decoder, Encoder, Event, Heap, Pauses, ProbeKind, SliceKind, Start, System, Thinner, Thinning,
    Timed,
};

const START: u64 = 1_700_000_000_000_000_000;
const TICK: u64 = 100_000_000;
/// As the plugin has them.
const SHORT: usize = 128 << 10;
const LIMIT: usize = 16 << 20;

/// A file and the level at which it was thinned last.
struct Sidecar {
    encoder: Encoder,
    bytes: Vec<u8>,
    level: u32,
    next: usize,
    largest: usize,
    thinned: u32,
    /// Bytes that were read for it, and how long it took.
    read: usize,
    took: Duration,
}

impl Sidecar {
    fn add(&mut self, time: u64, event: Event) {
        self.bytes.extend(self.encoder.add(&Timed { time, event }).unwrap_or_default());
    }

    fn end_tick(&mut self, now: u64) {
        self.bytes.extend(self.encoder.take().unwrap_or_default());
        self.largest = self.largest.max(self.bytes.len());
        while self.bytes.len() >= self.next {
            let begin = Instant::now();
            let kept = self.kept(now);
            self.took += begin.elapsed();
            self.read += self.bytes.len();
            if kept.len() > LIMIT / 2 {
                self.level += 1;
                continue;
            }
            self.next = (2 * kept.len()).clamp(SHORT, LIMIT / 4 * 3);
            self.bytes = kept;
            self.thinned += 1;
        }
    }

    fn kept(&self, now: u64) -> Vec<u8> {
        let (mut decoder, mut encoder) = (Decoder::new(), Encoder::new(1));
        let mut kept = Vec::new();
        let mut keep = |timed: Timed| -> Result<(), ()> {
            kept.extend(encoder.add(&timed).unwrap_or_default());
            Ok(())
        };
        let mut thinner = Thinner::new(Thinning { now, level: self.level, drop_log: 0 });
        decoder.feed(&self.bytes);
        while let Ok(Some(timed)) = decoder.next_event() {
            let _ = thinner.add(timed, &mut keep);
        }
        let _ = thinner.finish(&mut keep);
        kept.extend(encoder.take().unwrap_or_default());
        kept
    }
}

fn main() {
    let argument = |at: usize| std::env::args().nth(at).and_then(|text| text.parse().ok());
    let (hours, probes) = (argument(1).unwrap_or(24), argument(2).unwrap_or(20));
    println!(
        "after {hours} h: KiB at its largest, KiB at its end, how often it was thinned, level, ms for a MiB"
    );
    for (name, busy, probes) in [
        ("idle", false, 0),
        ("all of the time line changes at each tick", true, 0),
        ("the same, and all probes", true, probes),
    ] {
        let found = run(hours, busy, probes as u32);
        let kib = |bytes: usize| bytes.div_ceil(1024);
        let Sidecar { largest, bytes, thinned, level, read, took, .. } = found;
        let each = took.as_secs_f64() * 1e3 / (read.max(1) as f64 / 1048576.0);
        let sizes = format!("{:>8} {:>8}", kib(largest), kib(bytes.len()));
        println!("{sizes} {thinned:>6} {level:>3} {each:>5.1}  {name}");
    }
}

fn run(hours: u64, busy: bool, probes: u32) -> Sidecar {
    let encoder = Encoder::new(1);
    let mut file = Sidecar {
        encoder,
        bytes: Vec::new(),
        level: 0,
        next: SHORT,
        largest: 0,
        thinned: 0,
        read: 0,
        took: Duration::ZERO,
    };
    let start = Start { trace_start: START / 1_000, word_size: 8, ..Start::default() };
    file.add(START, Event::Start(start));
    for probe in 0..probes {
        file.add(
            START + 1,
            Event::Probe { probe, kind: ProbeKind::Value, name: probe.to_string() },
        );
    }
    for tick in 1..=hours * 36_000 {
        let time = START + tick * TICK;
        let size = Some(1_000_000 + tick % 977);
        let rss = if busy { size } else { Some(5_000_000) };
        if busy || tick % 10 == 0 {
            file.add(time, Event::System(System { rss, threads: Some(3), ..System::default() }));
        }
        if busy {
            let heap = Heap { minor_words: Some(tick), heap_words: size, ..Heap::default() };
            file.add(time, Event::Heap(heap));
            for kind in SliceKind::ALL {
                let pauses = Pauses { kind, count: tick, total_ns: tick, longest_ns: tick % 7 };
                file.add(time, Event::Pauses(pauses));
            }
            for at in 0..8 {
                let (kind, ns) = (SliceKind::ALL[at % 3], tick % 997 + at as u64);
                file.add(time, Event::Slice { kind, domain: 0, ns });
            }
        }
        for probe in 0..probes {
            let last = (tick % 1_000) as f64;
            file.add(time, Event::Value { probe, last, least: last, greatest: last });
        }
        file.end_tick(time);
    }
    file
}
