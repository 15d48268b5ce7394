//! `heaptap check`.

use heaptap_trace::{Block, Completion, Format, Source, TraceInfo};

use crate::program::{Place, assert_sound, heaptap};
use crate::traces::{
    Sources, Writer, middle_packet, packets, real, small_block, trace_info, workload,
};

#[test]
fn sound_traces_are_sound_strictly_too() {
    let place = Place::new();
    let mut paths = vec![
        place.file("one.ctf", &workload(Format::V2, 1, 30_000, 10)),
        place.file("five.ctf", &workload(Format::V3, 5, 60_000, 11)),
    ];
    for name in ["lists_and_sets.v1.ctf", "ocamlopt.v1.ctf", "ocamlopt.v2.ctf", "ocamlopt.v3.ctf"] {
        paths.extend(real(name));
    }
    for path in paths {
        for call in ["check", "check --strict"] {
            let run = heaptap(call, &[&path]);
            assert_eq!(run.err, "");
            let text = run.text(0);
            assert!(text.contains(": sound\n  read: "), "{text}");
        }
    }
}

#[test]
fn a_cut_off_tail_is_a_notice_and_strictly_a_defect() {
    let place = Place::new();
    let trace = workload(Format::V2, 1, 5000, 12);
    let (last, size) = *packets(&trace).last().unwrap();
    for kept in [last + 20, last + size / 2, last + size - 1] {
        let path = place.file("cut.ctf", &trace[..kept]);
        let text = heaptap("check", &[&path]).text(0);
        assert!(text.contains("sound, but cut off"), "{text}");
        assert!(text.contains(&format!("byte {last}, packet ")), "{text}");
        assert!(text.contains("its program was killed or still runs"), "{text}");
        heaptap("check --strict", &[&path])
            .says(1, &["cut.ctf", &format!("byte {last}, "), "the file ends inside a packet"]);
        heaptap("info", &[&path]).says(0, &["cut.ctf", "the file ends inside a packet"]);
    }
}

#[test]
fn a_damaged_packet_is_named_and_its_cost_told() {
    let place = Place::new();
    let mut trace = workload(Format::V2, 1, 20_000, 13);
    let (at, size) = middle_packet(&trace);
    let packet = packets(&trace).iter().position(|&(offset, _)| offset == at).unwrap();
    // An impossible event where the packet's first one is.
    trace[at + 66..at + 70].fill(0xff);
    let path = place.file("damaged.ctf", &trace);
    let place_in_file = format!("byte {}, packet {packet}: ", at + 66);
    let text = heaptap("check", &[&path]).text(1);
    assert!(text.contains("damaged.ctf: defective\n"), "{text}");
    assert!(text.contains(&place_in_file), "{place_in_file} is not in {text}");
    assert!(text.contains("1 packet left out"), "{text}");
    assert!(text.contains(&format!("{size} bytes passed over")), "{text}");
    assert!(text.contains("allocations missing"), "{text}");
    assert!(text.contains("backtraces with lost frames"), "{text}");
    // What became of the lost objects is no defect of its own.
    assert!(!text.contains("never allocated"), "{text}");
    heaptap("check --strict", &[&path]).says(1, &["damaged.ctf", &place_in_file]);
}

#[test]
fn packets_of_other_processes_are_told_and_strictly_a_defect() {
    let trace = workload(Format::V2, 1, 3000, 14);
    let mut child = Writer::of(Format::V2, &TraceInfo { pid: 99, ..trace_info() });
    child.small();
    let foreign = child.finish();
    let (second, _) = packets(&foreign)[1];
    let (at, _) = packets(&trace)[1];
    let mixed = [&trace[..at], &foreign[second..], &trace[at..]].concat();
    let place = Place::new();
    let path = place.file("forked.ctf", &mixed);
    let text = heaptap("check", &[&path]).text(0);
    assert!(text.contains(": sound\n"), "{text}");
    assert!(text.contains("2 packets of other processes"), "{text}");
    let text = heaptap("check --strict", &[&path]).text(1);
    assert!(text.contains("defective"), "{text}");
    heaptap("dump", &[&path]).says(0, &["forked.ctf: 2 packets of other processes"]);
}

/// A trace of ten objects, and then what a story makes of them.
fn story(format: Format, tell: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new(format);
    for _ in 0..10 {
        writer.small();
    }
    tell(&mut writer);
    writer.finish()
}

#[test]
fn impossible_lives_are_defects_with_their_first_object_and_count() {
    let twice_promoted = story(Format::V2, |writer| {
        for id in [3, 3, 4, 4] {
            writer.promote(0, id);
        }
    });
    let twice_collected = story(Format::V2, |writer| {
        for id in [7, 7] {
            writer.collect(0, id);
        }
    });
    let late = story(Format::V2, |writer| {
        writer.collect(0, 5);
        writer.promote(0, 5);
    });
    let nowhere = story(Format::V3, |writer| {
        writer.collect(0, 123_456);
        writer.collect(0, 123_400);
    });
    let cases = [
        (twice_promoted, "2 objects promoted twice, the first is 3", "object 3 promoted twice"),
        (twice_collected, "1 object collected twice, the first is 7", "object 7 collected twice"),
        (
            late,
            "1 object promoted after collection, the first is 5",
            "object 5 promoted after collection",
        ),
    ];
    let place = Place::new();
    for (trace, told, strictly) in cases {
        let path = place.file("story.ctf", &trace);
        let text = heaptap("check", &[&path]).text(1);
        assert!(text.contains("defective"), "{text}");
        assert!(text.contains(told), "{text}");
        heaptap("check --strict", &[&path]).says(1, &["story.ctf", strictly]);
    }
    let path = place.file("story.ctf", &nowhere);
    for call in ["check", "check --strict"] {
        let text = heaptap(call, &[&path]).text(1);
        let told = "2 objects promoted or collected, but never allocated, the first is 123400";
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn a_promotion_of_external_memory_is_a_defect_with_strict() {
    let trace = story(Format::V2, |writer| {
        let block = Block { source: Source::External, ..small_block() };
        let id = writer.alloc(0, block, &[Sources::FIRST]);
        writer.promote(0, 1);
        writer.promote(0, id);
    });
    let place = Place::new();
    let path = place.file("external.ctf", &trace);
    let text = heaptap("check", &[&path]).text(0);
    assert!(text.contains("1 object promoted, but external memory"), "{text}");
    assert!(text.contains("the first is 10"), "{text}");
    let message = "object 10 promoted, but external memory, which other readers refuse";
    heaptap("check --strict", &[&path]).says(1, &["external.ctf", message]);
}

/// Every verb says that a trace is cut short and until when it covers the program, and no
/// total is 0 because nothing of it could be written.
#[test]
fn a_trace_that_is_cut_short_is_not_taken_for_a_whole_one() {
    let cut = |mut trace: Vec<u8>, completion: Completion| {
        let at = Completion::OFFSET as usize;
        trace[at..at + 4].copy_from_slice(&completion.bytes());
        trace
    };
    let place = Place::new();
    let trace = workload(Format::V2, 1, 3_000, 12);
    let failed = place.file("failed.ctf", &cut(trace.clone(), Completion::WriteFailed));
    let killed = place.file("killed.ctf", &cut(trace, Completion::Unfinished));
    let why = "could not be written any further";
    assert!(heaptap("check", &[&failed]).text(0).contains(why));
    assert!(heaptap("check --strict", &[&failed]).text(1).contains("until "));
    assert!(heaptap("check --strict", &[&killed]).text(0).contains("was killed or still runs"));
    for verb in ["report", "hot", "leaks", "info", "dump"] {
        heaptap(verb, &[&failed]).says(0, &["failed.ctf", "cut short", why, "until "]);
    }
    let mut nothing = workload(Format::V2, 1, 10, 12);
    let (second, _) = packets(&nothing)[1];
    nothing.truncate(second);
    let nothing = place.file("nothing.ctf", &cut(nothing, Completion::WriteFailed));
    let text = heaptap("report", &[&nothing]).text(0);
    assert!(text.contains("not known") && !text.contains("0 bytes"), "{text}");
    let text = heaptap("info", &[&nothing]).text(0);
    assert!(text.contains("not known") && !text.contains("about 0 words"), "{text}");
    assert!(heaptap("info --json", &[&nothing]).text(0).contains(r#""words":null"#));
}

/// A copy of a trace that was cut short is cut short too, also where it is a pipe.
#[test]
fn a_copy_of_a_trace_that_is_cut_short_says_so() {
    let place = Place::new();
    let copy = place.path("copy.ctf");
    let marks = [
        (Completion::WriteFailed, "could not be written any further"),
        (Completion::Unfinished, "was killed or still runs"),
    ];
    for format in [Format::V2, Format::V3] {
        for (completion, why) in marks {
            let mut trace = workload(format, 1, 3_000, 12);
            let at = Completion::OFFSET as usize;
            trace[at..at + 4].copy_from_slice(&completion.bytes());
            let path = place.file("cut.ctf", &trace);
            for call in ["recode", "recode --format 2", "anonymise", "thin --rate 0.0001 --seed 1"]
            {
                heaptap(call, &[&path, &copy]).says(0, &[why]);
                let text = heaptap("check", &[&copy]).text(0);
                assert!(text.contains(why), "{call}: {text}");
                let copied = std::fs::read(&copy).expect("a copy");
                assert_eq!(copied[at..at + 4], completion.bytes(), "{call}");
                let piped = heaptap(call, &[&path, "-".as_ref()]).out;
                assert!(piped == copied, "{call}: the copy on standard output differs");
            }
        }
    }
}

#[test]
fn a_domain_may_collect_what_another_allocates_later_in_the_file() {
    let mut writer = Writer::new(Format::V3);
    let frames = [Sources::FIRST];
    let adopted = writer.alloc(1, small_block(), &frames);
    // Domain 0 fills packets while that of domain 1 is still open.
    for _ in 0..20_000 {
        writer.alloc(0, small_block(), &frames);
    }
    writer.collect(0, adopted);
    let place = Place::new();
    let path = place.file("adopted.ctf", &writer.finish());
    let text = heaptap("check --strict", &[&path]).text(0);
    assert!(text.contains(": sound"), "{text}");
}

#[test]
fn every_verb_reports_impossible_lives_and_ends_with_1() {
    let twice = story(Format::V2, |writer| {
        for id in [7, 8, 7, 8] {
            writer.collect(0, id);
        }
    });
    let late = story(Format::V3, |writer| {
        writer.collect(0, 5);
        writer.promote(0, 5);
    });
    let nowhere = story(Format::V3, |writer| writer.collect(0, 123_456));
    let cases = [
        (twice, "story.ctf: 2 objects collected twice, the first is 7 after 13 µs"),
        (late, "story.ctf: 1 object promoted after collection, the first is 5 after 12 µs"),
        (nowhere, "1 object promoted or collected, but never allocated, the first is 123456"),
    ];
    let place = Place::new();
    let copy = place.path("copy.ctf");
    for (trace, told) in cases {
        let path = place.file("story.ctf", &trace);
        for call in ["report", "leaks", "hot", "export --to folded", "info"] {
            heaptap(call, &[&path]).says(1, &[told, "`heaptap recode` leaves these events out"]);
        }
        heaptap("dump", &[&path]).says(1, &[told, "printed as they are"]);
        heaptap("diff", &[&path, &path]).says(1, &[told]);
        for call in
            ["recode", "recode --format 2", "recode --format 3", "anonymise", "thin --rate 0.01"]
        {
            heaptap(call, &[&path, &copy]).says(1, &[told, "left out of the copy"]);
            assert_sound(&copy);
        }
        // What is left has the same figures.
        let figures = |path| {
            let run = heaptap("report --json", &[path]);
            let mut report: serde_json::Value = serde_json::from_slice(&run.out).unwrap();
            (report["table"].take(), report["peak"].take())
        };
        heaptap("recode", &[&path, &copy]);
        assert_eq!(figures(&path), figures(&copy));
    }
}

#[test]
fn sound_traces_are_reported_in_silence() {
    let place = Place::new();
    let path = place.file("sound.ctf", &workload(Format::V3, 3, 30_000, 15));
    for call in ["report", "leaks", "info"] {
        let run = heaptap(call, &[&path]);
        assert_eq!((run.status, run.err.as_str()), (0, ""), "{call}");
    }
}
