//! `heaptap anonymise`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use heaptap_trace::EventSource as _;
use heaptap_trace::{Code, EventKind, Format, Limits, Location, Merged, Mode, Reader};

use crate::program::{Place, assert_sound, heaptap, info};
use crate::traces::{PID, START, real, workload};

/// Every name in a trace, and every code.
fn names_and_codes(trace: &[u8]) -> (HashSet<Vec<u8>>, HashSet<Code>) {
    let mut reader = Reader::from_slice(trace, Mode::Strict).unwrap();
    let info = reader.info();
    let told = [&info.executable, &info.host, &info.runtime_params, &info.context];
    let mut names: HashSet<Vec<u8>> = told.into_iter().cloned().collect();
    let mut codes = HashSet::new();
    while let Some((event, table)) = reader.next_located().unwrap() {
        let EventKind::Alloc(allocation) = event.kind else { continue };
        for &code in allocation.backtrace.new {
            if codes.insert(code) {
                let locations = table.resolve(code);
                names.extend(locations.flat_map(|l| [l.file.to_vec(), l.definition.to_vec()]));
            }
        }
    }
    (names, codes)
}

/// Whether `bytes` contain one of `patterns`, all of which have at least four.
fn find_any(bytes: &[u8], patterns: &HashSet<Vec<u8>>) -> Option<String> {
    let mut by_start: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
    for pattern in patterns {
        by_start.entry(&pattern[..4]).or_default().push(pattern);
    }
    let found = (0..bytes.len().saturating_sub(3)).find_map(|at| {
        let candidates = by_start.get(&bytes[at..at + 4])?;
        candidates.iter().find(|pattern| bytes[at..].starts_with(pattern))
    });
    found.map(|pattern| String::from_utf8_lossy(pattern).into_owned())
}

#[test]
fn nothing_of_the_original_names_addresses_times_or_process_is_left() {
    let place = Place::new();
    let mut inputs = vec![
        place.file("one.ctf", &workload(Format::V2, 1, 5000, 50)),
        place.file("other.ctf", &workload(Format::V3, 1, 5000, 51)),
    ];
    inputs.extend(real("ocamlopt.v2.ctf"));
    inputs.extend(real("ocamlopt.v3.ctf"));
    inputs.extend(real("lists_and_sets.v1.ctf"));
    let output = place.path("public.ctf");
    for input in inputs {
        let trace = fs::read(&input).unwrap();
        let (names, codes) = names_and_codes(&trace);
        assert!(names.len() > 10 && codes.len() > 10);
        assert_eq!(heaptap("anonymise", &[&input, &output]).text(0), "");
        assert_sound(&output);
        let original = info(&input);
        let number = |name: &str| original[name].as_u64().unwrap();
        // The word that stands for an unknown name belongs to the format.
        let secret = |name: &Vec<u8>| name.len() >= 4 && name != b"<unknown>";
        let mut secrets: HashSet<Vec<u8>> = names.into_iter().filter(secret).collect();
        secrets.extend(codes.iter().map(|code| code.to_le_bytes().to_vec()));
        secrets.insert(number("pid").to_le_bytes().to_vec());
        secrets.insert(number("start_unix_us").to_le_bytes().to_vec());
        // The test can fail: the original has them.
        assert!(find_any(&trace, &secrets).is_some());
        let left = find_any(&fs::read(&output).unwrap(), &secrets);
        assert_eq!(left, None, "left in the copy of {}", input.display());
    }
}

/// Numbers and names that always become the same others.
#[derive(Default)]
struct Pairs {
    renamed: HashMap<Vec<u8>, Vec<u8>>,
    origins: HashMap<Vec<u8>, Vec<u8>>,
}

impl Pairs {
    fn add(&mut self, old: &[u8], new: &[u8]) {
        assert_eq!(self.renamed.entry(old.to_vec()).or_insert(new.to_vec()), new);
        assert_eq!(self.origins.entry(new.to_vec()).or_insert(old.to_vec()), old);
    }
}

/// Fails unless two traces are the same but for times, codes and names, each
/// of which always becomes the same other.
pub(crate) fn assert_renamed(before: &Path, after: &Path) {
    let (before, after) = (fs::read(before).unwrap(), fs::read(after).unwrap());
    let merged = |trace| Merged::open(|| Ok(trace), Mode::Strict, Limits::default()).unwrap();
    let (mut before, mut after) = (merged(&before[..]), merged(&after[..]));
    let (start, new_start) = (before.info().start_time, after.info().start_time);
    let (mut codes, mut files, mut definitions) =
        (Pairs::default(), Pairs::default(), Pairs::default());
    let mut count = 0;
    while let Some((old, old_table)) = before.next_located().unwrap() {
        let (new, new_table) = after.next_located().unwrap().expect("events are missing");
        count += 1;
        assert_eq!((old.time - start, old.domain), (new.time - new_start, new.domain));
        let (EventKind::Alloc(old), EventKind::Alloc(new)) = (old.kind, new.kind) else {
            assert_eq!(old.kind, new.kind);
            continue;
        };
        assert_eq!((old.id, old.length, old.samples), (new.id, new.length, new.samples));
        assert_eq!(old.source, new.source);
        assert_eq!(old.backtrace.frames.len(), new.backtrace.frames.len());
        for (&old, &new) in old.backtrace.frames.iter().zip(new.backtrace.frames) {
            codes.add(&old.to_le_bytes(), &new.to_le_bytes());
            assert_eq!(old_table.resolve(old).count(), new_table.resolve(new).count());
            for (old, new) in old_table.resolve(old).zip(new_table.resolve(new)) {
                files.add(old.file, new.file);
                definitions.add(old.definition, new.definition);
                let numbers = |l: Location<'_>| (l.line, l.start_char, l.end_char);
                assert_eq!(numbers(old), numbers(new));
            }
        }
    }
    assert!(after.next_event().unwrap().is_none(), "events are too many");
    assert!(count > 100);
}

#[test]
fn the_same_name_always_becomes_the_same_and_all_else_stays() {
    let place = Place::new();
    let output = place.path("public.ctf");
    let mut inputs = vec![place.file("one.ctf", &workload(Format::V2, 1, 3000, 52))];
    inputs.extend(real("ocamlopt.v3.ctf"));
    for input in inputs {
        assert_eq!(heaptap("anonymise", &[&input, &output]).text(0), "");
        assert_renamed(&input, &output);
    }
}

#[test]
fn the_trace_info_says_nothing_any_more() {
    let place = Place::new();
    let input = place.file("trace.ctf", &workload(Format::V2, 1, 500, 53));
    let output = place.path("public.ctf");
    assert_eq!(heaptap("anonymise", &[&input, &output]).text(0), "");
    let facts = info(&output);
    assert_eq!(facts["executable"], "executable");
    assert_eq!(facts["host"], "host");
    assert_eq!(facts["pid"], 0);
    assert_eq!(facts["start_unix_us"], 946_684_800_000_000_u64);
    assert_eq!(facts["duration_us"], info(&input)["duration_us"]);
    assert_eq!(facts["sample_rate"], info(&input)["sample_rate"]);
    // Every packet has the new process id.
    let pid = PID.to_le_bytes();
    assert!(!fs::read(&output).unwrap().windows(8).any(|bytes| bytes == pid));
}

#[test]
fn times_can_stay_and_lines_can_go() {
    let place = Place::new();
    let input = place.file("trace.ctf", &workload(Format::V3, 1, 500, 54));
    let output = place.path("public.ctf");
    assert_eq!(heaptap("anonymise --keep-times", &[&input, &output]).text(0), "");
    assert_eq!(info(&output)["start_unix_us"], START);
    assert_renamed(&input, &output);
    assert_eq!(heaptap("anonymise --drop-lines", &[&input, &output]).text(0), "");
    let text = heaptap("dump", &[&output]).text(0);
    let locations = text.split([' ', ';', '\n']).filter(|part| part.contains('@'));
    assert!(locations.clone().count() > 500);
    for location in locations {
        assert!(location.ends_with(":0:0-0"), "{location}");
    }
}
