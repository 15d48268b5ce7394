//! `heaptap recode`.

use std::collections::HashMap;
use std::fs;

use heaptap_trace::{
    Block, Code, Encoder, Format, Frames, LiveSink as _, Locate, LocationList, Source,
};

use crate::program::{
    Place, assert_same_dumps, assert_sound, dump, heaptap, heaptap_reading, info,
};
use crate::traces::{
    START, Sources, Writer, middle_packet, packets, real, small_block, trace_info, workload,
};

#[test]
fn real_traces_come_out_as_they_are_to_the_byte() {
    let place = Place::new();
    let output = place.path("copy.ctf");
    let (Some(v2), Some(v3)) = (real("ocamlopt.v2.ctf"), real("ocamlopt.v3.ctf")) else { return };
    let (v2_bytes, v3_bytes) = (fs::read(&v2).unwrap(), fs::read(&v3).unwrap());
    // Both hold the same events, so each can be made from the other.
    let cases = [
        ("recode", &v2, &v2_bytes),
        ("recode", &v3, &v3_bytes),
        ("recode --format 2", &v2, &v2_bytes),
        ("recode --format 2", &v3, &v2_bytes),
        ("recode --format 3", &v2, &v3_bytes),
        ("recode --format 3", &v3, &v3_bytes),
    ];
    for (call, input, expected) in cases {
        assert_eq!(heaptap(call, &[input, &output]).text(0), "");
        assert!(fs::read(&output).unwrap() == *expected, "{call} {}", input.display());
    }
}

#[test]
fn version_1_becomes_version_2_with_the_same_events() {
    for name in ["lists_and_sets.v1.ctf", "ocamlopt.v1.ctf"] {
        let Some(input) = real(name) else { return };
        let place = Place::new();
        let output = place.path("v2.ctf");
        assert_eq!(heaptap("recode", &[&input, &output]).text(0), "");
        assert_eq!(info(&output)["version"], 2);
        assert_sound(&output);
        assert_same_dumps(&input, &output);
    }
}

#[test]
fn made_traces_come_out_as_they_are_to_the_byte() {
    let place = Place::new();
    let output = place.path("copy.ctf");
    for format in [Format::V2, Format::V3] {
        let trace = workload(format, 1, 50_000, 30);
        let input = place.file("trace.ctf", &trace);
        assert_eq!(heaptap("recode", &[&input, &output]).text(0), "");
        assert!(fs::read(&output).unwrap() == trace, "{format:?} changed");
        assert_sound(&output);
    }
}

#[test]
fn a_sound_trace_is_copied_to_the_byte_however_it_was_written() {
    let place = Place::new();
    let output = place.path("copy.ctf");
    for format in [Format::V2, Format::V3] {
        // Packets as a writer makes them that flushes now and then, and a promotion that has
        // no collection.
        let mut writer = Writer::new(format);
        for _ in 0..50 {
            let id = writer.small();
            writer.promote(0, id);
            writer.encoder.flush(&mut Sources).unwrap();
        }
        let trace = writer.finish();
        let input = place.file("trace.ctf", &trace);
        assert_eq!(heaptap("recode", &[&input, &output]).text(0), "");
        assert!(fs::read(&output).unwrap() == trace, "{format:?} changed");
        // Over itself too. From a pipe it has the same events.
        assert_eq!(heaptap("recode", &[&input, &input]).text(0), "");
        assert!(fs::read(&input).unwrap() == trace, "{format:?} changed in its place");
        heaptap_reading("recode -", &[&output], &trace).text(0);
        assert_sound(&output);
        assert_same_dumps(&input, &output);
    }
}

#[test]
fn several_domains_become_one_in_the_order_of_time_with_new_ids() {
    let place = Place::new();
    let input = place.file("par.ctf", &workload(Format::V3, 5, 50_000, 31));
    let output = place.path("flat.ctf");
    assert_eq!(heaptap("recode --format 2", &[&input, &output]).text(0), "");
    assert_sound(&output);
    let merged = heaptap("dump --merge", &[&input]).text(0);
    let flat = dump(&output);
    assert_eq!(merged.lines().count(), flat.len());
    let mut ids = HashMap::new();
    for (before, after) in merged.lines().zip(&flat) {
        let before: Vec<&str> = before.split(' ').collect();
        let after: Vec<&str> = after.split(' ').collect();
        assert_eq!((before[0], "0", before[3]), (after[0], after[1], after[3]));
        if before[3] == "alloc" {
            assert_eq!(after[2].parse(), Ok(ids.len()), "ids count allocations");
            ids.insert(before[2], after[2]);
        }
        assert_eq!(ids[before[2]], after[2]);
        // All but the length of the common prefix.
        assert_eq!(
            before[4..].iter().take(4).collect::<Vec<_>>(),
            after[4..].iter().take(4).collect::<Vec<_>>()
        );
        assert_eq!(before.get(9..), after.get(9..));
    }
}

#[test]
fn lost_frames_are_written_as_such_and_stay_so() {
    let place = Place::new();
    let mut trace = workload(Format::V2, 1, 20_000, 32);
    let (at, _) = middle_packet(&trace);
    trace[at + 66..at + 70].fill(0xff);
    let input = place.file("damaged.ctf", &trace);
    let output = place.path("repaired.ctf");
    heaptap("recode", &[&input, &output]).says(
        1,
        &["damaged.ctf: byte ", "1 packet left out", "objects whose allocation is lost left out"],
    );
    assert_sound(&output);
    let before = heaptap("dump", &[&input]).text(1);
    assert!(before.contains(" <lost>"), "nothing is lost");
    let after = dump(&output);
    let before: Vec<&str> = before.lines().filter(|line| line.contains(" alloc ")).collect();
    let after: Vec<&String> = after.iter().filter(|line| line.contains(" alloc ")).collect();
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(after) {
        let lost = after.replace("<lost>@<lost>:0:0-0", "<lost>");
        let frames = |line: &str| line.split(' ').skip(9).map(String::from).collect::<Vec<_>>();
        assert_eq!(frames(before), frames(&lost));
    }
}

#[test]
fn a_repaired_trace_that_is_damaged_again_can_be_repaired_again() {
    let place = Place::new();
    let mut trace = workload(Format::V2, 1, 40_000, 37);
    let output = place.path("repaired.ctf");
    for _ in 0..3 {
        let (at, _) = middle_packet(&trace);
        trace[at + 66..at + 70].fill(0xff);
        let input = place.file("damaged.ctf", &trace);
        heaptap("recode", &[&input, &output]).says(1, &["1 packet left out"]);
        assert_sound(&output);
        trace = fs::read(&output).unwrap();
    }
    assert!(dump(&output).iter().any(|line| line.contains(" <lost>@<lost>:0:0-0")));
}

#[test]
fn a_code_that_would_stand_for_lost_frames_is_refused_not_mixed_up() {
    struct Anything;
    impl Locate for Anything {
        fn locate(&mut self, _code: Code, _list: &mut LocationList) {}
    }
    let stand_in = (1 << 62) - 1;
    let write = |codes: &dyn Fn(u64) -> Vec<Code>| {
        let mut encoder = Encoder::new(Vec::new(), Format::V2, &trace_info()).unwrap();
        for number in 0..20_000 {
            let frames = codes(number);
            let whole = Frames::Whole(&frames);
            encoder.domain(0).alloc(START + number, small_block(), whole, &mut Anything).unwrap();
        }
        encoder.finish(&mut Anything).unwrap()
    };
    let place = Place::new();
    let output = place.path("copy.ctf");
    let mut trace = write(&|number| vec![1, stand_in, 2 + number % 7]);
    let whole = place.file("whole.ctf", &trace);
    assert_eq!(heaptap("recode", &[&whole, &output]).text(0), "");
    assert!(fs::read(&output).unwrap() == trace, "a code of that number is fine by itself");
    let (at, _) = middle_packet(&trace);
    trace[at + 66..at + 70].fill(0xff);
    let damaged = place.file("damaged.ctf", &trace);
    heaptap("recode", &[&damaged, &output]).says(1, &["lost frames", "0x3fffffffffffffff"]);
    assert!(fs::read(&output).unwrap() != trace);
    // Numbered codes have room for both.
    heaptap("anonymise", &[&damaged, &output]).says(1, &["1 packet left out"]);
    assert_sound(&output);
}

#[test]
fn times_that_run_backwards_wait_and_are_counted() {
    let mut trace = workload(Format::V2, 1, 20_000, 33);
    let (at, _) = middle_packet(&trace);
    // So much earlier that the low bits, which events hold, are the same.
    for field in [at + 8, at + 16] {
        let time = u64::from_le_bytes(trace[field..field + 8].try_into().unwrap());
        trace[field..field + 8].copy_from_slice(&(time - (1 << 25)).to_le_bytes());
    }
    let place = Place::new();
    let input = place.file("jump.ctf", &trace);
    let output = place.path("copy.ctf");
    for call in ["recode", "recode --format 3", "thin --rate 0.01 --seed 1", "anonymise"] {
        heaptap(call, &[&input, &output])
            .says(1, &["time runs backwards", "events of times that ran backwards"]);
        assert_sound(&output);
        let (before, after) = (heaptap("dump", &[&input]).text(1), dump(&output));
        assert_eq!(before.lines().count(), after.len(), "{call}");
    }
}

#[test]
fn pipes_and_files_give_the_same() {
    let place = Place::new();
    let trace = workload(Format::V3, 1, 10_000, 34);
    let input = place.file("trace.ctf", &trace);
    let output = place.path("out.ctf");
    for call in ["recode", "recode --format 2", "thin --rate 0.001 --seed 5", "anonymise"] {
        assert_eq!(heaptap(call, &[&input, &output]).text(0), "");
        let piped = heaptap_reading(&format!("{call} - -"), &[], &trace);
        assert_eq!((piped.status, piped.err.as_str()), (0, ""), "{call}");
        assert!(piped.out == fs::read(&output).unwrap(), "{call}");
    }
}

#[test]
fn a_trace_can_replace_itself() {
    let place = Place::new();
    let trace = workload(Format::V2, 1, 10_000, 35);
    let path = place.file("trace.ctf", &trace);
    let before = dump(&path);
    assert_eq!(heaptap("recode --format 3", &[&path, &path]).text(0), "");
    assert_eq!(info(&path)["version"], 3);
    assert!(dump(&path) == before);
    assert_eq!(heaptap("recode --format 2", &[&path, &path]).text(0), "");
    assert!(fs::read(&path).unwrap() == trace);
    assert_eq!(place.names(), ["trace.ctf"]);
}

#[test]
fn a_cut_off_trace_becomes_a_whole_one() {
    let place = Place::new();
    let trace = workload(Format::V2, 1, 10_000, 36);
    let (last, size) = *packets(&trace).last().unwrap();
    let input = place.file("cut.ctf", &trace[..last + size / 2]);
    let output = place.path("whole.ctf");
    heaptap("recode", &[&input, &output]).says(0, &["cut.ctf", "ends inside a packet"]);
    assert_sound(&output);
    let lines: Vec<String> = heaptap("dump", &[&input]).text(0).lines().map(String::from).collect();
    assert!(dump(&output) == lines);
}

#[test]
fn ids_have_no_gap_where_packets_are_missing() {
    let place = Place::new();
    let output = place.path("whole.ctf");
    for format in [Format::V2, Format::V3] {
        let trace = workload(format, 1, 20_000, 38);
        let all = packets(&trace);
        // The first packet of events, which begins with an allocation, and a later one.
        for missing in [1..3, 4..6] {
            let gone = all[missing.start].0..all[missing.end].0;
            let input = place.file("gap.ctf", &[&trace[..gone.start], &trace[gone.end..]].concat());
            heaptap("check", &[&input]).text(1);
            for call in ["recode", "recode --format 2", "recode --format 3", "anonymise"] {
                heaptap(call, &[&input, &output]).says(1, &["gap.ctf", "allocations missing"]);
                assert_sound(&output);
            }
        }
    }
}

#[test]
fn promotions_of_external_memory_are_left_out() {
    let place = Place::new();
    let output = place.path("copy.ctf");
    for format in [Format::V2, Format::V3] {
        let mut writer = Writer::new(format);
        let block = Block { source: Source::External, ..small_block() };
        let external = writer.alloc(0, block, &[Sources::FIRST]);
        let small = writer.small();
        for id in [external, small] {
            writer.promote(0, id);
        }
        let input = place.file("external.ctf", &writer.finish());
        for call in ["recode", "recode --format 2", "recode --format 3", "anonymise"] {
            heaptap(call, &[&input, &output]).says(0, &["1 object promoted, but external memory"]);
            assert_sound(&output);
            assert_eq!(info(&output)["events"]["promotions"], 1);
        }
    }
}
