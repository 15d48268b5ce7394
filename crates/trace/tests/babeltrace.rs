//! Debian's `babeltrace2`, given `docs/format/metadata.tsdl`, reads what we read
//! and what we write, event for event.
//!
//! It knows nothing of caches and tables, so the comparison is of what stands in
//! the file: times, kinds, lengths, samples, prefixes, distances of object ids,
//! and the number of location events.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use heaptap_trace::TraceReader as _;
use heaptap_trace::{
    Block, Code, Encoder, EventKind, Format, Frames, LiveSink as _, Locate, Location, LocationList,
    Mode, Reader, Source, TraceInfo,
};

/// An event in a form common to both readers.
#[derive(Debug, PartialEq)]
struct RecordedEvent {
    time: u64,
    name: String,
    numbers: Vec<i64>,
}

#[test]
fn real_traces() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let Ok(files) = fs::read_dir(&data) else {
        eprintln!("SKIPPED: no real traces at {}", data.display());
        return;
    };
    let mut count = 0;
    for file in files.map(|file| file.expect("a readable folder").path()) {
        if file.extension().is_some_and(|extension| extension == "ctf") {
            compare(&fs::read(&file).expect("a readable trace"), &file.display().to_string());
            count += 1;
        }
    }
    assert!(count >= 4, "{count} traces in {}", data.display());
}

#[test]
fn our_traces() {
    compare(&made(Format::V2, 1), "ours, version 2");
    compare(&made(Format::V3, 1), "ours, version 3");
    compare(&made(Format::V3, 3), "ours, version 3, three domains");
}

/// Reads a trace with both readers, domain by domain: to babeltrace2 a file is
/// one stream, in which time may not go back.
fn compare(bytes: &[u8], name: &str) {
    let (ours, locations) = heaptap(bytes);
    let mut their_locations = 0;
    for (domain, packets) in by_domain(bytes) {
        let Some(mut theirs) = babeltrace(&packets) else { return };
        theirs.retain(|recorded| recorded.name != "trace_info");
        let before = theirs.len();
        theirs.retain(|recorded| recorded.name != "location");
        their_locations += before - theirs.len();
        let ours = ours.iter().filter(|(of, _)| *of == domain).map(|(_, recorded)| recorded);
        assert_eq!(theirs.len(), ours.clone().count(), "events of domain {domain} of {name}");
        for (at, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
            assert_eq!(theirs, ours, "event {at} of domain {domain} of {name}");
        }
    }
    assert_eq!(their_locations as u64, locations, "location events of {name}");
    println!("{name}: {} events and {locations} locations agree", ours.len());
}

/// Each domain's packets.
fn by_domain(bytes: &[u8]) -> BTreeMap<u16, Vec<u8>> {
    let mut domains: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let bits = u32::from_le_bytes(rest[4..8].try_into().expect("four bytes"));
        let version = u16::from_le_bytes([rest[28], rest[29]]);
        let domain = if version >= 3 { u16::from_le_bytes([rest[38], rest[39]]) } else { 0 };
        let (packet, behind) = rest.split_at(bits as usize / 8);
        domains.entry(domain).or_default().extend_from_slice(packet);
        rest = behind;
    }
    domains
}

/// Our events with their domains, and the number of location events.
fn heaptap(bytes: &[u8]) -> (Vec<(u16, RecordedEvent)>, u64) {
    let mut reader = Reader::from_slice(bytes, Mode::Strict).expect("a trace");
    let mut recorded = Vec::new();
    while let Some(event) = reader.next_event().expect("a sound trace") {
        let (time, domain) = (event.time, event.domain);
        let (name, mut numbers) = match event.kind {
            EventKind::Alloc(allocation) => {
                let short = (1..=16).contains(&allocation.length)
                    && allocation.samples == 1
                    && allocation.source == Source::Minor
                    && allocation.backtrace.new.len() < 256;
                let prefix = allocation.backtrace.common_prefix as i64;
                if short {
                    (format!("alloc_{}", allocation.length), vec![prefix])
                } else {
                    let (length, samples) = (allocation.length as i64, allocation.samples as i64);
                    ("alloc".to_string(), vec![length, samples, prefix])
                }
            }
            EventKind::Promote(id) => ("promote".to_string(), vec![id as i64]),
            EventKind::Collect(id) => ("collect".to_string(), vec![id as i64]),
            other => panic!("{other:?}"),
        };
        if let ("promote" | "collect", [id]) = (name.as_str(), &mut numbers[..]) {
            // The file holds the distance from the last allocation.
            *id = reader.next_id() as i64 - 1 - *id;
        }
        recorded.push((domain, RecordedEvent { time, name, numbers }));
    }
    (recorded, reader.totals().locations)
}

/// The events that `babeltrace2` reads from the same bytes; `None` where it is not
/// installed and need not be.
fn babeltrace(bytes: &[u8]) -> Option<Vec<RecordedEvent>> {
    let folder = scratch();
    let metadata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format/metadata.tsdl");
    fs::copy(metadata, folder.join("metadata")).expect("our metadata");
    fs::write(folder.join("trace"), bytes).expect("room for a trace");
    let run =
        Command::new("babeltrace2").args(["--clock-cycles", "--no-delta"]).arg(&folder).output();
    let recorded = match run {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && errors.is_empty(), "babeltrace2 says: {errors}");
            Some(String::from_utf8_lossy(&output.stdout).lines().map(parse).collect())
        }
        Err(error) => {
            assert!(
                std::env::var_os("HEAPTAP_TEST_ALL").is_none(),
                "babeltrace2 cannot be run ({error}): apt-get install babeltrace2"
            );
            eprintln!("SKIPPED: babeltrace2 is not installed ({error})");
            None
        }
    };
    fs::remove_dir_all(&folder).expect("our own folder");
    recorded
}

/// A folder of our own.
fn scratch() -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("babeltrace-{}-{number}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a writable target folder");
    folder
}

/// A line such as `[0000…] alloc_4: { … }, { common_prefix = … }`.
fn parse(line: &str) -> RecordedEvent {
    let (time, rest) = line.trim_start_matches('[').split_once("] ").expect("a time");
    let (name, rest) = rest.split_once(": ").expect("a name");
    let fields = rest.split_once("}, {").map_or("", |(_, fields)| fields);
    let names: &[&str] = match name {
        "alloc" => &["length", "samples", "common_prefix"],
        "promote" | "collect" => &["distance"],
        name if name.starts_with("alloc_") => &["common_prefix"],
        _ => &[],
    };
    // The packet's context ends at the first "}, {" that a field follows.
    let numbers = names.iter().map(|name| vint(fields, name)).collect();
    RecordedEvent { time: time.parse().expect("microseconds"), name: name.to_string(), numbers }
}

/// A number as babeltrace2 prints our vints:
/// `NAME = { tag = ( "inline" : container = 65 ), value = { { } } }` or
/// `NAME = { tag = ( "wide16" : container = 253 ), value = { 254 } }`.
fn vint(fields: &str, name: &str) -> i64 {
    let (_, rest) = fields.split_once(&format!("{name} = {{ tag = ( \"")).expect("the field");
    let (label, rest) = rest.split_once("\" : container = ").expect("a label");
    let (container, rest) = rest.split_once(" ), value = { ").expect("a container");
    let number =
        if label == "inline" { container } else { rest.split_once(' ').expect("a value").0 };
    number.parse().expect("a number")
}

/// A trace of ours with everything in it that the format has.
fn made(format: Format, domains: u16) -> Vec<u8> {
    let info = TraceInfo {
        sample_rate: 0.5,
        word_size: 64,
        executable: b"made".to_vec(),
        host: b"here".to_vec(),
        runtime_params: b"s=4k".to_vec(),
        pid: 4711,
        context: b"a test".to_vec(),
        start_time: 1_700_000_000_000_000,
        domain: 0,
    };
    let mut encoder = Encoder::new(Vec::new(), format, &info).expect("a valid info");
    let mut time = info.start_time;
    let lengths = [1, 16, 17, 252, 253, 65_535, 65_536, 1 << 31, (1 << 62) - 1];
    for turn in 0..60u64 {
        let domain = (turn % u64::from(domains)) as u16;
        let mut stack: Vec<Code> = (1..400).map(|frame| (frame % 7 + 1) << 4).collect();
        for step in 0..200u64 {
            time += 997 * step;
            stack.truncate(400 - (step * 37 % 300) as usize);
            stack.extend((0..step % 20).map(|frame| (turn * 1000 + step * frame + 1) << 4));
            let length = lengths[(step % 9) as usize];
            let source = [Source::Minor, Source::Major, Source::External][(step % 3) as usize];
            let block = Block { length, samples: 1 + step % 2, source };
            let id =
                encoder.domain(domain).alloc(time, block, Frames::Whole(&stack), &mut Numbered);
            let id = id.expect("a valid event");
            if step % 3 == 0 {
                encoder.domain(domain).promote(time, id, &mut Numbered).expect("a valid event");
            }
            if step % 5 == 0 {
                encoder
                    .domain(domain)
                    .collect(time, id - step.min(id), &mut Numbered)
                    .expect("valid");
            }
        }
        encoder.flush(&mut Numbered).expect("memory takes everything");
    }
    encoder.finish(&mut Numbered).expect("memory takes everything")
}

/// Explains a code by its number, with inlining now and then.
struct Numbered;

impl Locate for Numbered {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        for depth in 0..code / 16 % 4 {
            let (file, definition) = (format!("f{}.ml", code % 97), format!("F.g{depth}"));
            list.add(Location {
                file: file.as_bytes(),
                line: code as u32,
                start_char: 300,
                end_char: 2000,
                definition: definition.as_bytes(),
            });
        }
    }
}
