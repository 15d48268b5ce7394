//! Writes the seed corpus: small traces, sidecars and heap snapshots with one feature of the format each.

use std::fs;
use std::path::Path;

use heaptap_trace::{
    Block, Code, Encoder, Format, Frames, LiveSink as _, Locate, Location, LocationList, Source,
    TraceInfo,
};

mod series;
mod sidecars;
mod snapshots;

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in ["decode", "reencode"] {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder).expect("a writable checkout");
        for (format, version) in [(Format::V2, "v2"), (Format::V3, "v3")] {
            for feature in FEATURES {
                let name = format!("{}.{version}", feature.name);
                fs::write(folder.join(name), trace(format, feature)).expect("room");
            }
        }
    }
    let folder = corpus.join("snapshot");
    fs::create_dir_all(&folder).expect("a writable checkout");
    for (name, file) in snapshots::all() {
        fs::write(folder.join(name), file).expect("room");
    }
    let folder = corpus.join("series");
    fs::create_dir_all(&folder).expect("a writable checkout");
    for (name, file) in series::all() {
        fs::write(folder.join(name), file).expect("room");
    }
    let folder = corpus.join("command");
    fs::create_dir_all(&folder).expect("a writable checkout");
    for (name, line) in COMMANDS {
        fs::write(folder.join(name), line).expect("room");
    }
    let folder = corpus.join("probes");
    fs::create_dir_all(&folder).expect("a writable checkout");
    for (name, file) in sidecars::all() {
        fs::write(folder.join(name), file).expect("room");
    }
}

/// Lines to the control socket and back, with every word that either side knows.
const COMMANDS: &[(&str, &str)] = &[
    ("snapshot", "snapshot /tmp/a%20b.heap sync strings=64 wait=0.5"),
    ("status", "status"),
    ("flush", "flush\r"),
    ("start", "start /tmp/%25e-%25p.ctf 1e-4 rotate=100MB,24h keep=20 wait=60"),
    ("stop", "stop wait=3599.999999999"),
    ("mark", "mark cache%20switched off"),
    ("rotate", "rotate"),
    ("rate", "rate 0.0001"),
    ("done", "ok file=/tmp/leak.ctf rate=0.0001 bytes=7 samples=8 lost=0 words=9"),
    ("refused", "error the program is not traced"),
    ("wait", "wait 1"),
];

/// What a seed is about.
struct Feature {
    name: &'static str,
    events: u64,
    depth: u64,
    codes: u64,
    step: u64,
    flush: u64,
    domains: u16,
}

const PLAIN: Feature =
    Feature { name: "plain", events: 12, depth: 5, codes: 9, step: 100, flush: 1000, domains: 1 };

const FEATURES: &[Feature] = &[
    PLAIN,
    Feature { name: "empty", events: 0, ..PLAIN },
    Feature { name: "one", events: 1, depth: 1, ..PLAIN },
    Feature { name: "recursion", depth: 700, codes: 2, ..PLAIN },
    Feature { name: "many-names", events: 40, depth: 8, codes: 120, ..PLAIN },
    Feature { name: "slow", step: 20_000_000, ..PLAIN },
    Feature { name: "flushed", flush: 2, ..PLAIN },
    Feature { name: "domains", flush: 3, domains: 3, ..PLAIN },
];

fn trace(format: Format, feature: &Feature) -> Vec<u8> {
    let info = TraceInfo {
        sample_rate: 0.01,
        word_size: 64,
        executable: b"p".to_vec(),
        host: b"h".to_vec(),
        runtime_params: Vec::new(),
        pid: 7,
        context: b"c".to_vec(),
        start_time: 1_000_000,
        domain: 0,
    };
    let mut encoder = Encoder::new(Vec::new(), format, &info).expect("a valid info");
    let domains = if format == Format::V2 { 1 } else { feature.domains };
    let mut ids = Vec::new();
    for event in 0..feature.events {
        let time = info.start_time + event * feature.step;
        let domain = (event % u64::from(domains)) as u16;
        let stack: Vec<Code> = (0..feature.depth + event % 3)
            .map(|frame| 1 + (frame * (1 + event / 4) + event / 8) % feature.codes)
            .collect();
        let source = [Source::Minor, Source::Minor, Source::Major, Source::External];
        let block = Block {
            length: [2, 3, 70_000, 16, 17, 300][event as usize % 6],
            samples: 1 + event % 2,
            source: source[event as usize % 4],
        };
        let id = encoder.domain(domain).alloc(time, block, Frames::Whole(&stack), &mut Names);
        ids.push(id.expect("a valid event"));
        if event % 3 == 1 {
            let id = ids[ids.len() - 1];
            encoder.domain(domain).promote(time, id, &mut Names).expect("a valid event");
            encoder.domain(domain).collect(time, id, &mut Names).expect("a valid event");
        }
        if event % feature.flush == feature.flush - 1 {
            encoder.flush(&mut Names).expect("memory takes everything");
        }
    }
    encoder.finish(&mut Names).expect("memory takes everything")
}

/// Names and inlining by the code's number.
struct Names;

impl Locate for Names {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        for depth in 0..code % 3 {
            let (file, definition) = (format!("f{}", code % 40), format!("d{code}.{depth}"));
            list.add(Location {
                file: file.as_bytes(),
                line: code as u32,
                start_char: 1,
                end_char: 2,
                definition: definition.as_bytes(),
            });
        }
    }
}
