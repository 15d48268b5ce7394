//! `heaptap dump`.

use std::io::Read as _;
use std::process::Stdio;

use heaptap_trace::{Block, Encoder, Format, Frames, Location, LocationList, Source};
use serde_json::Value;

use crate::program::{Place, command, dump, heaptap, info};
use crate::traces::{START, Sources, Writer, real, small_block, trace_info, workload};

#[test]
fn lines_have_the_documented_format() {
    let mut writer = Writer::new(Format::V2);
    let first = Sources::FIRST;
    writer.alloc(0, small_block(), &[first, first + 1, first + 5]);
    let major = Block { length: 1000, samples: 7, source: Source::Major };
    let id = writer.alloc(0, major, &[first, first + 2]);
    writer.promote(0, id);
    writer.collect(0, 0);
    let place = Place::new();
    let lines = dump(&place.file("trace.ctf", &writer.finish()));
    assert_eq!(
        lines,
        [
            "1 0 0 alloc length=3 samples=1 source=minor depth=3 common=0 \
             Module0.function_0_0@directory/source_0.ml:10:0-9 \
             Module1.function_1_0@directory/source_1.ml:11:1-10;\
             Module1.function_1_1@directory/source_1.ml:11:1-10 0x550000001005",
            "2 0 1 alloc length=1000 samples=7 source=major depth=2 common=1 \
             Module0.function_0_0@directory/source_0.ml:10:0-9 \
             Module2.function_2_0@directory/source_2.ml:12:2-11",
            "3 0 1 promote",
            "4 0 0 collect",
        ]
    );
}

#[test]
fn there_are_as_many_lines_as_events() {
    let place = Place::new();
    let mut paths = vec![
        place.file("one.ctf", &workload(Format::V2, 1, 3000, 4)),
        place.file("four.ctf", &workload(Format::V3, 4, 3000, 5)),
    ];
    paths.extend(real("ocamlopt.v2.ctf"));
    paths.extend(real("ocamlopt.v3.ctf"));
    paths.extend(real("lists_and_sets.v1.ctf"));
    for path in paths {
        let facts = info(&path);
        let lines = dump(&path);
        let of_kind =
            |kind: &str| lines.iter().filter(|line| line.split(' ').nth(3) == Some(kind)).count();
        assert_eq!(facts["events"]["allocations"], of_kind("alloc"));
        assert_eq!(facts["events"]["promotions"], of_kind("promote"));
        assert_eq!(facts["events"]["collections"], of_kind("collect"));
        assert_eq!(
            lines.len(),
            of_kind("alloc") + of_kind("promote") + of_kind("collect"),
            "other lines in {}",
            path.display()
        );
    }
}

/// A frame of the JSON as the text has it, for names without odd characters.
fn frame_text(frame: &Value) -> String {
    let locations = frame["locations"].as_array().unwrap();
    if locations.is_empty() {
        return frame["code"].as_str().unwrap_or("<lost>").to_string();
    }
    let text = |location: &Value| {
        let name = |key: &str| location[key].as_str().unwrap().to_string();
        let (line, start, end) = (&location["line"], &location["start"], &location["end"]);
        format!("{}@{}:{line}:{start}-{end}", name("definition"), name("file"))
    };
    locations.iter().map(text).collect::<Vec<_>>().join(";")
}

#[test]
fn json_says_the_same_as_text() {
    let place = Place::new();
    let path = place.file("trace.ctf", &workload(Format::V3, 3, 2000, 6));
    let text = dump(&path);
    let json = heaptap("dump --json", &[&path]).text(0);
    assert_eq!(json.lines().count(), text.len());
    for (json, text) in json.lines().zip(&text) {
        let event: Value = serde_json::from_str(json).unwrap();
        assert_eq!(event["unix_us"], event["time_us"].as_u64().unwrap() + START);
        let kind = event["event"].as_str().unwrap();
        let mut line = format!("{} {} {} {kind}", event["time_us"], event["domain"], event["id"]);
        if kind == "alloc" {
            let source = event["source"].as_str().unwrap();
            line += &format!(
                " length={} samples={} source={source} depth={} common={}",
                event["length"], event["samples"], event["depth"], event["common"]
            );
            for frame in event["frames"].as_array().unwrap() {
                line += " ";
                line += &frame_text(frame);
            }
        }
        assert_eq!(&line, text);
    }
}

#[test]
fn merging_puts_all_domains_in_the_order_of_time_and_loses_nothing() {
    let place = Place::new();
    let path = place.file("trace.ctf", &workload(Format::V3, 5, 5000, 7));
    let mut plain = dump(&path);
    let merged = heaptap("dump --merge", &[&path]).text(0);
    let mut merged: Vec<String> = merged.lines().map(String::from).collect();
    let time = |line: &String| line.split(' ').next().unwrap().parse::<u64>().unwrap();
    assert!(merged.is_sorted_by_key(time), "not in the order of time");
    assert!(!plain.is_sorted_by_key(time), "the test is too easy");
    plain.sort();
    merged.sort();
    assert_eq!(plain, merged);
}

/// A trace whose every string is an attempt to break out of its place.
fn hostile_trace() -> Vec<u8> {
    let evil =
        b"\x1b]0;owned\x07 a;b@c\\\n\r\t\x7f\xff\xc2\x9b31m\xe2\x80\xaetxt\xe2\x80\xa8".to_vec();
    let mut info = trace_info();
    info.executable.clone_from(&evil);
    info.host.clone_from(&evil);
    info.runtime_params.clone_from(&evil);
    info.context.clone_from(&evil);
    let mut locate = |_code: u64, list: &mut LocationList| {
        for _ in 0..2 {
            let (line, start_char, end_char) = (1, 2, 3);
            list.add(Location { file: &evil, line, start_char, end_char, definition: &evil });
        }
    };
    struct Locator<F>(F);
    impl<F: FnMut(u64, &mut LocationList)> heaptap_trace::Locate for Locator<F> {
        fn locate(&mut self, code: u64, list: &mut LocationList) {
            (self.0)(code, list);
        }
    }
    let mut locator = Locator(&mut locate);
    let mut encoder = Encoder::new(Vec::new(), Format::V2, &info).unwrap();
    for time in 0..3 {
        let frames = Frames::Whole(&[1, 2, 3]);
        encoder.domain(0).alloc(START + time, small_block(), frames, &mut locator).unwrap();
    }
    encoder.finish(&mut locator).unwrap()
}

#[test]
fn hostile_names_stay_on_their_line_and_off_the_terminal() {
    let place = Place::new();
    let path = place.file("evil.ctf", &hostile_trace());
    for call in ["dump", "dump --json", "info", "info --json", "check"] {
        let text = heaptap(call, &[&path]).text(0);
        let odd = text.chars().find(|&c| {
            c.is_control() && c != '\n' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2028}')
        });
        assert_eq!(odd, None, "{call} prints {text}");
    }
    let lines = dump(&path);
    assert_eq!(lines.len(), 3);
    for line in lines {
        let fields: Vec<&str> = line.split(' ').collect();
        assert_eq!(fields.len(), 9 + 3, "{line}");
        for frame in &fields[9..] {
            let locations: Vec<&str> = frame.split(';').collect();
            assert_eq!(locations.len(), 2, "{frame}");
            let (definition, place) = locations[0].rsplit_once('@').unwrap();
            assert!(definition.ends_with("\\u{202e}txt\\u{2028}"), "{definition}");
            assert!(place.ends_with(":1:2-3"), "{place}");
        }
    }
    let json = heaptap("dump --json", &[&path]).text(0);
    for line in json.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let name = event["frames"][0]["locations"][1]["file"].as_str().unwrap();
        assert!(name.starts_with("\x1b]0;owned\x07 a;b@c\\\n"), "{name:?}");
    }
}

#[test]
fn a_closed_pipe_ends_it_quietly_with_success() {
    let place = Place::new();
    let path = place.file("trace.ctf", &workload(Format::V2, 1, 30_000, 8));
    for call in ["dump", "dump --json", "dump --merge"] {
        let mut child =
            command(call, &[&path]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 100];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{call}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn a_backtrace_whose_text_is_too_long_to_keep_is_still_printed_whole() {
    struct LongNames;
    impl heaptap_trace::Locate for LongNames {
        fn locate(&mut self, code: u64, list: &mut LocationList) {
            let name = format!("{code}").repeat(3900);
            let (line, start_char, end_char) = (1, 2, 3);
            let definition = name.as_bytes();
            list.add(Location { file: b"f", line, start_char, end_char, definition });
        }
    }
    let mut encoder = Encoder::new(Vec::new(), Format::V2, &trace_info()).unwrap();
    let mut frames = vec![1; 1400];
    for last in [2, 3, 2] {
        frames.push(last);
        let whole = Frames::Whole(&frames);
        encoder.domain(0).alloc(START, small_block(), whole, &mut LongNames).unwrap();
    }
    let place = Place::new();
    let path = place.file("deep.ctf", &encoder.finish(&mut LongNames).unwrap());
    for (line, last) in dump(&path).iter().zip(["2", "32", "232"]) {
        let names: String = line.split(' ').skip(9).map(|frame| &frame[..1]).collect();
        let reversed: String = last.chars().rev().collect();
        assert_eq!(names, "1".repeat(1400) + &reversed);
    }
    let json = heaptap("dump --json", &[&path]).text(0);
    let events: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[2]["frames"].as_array().unwrap().len(), 1403);
}

/// A snapshot with two blocks and one item of most kinds.
fn small_snapshot() -> Vec<u8> {
    use heaptap_heap::{
        Encoder, Finaliser, FinaliserKind, KindNamespace, MetaKey, Name, Root, RootOwner, Segment,
        SegmentKind, Workspace,
    };
    let mut workspace = Box::new(Workspace::new());
    let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
    let mut write = || {
        encoder.meta(MetaKey::HEADER_WORDS, b"1")?;
        encoder.segment(Segment { kind: SegmentKind::Young, start: 0x1000, words: 6 })?;
        encoder.begin_block(0x1008, 2, 7)?;
        encoder.pointer(1, 0x1020)?;
        encoder.end_block()?;
        encoder.begin_block(0x1020, 2, 252)?;
        encoder.custom(0x40, 99)?;
        encoder.string(b"a b\n")?;
        encoder.end_block()?;
        encoder.root(Root { owner: RootOwner::Host { kind: 3, index: 4 }, target: 0x1008 })?;
        let kind = FinaliserKind::Last;
        encoder.finaliser(Finaliser { kind, value: 0x1020, function: 0 })?;
        encoder.begin_ephemeron(0x1020)?;
        encoder.ephemeron_key(0, 0x1008)?;
        encoder.ephemeron_data(0x1020)?;
        encoder.end_ephemeron()?;
        encoder.thread(1, 0, b"")?;
        encoder.kind_name(KindNamespace::HostRoot, 3, b"stack slot")?;
        encoder.name(Name { address: 0x99, function: b"f", file: b"a.c", line: 5 })
    };
    write().unwrap();
    encoder.finish().unwrap().1
}

#[test]
fn a_snapshot_is_dumped_item_by_item() {
    let place = Place::new();
    let path = place.file("a.heap", &small_snapshot());
    let lines = dump(&path);
    let mut expected = vec![
        "meta header-words 1",
        "segment young 0x1000 6",
        "block 0x1008 2 7 1=0x1020",
        r"block 0x1020 2 252 custom=0x40 outside=99 string=a\x20b\x0a",
        "root 0x1008 host 3 4",
        "finaliser last 0x1020 0x0",
        "ephemeron 0x1020 0=0x1008 data=0x1020",
        "thread 1 0 -",
        r"kind root 3 stack\x20slot",
        "name 0x99 f a.c:5",
    ];
    // Records of one kind are together in the file, and blocks come when a chunk is full.
    let mut lines: Vec<_> = lines.iter().map(String::as_str).collect();
    lines.sort_unstable();
    expected.sort_unstable();
    assert_eq!(lines, expected);
    heaptap("dump --json", &[&path]).says(2, &["a.heap", "--json and --merge are for traces"]);
}

#[test]
fn a_snapshot_that_is_cut_short_is_dumped_as_far_as_it_goes() {
    let place = Place::new();
    let whole = small_snapshot();
    let path = place.file("a.heap", &whole[..whole.len() - 3]);
    let dumped = heaptap("dump", &[&path]);
    assert!(dumped.text(0).contains("segment young 0x1000 6"));
    dumped.says(0, &["a.heap", "cut short after"]);
}
