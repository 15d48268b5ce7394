//! The two small traces in `tests/data`, for the documentation's example and
//! whoever needs a trace at hand.
//!
//! Write them anew with
//! `cargo test -p heaptap-trace --test suite -- --ignored write_tiny_traces`.

use std::fs;
use std::path::PathBuf;

use heaptap_trace::{Block, Format, Source, TraceInfo};

use crate::debug_info::{DebugInfo, OwnedLocation};
use crate::reading::{RecordedKind, read_locations, read_strictly};
use crate::round_trip::check;
use crate::script::{Script, Step, Style};

const TRACES: [(&str, Format); 2] = [("tiny.v2.ctf", Format::V2), ("tiny.v3.ctf", Format::V3)];

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A program that fills a table, grows it and drops most of it. In version 3 a
/// second domain sorts.
pub(crate) fn tiny(format: Format) -> Script {
    let names: [(u64, &str, u32, &str); 7] = [
        (0x1010, "bin/main.ml", 41, "Dune__exe__Main"),
        (0x1020, "bin/main.ml", 17, "Dune__exe__Main.load"),
        (0x1030, "hashtbl.ml", 66, "Stdlib__Hashtbl.create"),
        (0x1040, "hashtbl.ml", 299, "Stdlib__Hashtbl.add"),
        (0x1050, "hashtbl.ml", 115, "Stdlib__Hashtbl.resize"),
        (0x1060, "array.ml", 404, "Stdlib__Array.stable_sort"),
        (0x1070, "domain.ml", 202, "Stdlib__Domain.spawn.body"),
    ];
    let location = |&(code, file, line, definition): &(u64, &str, u32, &str)| {
        let location = OwnedLocation {
            file: file.as_bytes().to_vec(),
            line,
            start_char: 4,
            end_char: 30,
            definition: definition.as_bytes().to_vec(),
        };
        (code, vec![location])
    };
    let second = if format == Format::V3 { 1 } else { 0 };
    let alloc = |domain, length, source, keep, codes: &[u64]| Step::Alloc {
        domain,
        wait: 1500,
        block: Block { length, samples: 1 + length / 1000, source },
        keep,
        calls: codes.iter().map(|&code| (code, 1)).collect(),
    };
    let mut steps = vec![alloc(0, 16, Source::Minor, 0, &[0x1010, 0x1020, 0x1030])];
    for turn in 0..12_u64 {
        steps.push(alloc(0, 3, Source::Minor, 2, &[0x1040]));
        if turn % 4 == 3 {
            steps.push(alloc(0, 256 << turn, Source::Major, 3, &[0x1050]));
            steps.push(alloc(second, 200, Source::Minor, 0, &[0x1070, 0x1060]));
            steps.push(Step::Promote { domain: 0, wait: 20, back: 2 });
            steps.push(Step::Collect { domain: second, wait: 20, back: 0 });
        }
    }
    steps.push(alloc(0, 100_000, Source::External, 1, &[]));
    steps.extend((0..6).map(|back| Step::Collect { domain: 0, wait: 10, back }));
    let info = TraceInfo {
        sample_rate: 1e-4,
        word_size: 64,
        executable: b"./main.exe".to_vec(),
        host: b"example".to_vec(),
        runtime_params: b"b=0,d=128,e=65536,i=0,p=0,s=262144,v=0x0".to_vec(),
        pid: 4711,
        context: b"tiny".to_vec(),
        start_time: 1_700_000_000_000_000,
        domain: 0,
    };
    let debug_info = DebugInfo { locations: names.iter().map(location).collect(), files: 0 };
    Script { format, info, steps, debug_info }
}

#[test]
#[ignore = "writes tests/data"]
fn write_tiny_traces() {
    for (name, format) in TRACES {
        fs::write(path(name), tiny(format).perform(Style::Whole).bytes).unwrap();
    }
}

#[test]
fn the_tiny_traces_are_what_the_encoder_writes() {
    for (name, format) in TRACES {
        let script = tiny(format);
        check(&script);
        let committed = fs::read(path(name)).unwrap();
        assert!(committed == script.perform(Style::Whole).bytes, "{name}");
        assert!(committed.len() < 4096, "{name} has {} bytes", committed.len());
    }
}

/// What they hold, for those who use them.
#[test]
fn the_tiny_traces_tell() {
    for (name, format) in TRACES {
        let bytes = fs::read(path(name)).unwrap();
        let reading = read_strictly(&bytes);
        assert_eq!(reading.totals.allocations, 20, "{name}");
        assert_eq!(reading.totals.promotions, 3, "{name}");
        assert_eq!(reading.totals.collections, 9, "{name}");
        assert_eq!(read_locations(&bytes).len(), 7, "{name}");
        let domains = reading.recorded.iter().filter(|recorded| recorded.domain == 1).count();
        assert_eq!(domains, if format == Format::V3 { 6 } else { 0 }, "{name}");
        let samples = reading.recorded.iter().map(|recorded| match recorded.kind {
            RecordedKind::Alloc { block, .. } => block.samples,
            _ => 0,
        });
        assert_eq!(samples.sum::<u64>(), 678, "{name}");
    }
}
