//! Debian's `babeltrace2`, given `docs/format/probes.tsdl`, reads a sidecar as we do, event for event.

use std::fs;
use std::path::Path;
use std::process::Command;

use heaptap_probes::{
    Decoder, Encoder, Event, Heap, Pauses, ProbeKind, SliceKind, Spacing, Start, System, TagSize,
    Timed,
};

#[test]
fn babeltrace_reads_what_we_read() {
    let bytes = sidecar();
    let ours: Vec<String> = decoded(&bytes).iter().map(shown).collect();
    let Some(theirs) = babeltrace(&bytes) else { return };
    assert_eq!(theirs.len(), ours.len());
    for (at, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
        assert_eq!(theirs, ours, "event {at}");
    }
    let mut kinds: Vec<&str> = ours.iter().filter_map(|line| line.split(':').next()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), 19, "not every event is in the test: {kinds:?}");
}

/// Every kind of event, in several packets. Times go back, as those of slices do.
fn sidecar() -> Vec<u8> {
    let mut encoder = Encoder::new(4711);
    let mut bytes = Vec::new();
    for turn in 0..40_u64 {
        for (step, event) in (0..).zip(events(turn)) {
            let time = 1_700_000_000_000_000_000 + turn * 1_000 - step;
            bytes.extend(encoder.add(&Timed { time, event }).unwrap_or_default());
        }
        if turn % 9 == 0 {
            bytes.extend(encoder.take().unwrap_or_default());
        }
    }
    bytes.extend(encoder.take().unwrap_or_default());
    bytes
}

fn events(turn: u64) -> Vec<Event> {
    let long = "long name/".repeat(200);
    // No empty text: of one, babeltrace2 2.0 prints the text before it.
    let name = ["parser/depth", "x", "zwölf/Zeichen", &long][turn as usize % 4].to_owned();
    let (probe, value) = (turn as u32, turn as f64 / 4.0 - 3.0);
    let size = [TagSize::Unknown, TagSize::Exactly(turn), TagSize::AtLeast(9 * turn)];
    let some = |at: u64| (turn % 3 != at % 3).then_some(turn * 1_000 + at);
    let slice = SliceKind::ALL[turn as usize % 3];
    vec![
        Event::Start(Start {
            trace_start: 1_700_000_000_000_000,
            pid: 4711,
            word_size: 8,
            host: "here".to_owned(),
            program: "/bin/made".to_owned(),
        }),
        Event::Probe { probe, kind: ProbeKind::ALL[turn as usize % 5], name },
        Event::Count { probe, total: u64::MAX - turn },
        Event::Timer { probe, total_ns: 7 * turn, runs: turn, running: 3 },
        Event::Value { probe, last: value, least: -value, greatest: value * 8.0 },
        Event::Text { probe, text: format!("text {turn}") },
        Event::Tag { probe, live: turn, marked: 2 * turn, size: size[turn as usize % 3] },
        Event::Log { text: format!("line {turn}") },
        Event::Pause { text: "here".to_owned() },
        Event::Lost { logs: turn, slices: turn + 1 },
        Event::Slice { kind: slice, domain: turn as u16, ns: turn },
        Event::Pauses(Pauses { kind: slice, count: turn, total_ns: 2, longest_ns: 1 }),
        Event::Heap(Heap {
            minor_words: some(0),
            promoted_words: some(1),
            major_words: some(2),
            minor_collections: some(3),
            major_collections: some(4),
            compactions: some(5),
            heap_words: some(6),
            live_words: some(7),
        }),
        Event::System(System {
            rss: some(0),
            cgroup_usage: some(1),
            cgroup_limit: some(2),
            threads: some(3),
            domains: some(4),
        }),
        Event::Pressure { headroom: turn },
        Event::End,
        Event::Spacing(Spacing { until: turn, ns: 60 * turn }),
        Event::Replaced,
        Event::Cycle { number: turn, began: 5 * turn },
    ]
}

fn decoded(bytes: &[u8]) -> Vec<Timed> {
    let mut decoder = Decoder::new();
    decoder.feed(bytes);
    let next = || decoder.next_event().expect("a sound sidecar");
    std::iter::from_fn(next).collect()
}

/// The events as `babeltrace2` prints them, without the context of their packets; `None` where it
/// is not installed and need not be.
fn babeltrace(bytes: &[u8]) -> Option<Vec<String>> {
    let name = format!("probes-babeltrace-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a writable target folder");
    let metadata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format/probes.tsdl");
    fs::copy(metadata, folder.join("metadata")).expect("our metadata");
    fs::write(folder.join("sidecar"), bytes).expect("room for a sidecar");
    let run = Command::new("babeltrace2").arg(&folder).output();
    fs::remove_dir_all(&folder).expect("our own folder");
    match run {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && errors.is_empty(), "babeltrace2 says: {errors}");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Some(text.lines().map(without_packet).collect())
        }
        Err(error) => {
            assert!(
                std::env::var_os("HEAPTAP_TEST_ALL").is_none(),
                "babeltrace2 cannot be run ({error}): apt-get install babeltrace2"
            );
            eprintln!("SKIPPED: babeltrace2 is not installed ({error})");
            None
        }
    }
}

/// Of `count: { first_time = … }, { time = 1 }, { … }` all but the first braces.
fn without_packet(line: &str) -> String {
    let (name, rest) = line.split_once(": { ").expect("a name");
    let (_, rest) = rest.split_once(" }, ").expect("a context");
    format!("{name}: {rest}")
}

/// The event as `babeltrace2` prints it.
fn shown(Timed { time, event }: &Timed) -> String {
    let text = |text: &str| format!("{{ length = {}, bytes = \"{text}\" }}", text.len());
    let label = |name: &str, number: u8| format!("( \"{name}\" : container = {number} )");
    let slice = |kind: SliceKind| label(kind.name(), kind.number());
    let (name, fields) = match event {
        Event::Start(Start { trace_start, pid, word_size, host, program }) => {
            let (host, program) = (text(host), text(program));
            let numbers = format!("trace_start = {trace_start}, pid = {pid}");
            let texts = format!("word_size = {word_size}, host = {host}, program = {program}");
            ("start", format!("{numbers}, {texts}"))
        }
        Event::Probe { probe, kind, name } => {
            let kind = label(kind.name(), kind.number());
            ("probe", format!("probe = {probe}, kind = {kind}, name = {}", text(name)))
        }
        Event::Count { probe, total } => ("count", format!("probe = {probe}, total = {total}")),
        Event::Timer { probe, total_ns, runs, running } => {
            let rest = format!("runs = {runs}, running = {running}");
            ("timer", format!("probe = {probe}, total_ns = {total_ns}, {rest}"))
        }
        Event::Value { probe, last, least, greatest } => {
            let rest = format!("least = {least}, greatest = {greatest}");
            ("value", format!("probe = {probe}, last = {last}, {rest}"))
        }
        Event::Text { probe, text: found } => {
            ("text", format!("probe = {probe}, text = {}", text(found)))
        }
        Event::Tag { probe, live, marked, size } => {
            let (size, words) = match size {
                TagSize::Unknown => (label("unknown", 0), 0),
                TagSize::Exactly(words) => (label("exactly", 1), *words),
                TagSize::AtLeast(words) => (label("at_least", 2), *words),
            };
            let rest = format!("marked = {marked}, size = {size}, words = {words}");
            ("tag", format!("probe = {probe}, live = {live}, {rest}"))
        }
        Event::Log { text: found } => ("log", format!("text = {}", text(found))),
        Event::Pause { text: found } => ("pause", format!("text = {}", text(found))),
        Event::Lost { logs, slices } => ("lost", format!("logs = {logs}, slices = {slices}")),
        Event::Slice { kind, domain, ns } => {
            ("slice", format!("kind = {}, domain = {domain}, ns = {ns}", slice(*kind)))
        }
        Event::Pauses(Pauses { kind, count, total_ns, longest_ns }) => {
            let rest = format!("total_ns = {total_ns}, longest_ns = {longest_ns}");
            ("pauses", format!("kind = {}, count = {count}, {rest}", slice(*kind)))
        }
        Event::Heap(heap) => ("heap", optional_fields(&format!("{heap:?}"))),
        Event::System(system) => ("system", optional_fields(&format!("{system:?}"))),
        Event::Pressure { headroom } => ("pressure", format!("headroom = {headroom}")),
        Event::Spacing(Spacing { until, ns }) => ("spacing", format!("until = {until}, ns = {ns}")),
        Event::Cycle { number, began } => ("cycle", format!("number = {number}, began = {began}")),
        Event::End => return format!("end: {{ time = {time} }}"),
        Event::Replaced => return format!("replaced: {{ time = {time} }}"),
    };
    format!("{name}: {{ time = {time} }}, {{ {fields} }}")
}

/// Of `Heap { minor_words: Some(7), major_words: None }` the fields as they are in the file.
fn optional_fields(debug: &str) -> String {
    let (_, fields) = debug.trim_end_matches(" }").split_once(" { ").expect("fields");
    let none = u64::MAX.to_string();
    fields.replace("Some(", "").replace(')', "").replace("None", &none).replace(": ", " = ")
}
