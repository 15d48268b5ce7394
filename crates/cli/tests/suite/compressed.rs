//! Traces that were compressed by gzip or Zstandard.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::write::GzEncoder;
use heaptap_trace::Format;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::program::{Place, heaptap, heaptap_reading};
use crate::traces::workload;

const READING: [&str; 8] = [
    "report",
    "leaks",
    "info",
    "dump",
    "dump --merge",
    "check --strict",
    "export --to folded",
    "export --to pprof",
];
const REWRITING: [&str; 4] =
    ["recode", "recode --format 2", "thin --rate 0.001 --seed 1", "anonymise"];

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// What is printed of a file, with another name for it.
fn printed(call: &str, file: &Path, name: &str) -> String {
    let run = heaptap(call, &[file]);
    assert_eq!(run.status, 0, "{call}: {}", run.err);
    String::from_utf8_lossy(&run.out).replace(file.to_str().unwrap(), name)
}

#[test]
fn every_verb_reads_a_compressed_trace_as_it_is() {
    let place = Place::new();
    for format in [Format::V2, Format::V3] {
        let domains = if format == Format::V2 { 1 } else { 3 };
        let trace = workload(format, domains, 3000, 71);
        let plain = place.file("plain.ctf", &trace);
        for (name, packed) in [("t.ctf.gz", gzip(&trace)), ("t.ctf.zst", zstd(&trace))] {
            let file = place.file(name, &packed);
            for call in READING {
                let expected = printed(call, &plain, "T");
                assert!(printed(call, &file, "T") == expected, "{call} {name}");
                let piped = heaptap_reading(&format!("{call} -"), &[], &packed);
                assert_eq!(piped.status, 0, "{}", piped.err);
                let text = String::from_utf8_lossy(&piped.out).replace("standard input", "T");
                assert!(text == expected, "{call} {name} through a pipe");
            }
            for call in REWRITING {
                let outputs = [&plain, &file].map(|input| {
                    let output = place.path("out.ctf");
                    heaptap(call, &[input, &output]).says(0, &[]);
                    fs::read(output).unwrap()
                });
                assert!(outputs[0] == outputs[1], "{call} {name}");
            }
            fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn several_compressed_traces_are_read_as_one() {
    let place = Place::new();
    let traces = [72, 73].map(|seed| workload(Format::V3, 2, 500, seed));
    for directory in ["plain", "packed"] {
        fs::create_dir(place.path(directory)).unwrap();
    }
    let pack = [gzip, zstd];
    for (number, (trace, pack)) in traces.iter().zip(pack).enumerate() {
        place.file(&format!("plain/{number}.ctf"), trace);
        place.file(&format!("packed/{number}.ctf.packed"), &pack(trace));
    }
    let [plain, packed] =
        ["plain", "packed"].map(|name| printed("export --to folded", &place.path(name), "T"));
    assert!(plain == packed);
}

#[test]
fn what_was_cut_off_or_damaged_is_named_with_what_to_do() {
    let place = Place::new();
    let trace = workload(Format::V2, 1, 3000, 74);
    for (name, packed, program) in
        [("t.ctf.gz", gzip(&trace), "zcat"), ("t.ctf.zst", zstd(&trace), "zstdcat")]
    {
        let before = place.names();
        let cut = place.file(name, &packed[..packed.len() / 2]);
        let says = |file: &Path, what: &str| {
            for call in READING {
                heaptap(call, &[file]).says(2, &[name, "compressed", what, program]);
            }
            for call in REWRITING {
                let output = place.path("out.ctf");
                heaptap(call, &[file, &output]).says(2, &[name, "compressed", what, program]);
                assert!(!output.exists());
            }
        };
        says(&cut, "ends too early");
        let mut damaged = packed.clone();
        // The checksum of gzip, and a block of a type that there is not.
        match program {
            "zcat" => damaged[packed.len() - 6] ^= 0xff,
            _ => damaged
                .splice(packed.len().., [0x28, 0xb5, 0x2f, 0xfd, 0, 0, 7, 0, 0])
                .for_each(drop),
        }
        says(&place.file(name, &damaged), "is damaged");
        fs::remove_file(cut).unwrap();
        assert_eq!(place.names(), before, "something is left behind");
    }
}

#[test]
fn a_compressed_trace_is_not_followed() {
    let place = Place::new();
    let packed = place.file("t.ctf.gz", &gzip(&workload(Format::V2, 1, 100, 75)));
    let words = ["t.ctf.gz", "compressed", "can be followed", "heaptap report FILE"];
    heaptap("top --once", &[&packed]).says(2, &words);
}
