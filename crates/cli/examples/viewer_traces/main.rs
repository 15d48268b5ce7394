//! Writes the traces that the browser tests of the viewer open (viewer/tests):
//!
//! ```text
//! cargo run -p heaptap-cli --example viewer_traces -- DIRECTORY [rare-paths.ctf]
//! ```
//!
//! - `service.ctf`: a service with ten modules, three domains and labels, which keeps every session.
//! - `before.ctf`: the same service before it kept sessions, and with a heavier renderer.
//! - `hostile.ctf`: names that are HTML, scripts, terminal sequences and broken UTF-8.
//! - `cells.ctf`: a call tree of 100,000 cells.
//! - `probes.ctf`, `hostile-probes.ctf`: traces with sidecars (see [`sidecars`]).
//! - `rare-paths.ctf`, if it is named, and then nothing else: 300,000 blocks, nearly each with a call path of its own.
//! - `service-1.heap` to `service-3.heap`, `hostile.heap`: heap snapshots (see [`snapshots`]).

mod sidecars;
mod snapshots;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use heaptap_trace::{
    Block, Code, Encoder, Format, Frames, Locate, Location, LocationList, Source, TraceInfo,
};

use snapshots::{KeptSession, SESSION_WORDS};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A linear congruential generator: the traces are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// Code `n + 1` is the `n`th place.
struct Places(Vec<Place>);

struct Place {
    definition: Vec<u8>,
    file: Vec<u8>,
    line: u32,
}

impl Places {
    fn add(&mut self, definition: impl Into<Vec<u8>>, file: impl Into<Vec<u8>>, line: u32) -> Code {
        self.0.push(Place { definition: definition.into(), file: file.into(), line });
        self.0.len() as Code
    }
}

impl Locate for Places {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        if let Some(place) = self.0.get((code as usize).wrapping_sub(1)) {
            list.add(Location {
                file: &place.file,
                line: place.line,
                start_char: if place.line == 0 { 0 } else { 4 },
                end_char: if place.line == 0 { 0 } else { 31 },
                definition: &place.definition,
            });
        }
    }
}

/// How long the service runs, in microseconds.
const LASTS: u64 = 20_000_000;

/// Microseconds since the Unix epoch.
const START_TIME: u64 = 1_700_000_000_000_000;

fn info(sample_rate: f64, executable: &str) -> TraceInfo {
    TraceInfo {
        sample_rate,
        word_size: 64,
        executable: executable.as_bytes().to_vec(),
        host: b"nowhere".to_vec(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time: START_TIME,
        domain: 0,
    }
}

fn create(directory: &Path, name: &str) -> std::io::Result<BufWriter<File>> {
    File::create(directory.join(name)).map(BufWriter::new)
}

/// How a block of the service ends.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    /// Dead at the next minor collection.
    Young,
    /// Promoted, and dead after this many major collections.
    Old(u64),
    Kept,
    /// Of four, one is kept, and the others are young.
    KeptOneInFour,
}

struct Work {
    stack: Vec<Code>,
    words: u64,
    source: Source,
    fate: Fate,
    weight: u64,
}

/// The call paths of the service, whose sessions have this fate.
fn service(places: &mut Places, sessions: Fate) -> Vec<Work> {
    let leaking = sessions != Fate::Young;
    let labels: Vec<Code> =
        ["login", "search", "report"].iter().map(|name| places.add(*name, "label", 0)).collect();
    let main = places.add("Server.main", "src/server.ml", 40);
    let serve = places.add("Server.serve", "src/server.ml", 22);
    let handle = places.add("Http.handle", "src/http.ml", 17);
    let mut work = Vec::new();
    let mut path = |label: usize, frames: &[Code], words, source, fate, weight| {
        let mut stack = vec![labels[label], main, serve, handle];
        stack.extend_from_slice(frames);
        work.push(Work { stack, words, source, fate, weight });
    };
    let parse = places.add("Json.parse", "src/json.ml", 31);
    let token = places.add("Json.token", "src/json.ml", 12);
    let login = places.add("Session.login", "src/session.ml", 20);
    let remember = places.add("Session.remember", "src/session.ml", 9);
    let find = places.add("Index.find", "src/index.ml", 44);
    let insert = places.add("Index.insert", "src/index.ml", 51);
    let cached = places.add("Cache.add", "src/cache.ml", 8);
    let page = places.add("Render.page", "src/render.ml", 60);
    let cell = places.add("Render.cell", "src/render.ml", 33);
    let buffer = places.add("Pool.buffer", "src/pool.ml", 5);
    let write = places.add("Log.write", "src/log.ml", 14);
    let load = places.add("Store.load", "src/store.ml", 27);
    path(0, &[parse, token], 3, Source::Minor, Fate::Young, 30);
    path(1, &[parse, token], 3, Source::Minor, Fate::Young, 30);
    path(0, &[login, remember], SESSION_WORDS, Source::Minor, sessions, 6);
    path(1, &[find], 5, Source::Minor, Fate::Young, 25);
    path(1, &[find, insert], 7, Source::Minor, Fate::Old(2), 14);
    path(1, &[find, cached], 20, Source::Minor, Fate::Old(8), 6);
    path(2, &[page], 9, Source::Minor, Fate::Young, if leaking { 16 } else { 34 });
    path(2, &[page, cell], 4, Source::Minor, Fate::Young, if leaking { 20 } else { 44 });
    path(2, &[page, cell, cell, cell], 4, Source::Minor, Fate::Old(1), 6);
    path(2, &[page, buffer], 1500, Source::External, Fate::Old(1), 2);
    path(2, &[load], 600, Source::Major, Fate::Old(3), 3);
    let read = places.add("Config.read", "src/config.ml", 11);
    let tally = places.add("Metrics.tally", "src/metrics.ml", 19);
    path(0, &[read], 30, Source::Minor, Fate::Young, 1);
    path(1, &[tally], 2, Source::Minor, Fate::Young, 2);
    path(0, &[write], 6, Source::Minor, Fate::Young, 10);
    work
}

/// Twenty seconds of requests in three domains, with a minor collection every 50 ms and a major one
/// every 400 ms. Returns the blocks that are kept.
fn write_service(
    directory: &Path,
    name: &str,
    sessions: Fate,
) -> Result<Vec<KeptSession>, Box<dyn std::error::Error>> {
    const BLOCKS: u64 = 24_000;
    let mut out = create(directory, name)?;
    let info = info(1e-3, "/opt/service/service.exe");
    let mut places = Places(Vec::new());
    let work = service(&mut places, sessions);
    let all: u64 = work.iter().map(|each| each.weight).sum();
    let mut encoder = Encoder::new(&mut out, Format::V3, &info)?;
    let mut dice = Dice(7);
    let mut young: Vec<(u16, u64, Fate)> = Vec::new();
    let mut old: Vec<(u16, u64, u64)> = Vec::new();
    let mut kept_sessions = Vec::new();
    let (mut minor, mut major) = (0, 0);
    for number in 0..BLOCKS {
        let time = info.start_time + number * LASTS / BLOCKS;
        let domain = (dice.below(6) / 2) as u16;
        let mut at = dice.below(all);
        let chosen = work.iter().find(|each| {
            let here = at < each.weight;
            at = at.saturating_sub(each.weight);
            here
        });
        let Some(Work { stack, words, source, fate, .. }) = chosen else { continue };
        let samples = 1 + words / 400;
        let block = Block { length: *words, samples, source: *source };
        let id = encoder.domain(domain).alloc(time, block, Frames::Whole(stack), &mut places)?;
        let fate = match *fate {
            Fate::KeptOneInFour if number % 4 == 0 => Fate::Kept,
            Fate::KeptOneInFour => Fate::Young,
            other => other,
        };
        if fate == Fate::Kept {
            kept_sessions.push(KeptSession { id, time });
        }
        young.push((domain, id, fate));
        if number * LASTS / BLOCKS / 50_000 > minor {
            minor = number * LASTS / BLOCKS / 50_000;
            for (domain, id, fate) in young.drain(..) {
                match fate {
                    Fate::Young | Fate::KeptOneInFour => {
                        encoder.domain(domain).collect(time, id, &mut places)?;
                    }
                    Fate::Old(cycles) => {
                        encoder.domain(domain).promote(time, id, &mut places)?;
                        old.push((domain, id, cycles));
                    }
                    Fate::Kept => encoder.domain(domain).promote(time, id, &mut places)?,
                }
            }
        }
        if number * LASTS / BLOCKS / 400_000 > major {
            major = number * LASTS / BLOCKS / 400_000;
            let mut kept = Vec::new();
            for (domain, id, cycles) in old.drain(..) {
                if cycles == 0 {
                    encoder.domain(domain).collect(time, id, &mut places)?;
                } else {
                    kept.push((domain, id, cycles - 1));
                }
            }
            old = kept;
        }
    }
    encoder.finish(&mut places)?;
    out.flush()?;
    Ok(kept_sessions)
}

/// Names that a careless page would run, and bytes that are no text.
const HOSTILE: [&[u8]; 10] = [
    b"<script>window.hacked=1</script>",
    b"</script><script>window.hacked=2</script>",
    b"<img src=x onerror=\"window.hacked=3\">",
    b"\"><svg onload=window.hacked=4>",
    b"javascript:window.hacked=5",
    b"<!--<iframe src=javascript:window.hacked=6>",
    b"${window.hacked=7}{{constructor.constructor('window.hacked=8')()}}",
    b"\x1b[31mred\x1b[0m\x07",
    b"\xff\xfe not UTF-8 \xc3\x28",
    "\u{202e}backwards\u{202c} \u{0}".as_bytes(),
];

fn write_hostile(directory: &Path) -> Outcome {
    let mut out = create(directory, "hostile.ctf")?;
    let info = info(1e-3, "<b>hostile</b>");
    let mut places = Places(Vec::new());
    let mut stacks = Vec::new();
    for (at, name) in HOSTILE.iter().enumerate() {
        let label = places.add(*name, "label", 0);
        let outer = places.add(*name, *name, 1);
        let inner = places.add(format!("Module{at}.<b>{at}</b>"), *name, 2 + at as u32);
        stacks.push([label, outer, inner]);
    }
    let mut encoder = Encoder::new(&mut out, Format::V2, &info)?;
    for number in 0..2_000u64 {
        let block = Block { length: 4, samples: 1, source: Source::Minor };
        let stack = stacks[number as usize % stacks.len()];
        let time = info.start_time + number * 100;
        encoder.domain(0).alloc(time, block, Frames::Whole(&stack), &mut places)?;
    }
    encoder.finish(&mut places)?;
    Ok(out.flush()?)
}

/// A hundred functions that call a hundred others each, which have a stack of nine more.
fn write_cells(directory: &Path) -> Outcome {
    let mut out = create(directory, "cells.ctf")?;
    let info = info(1e-3, "cells");
    let mut places = Places(Vec::new());
    let mut name = |module: u64, function: u64| {
        places.add(format!("Module{module}.function{function}"), format!("module{module}.ml"), 1)
    };
    let outer: Vec<Code> = (0..100).map(|at| name(at, 0)).collect();
    let inner: Vec<Code> = (0..100).map(|at| name(at, 1)).collect();
    let deep: Vec<Code> = (0..9).map(|at| name(at, 2)).collect();
    let mut encoder = Encoder::new(&mut out, Format::V2, &info)?;
    for number in 0..10_000u64 {
        let mut stack = vec![outer[(number / 100) as usize], inner[(number % 100) as usize]];
        stack.extend_from_slice(&deep);
        let block = Block { length: 8_000, samples: 8, source: Source::Major };
        let time = info.start_time + number * 50;
        encoder.domain(0).alloc(time, block, Frames::Whole(&stack), &mut places)?;
    }
    encoder.finish(&mut places)?;
    Ok(out.flush()?)
}

/// Calls of few functions in so many orders that hardly a path occurs twice.
fn write_rare_paths(directory: &Path) -> Outcome {
    const BLOCKS: u64 = 300_000;
    const FUNCTIONS: u64 = 25;
    let mut out = create(directory, "rare-paths.ctf")?;
    let info = info(1e-2, "rare-paths");
    let mut places = Places(Vec::new());
    let functions: Vec<Code> = (0..FUNCTIONS)
        .map(|at| {
            // Some of them are library code.
            let folder = if at % 3 == 0 { "vendor" } else { "src" };
            let module = at % 7;
            let (name, file) =
                (format!("Module{module}.f{at}"), format!("{folder}/module{module}.ml"));
            places.add(name, file, 10 + at as u32)
        })
        .collect();
    let mut encoder = Encoder::new(&mut out, Format::V3, &info)?;
    let mut dice = Dice(7);
    let mut due = std::collections::BTreeMap::<u64, Vec<u64>>::new();
    for number in 0..BLOCKS {
        let time = info.start_time + number * 10;
        while let Some(first) = due.first_entry().filter(|first| *first.key() <= number) {
            for id in first.remove() {
                encoder.domain(0).collect(time, id, &mut places)?;
            }
        }
        let stack: Vec<Code> = (0..9).map(|_| functions[dice.below(FUNCTIONS) as usize]).collect();
        let block = Block { length: 2 + dice.below(5), samples: 1, source: Source::Minor };
        let id = encoder.domain(0).alloc(time, block, Frames::Whole(&stack), &mut places)?;
        if dice.below(8) == 0 {
            encoder.domain(0).promote(time, id, &mut places)?;
        }
        if dice.below(4) > 0 {
            due.entry(number + 21 + dice.below(2_000)).or_default().push(id);
        }
    }
    encoder.finish(&mut places)?;
    Ok(out.flush()?)
}

fn main() -> Outcome {
    let directory = std::env::args().nth(1).ok_or("usage: viewer_traces DIRECTORY [NAME]")?;
    let directory = Path::new(&directory);
    std::fs::create_dir_all(directory)?;
    match std::env::args().nth(2).as_deref() {
        None => write_usual(directory),
        Some("rare-paths.ctf") => write_rare_paths(directory),
        Some(other) => Err(format!("{other} is not a trace of its own").into()),
    }
}

/// Those that nearly every test opens.
fn write_usual(directory: &Path) -> Outcome {
    let kept = write_service(directory, "service.ctf", Fate::Kept)?;
    snapshots::write_service(directory, START_TIME, &kept)?;
    snapshots::write_hostile(directory, START_TIME, &HOSTILE)?;
    write_service(directory, "before.ctf", Fate::Young)?;
    write_service(directory, "partly-kept.ctf", Fate::KeptOneInFour)?;
    write_hostile(directory)?;
    sidecars::write_service(directory, START_TIME, LASTS / 1_000_000)?;
    sidecars::write_late(directory, START_TIME)?;
    sidecars::write_hostile(directory, START_TIME, &HOSTILE)?;
    write_cells(directory)
}
