//! The traces to be damaged: real ones of the original tool, and generated
//! ones that bring together what those lack.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use heaptap_trace::{Block, Format, Source};

use crate::debug_info::DebugInfo;
use crate::generate::plain_info;
use crate::oracle::{self, PlainTrace};
use crate::script::{Script, Step, Style};

/// A sound trace, and the oracle's reading of it.
pub(crate) struct Sound {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) trace: PlainTrace,
}

impl Sound {
    fn new(name: String, bytes: Vec<u8>) -> Sound {
        let trace = oracle::read(&bytes);
        Sound { name, bytes, trace }
    }

    pub(crate) fn of(name: &str, script: &Script) -> Sound {
        Sound::new(name.to_owned(), script.perform(Style::Whole).bytes)
    }
}

/// The traces of the original writer, each up to a packet's end below `limit`
/// bytes.
pub(crate) fn real(limit: usize) -> Vec<Sound> {
    real_files()
        .into_iter()
        .map(|(name, mut bytes)| {
            bytes.truncate(packet_end_below(&bytes, limit));
            Sound::new(name, bytes)
        })
        .collect()
}

/// The whole files: those in `tests/data`, written by the original tool running
/// programs of our own, and the published ones, which are not part of the
/// repository. Without the latter a test says that it runs on fewer.
pub(crate) fn real_files() -> Vec<(String, Vec<u8>)> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = traces_in(&package.join("tests/data"), "made-");
    assert_eq!(files.len(), 3, "traces of the original writer in tests/data");
    let published = package.join("../../../shared/data");
    let mut more = traces_in(&published, "");
    more.retain(|(name, _)| !name.starts_with("made-"));
    if more.is_empty() {
        report_skipped(&published);
    }
    files.extend(more);
    files
}

/// The traces in a folder whose names begin like this, by name.
fn traces_in(folder: &Path, prefix: &str) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter(|name| name.starts_with(prefix) && name.ends_with(".ctf")).collect();
    names.sort();
    names.into_iter().map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect()
}

/// Not with `eprintln!`, which the test harness hides when a test passes.
fn report_skipped(folder: &Path) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let message = format!("SKIPPED in {test}: no published traces in {}\n", folder.display());
    io::stderr().write_all(message.as_bytes()).unwrap();
}

fn packet_end_below(bytes: &[u8], limit: usize) -> usize {
    let mut end = 0;
    while let Some(size) = bytes.get(end + 4..end + 8) {
        let next = end + u32::from_le_bytes(size.try_into().unwrap()) as usize / 8;
        if next > limit {
            break;
        }
        end = next;
    }
    end
}

/// Traces of some 20 packets and 100 KB: in version 2, in version 3 with three
/// domains, and with flushes, so that packets are small.
pub(crate) fn generated() -> Vec<Sound> {
    [("v2", Format::V2, 0), ("v3", Format::V3, 0), ("v2 flushed", Format::V2, 40)]
        .into_iter()
        .map(|(name, format, flush)| {
            Sound::of(&format!("generated {name}"), &program(format, 2500, flush))
        })
        .collect()
}

/// A program that walks up and down its call graph. Its codes come again and
/// again, with evictions among them, and none of its backtraces is cut.
pub(crate) fn program(format: Format, steps: u64, flush: u64) -> Script {
    let mut dice = Dice::new(1);
    let sources = [Source::Minor, Source::Minor, Source::Major, Source::External];
    let steps = (0..steps).map(|at| {
        let domain = if format == Format::V3 { dice.below(3) as u16 } else { 0 };
        let wait = [0, 10, 1000, 2_000_000][dice.below(4) as usize] * dice.below(3);
        match dice.below(10) {
            0 => Step::Promote { domain, wait, back: dice.below(50) as usize },
            1 | 2 => Step::Collect { domain, wait, back: dice.below(400) as usize },
            _ if flush > 0 && at % flush == 0 => Step::Flush,
            _ => {
                let length =
                    if dice.below(3) == 0 { dice.below(100_000) } else { 1 + dice.below(16) };
                let source = sources[dice.below(4) as usize];
                let block = Block { length, samples: 1 + dice.below(2).min(length), source };
                let calls = (0..dice.below(7)).map(|_| {
                    let hot = 1 + dice.below(60);
                    let code = if dice.below(4) == 0 { 1000 + dice.below(30_000) } else { hot };
                    (code << 4, if dice.below(30) == 0 { 40 } else { 1 })
                });
                let calls = calls.collect();
                let keep = dice.below(70) as usize;
                Step::Alloc { domain, wait, block, keep, calls }
            }
        }
    });
    let steps = steps.collect();
    Script {
        format,
        info: plain_info(),
        steps,
        debug_info: DebugInfo { files: 70, ..DebugInfo::default() },
    }
}

/// A small generator of random numbers (`SplitMix64`), so that a seed is all it
/// takes to repeat a test.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// `HEAPTAP_SEED` if it is set, else the usual seed; printed, so that a
    /// failure shows it.
    pub(crate) fn seeded(usual: u64) -> Dice {
        let seed = std::env::var("HEAPTAP_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(usual);
        println!("HEAPTAP_SEED={seed}");
        Dice(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound.max(1)
    }
}
