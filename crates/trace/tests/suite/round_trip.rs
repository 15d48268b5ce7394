//! Whatever a program does, its trace records it.

use heaptap_trace::{Code, Mode};
use proptest::prelude::*;

use crate::generate::{cases, scripts};
use crate::oracle::{self, PlainTrace, PlainWriter};
use crate::reading::{
    Reading, RecordedEvent, RecordedKind, read_locations, read_strictly, read_through_pipe,
};
use crate::script::{Script, Style};

/// Reads of a pipe: single bytes, a header's worth, a signal, whole packets.
const PIPE: &[usize] = &[1, 2, 3, 66, 0, 1000, 32_768, 7, 100_000];

/// Writes the script's trace and holds the encoder and the decoder against the
/// oracle and against the script itself.
pub(crate) fn check(script: &Script) -> PlainTrace {
    let whole = script.perform(Style::Whole);
    let suffix = script.perform(Style::Suffix);
    assert!(whole.bytes == suffix.bytes, "whole stacks and suffixes give the same bytes");
    assert!(whole.recorded == suffix.recorded, "and the same ids");

    let mut plain = PlainWriter::new(script.format, &script.info, &script.debug_info);
    assert!(script.perform_with(&mut plain) == whole.recorded, "the oracle gives the same ids");
    assert_same_bytes(&whole.bytes, &plain.finish());

    let reading = read_strictly(&whole.bytes);
    let piped = read_through_pipe(&whole.bytes, Mode::Strict, PIPE).unwrap();
    assert!(piped.error.is_none(), "{:?}", piped.error);
    assert!(piped.recorded == reading.recorded, "a pipe gives the same events");
    assert_eq!(piped.totals, reading.totals);
    assert!(reading.losses.is_clean());

    let trace = oracle::read(&whole.bytes);
    assert!(trace.recorded().eq(&reading.recorded), "the oracle reads the same events");
    assert_recorded(script, &whole.recorded, &reading, &trace);
    assert_places(script, &whole.bytes);
    assert_tally(&whole.bytes, &reading, &trace);
    trace
}

fn assert_same_bytes(ours: &[u8], plain: &[u8]) {
    let differs = ours.iter().zip(plain).position(|(a, b)| a != b);
    assert_eq!(differs, None, "the first byte that the oracle writes differently");
    assert_eq!(ours.len(), plain.len(), "the oracle's trace is of the same size");
}

/// Every domain's events are those of the script, in its order. A backtrace
/// may lack frames at its end, but only where the format makes the writer cut.
fn assert_recorded(
    script: &Script,
    recorded: &[RecordedEvent],
    reading: &Reading,
    trace: &PlainTrace,
) {
    assert_eq!(reading.recorded.len(), recorded.len());
    for step in trace.events().filter_map(|event| Some((event, event.recorded.as_ref()?))) {
        let (event, read) = step;
        assert!(event.entries.len() <= 4096, "the entries of {read:?}");
    }
    let mut domains: Vec<u16> = recorded.iter().map(|recorded| recorded.domain).collect();
    domains.sort_unstable();
    domains.dedup();
    for domain in domains {
        let want = recorded.iter().filter(|recorded| recorded.domain == domain);
        let entries = trace.packets.iter().filter(|packet| packet.domain == domain);
        let entries = entries.flat_map(|packet| &packet.events).filter(|e| e.recorded.is_some());
        let mut last: &[Code] = &[];
        let mut last_cut = false;
        for ((want, got), event) in want.zip(reading.of_domain(domain)).zip(entries) {
            assert_eq!(*got, want.clone().with_frames(got.frames()), "in {:?}", script.format);
            if want.frames() == got.frames() {
                last_cut = false;
            } else {
                let full = event.entries.len() > 4096 - 10;
                let shares_cut = last_cut && want.frames().starts_with(last);
                assert!(want.frames().starts_with(got.frames()), "right as far as it goes");
                assert!(full || shares_cut, "cut for want of room only");
                last_cut = true;
            }
            if !got.frames().is_empty() {
                last = got.frames();
            }
        }
    }
}

fn assert_places(script: &Script, bytes: &[u8]) {
    for (code, locations) in read_locations(bytes) {
        assert_eq!(locations, script.debug_info.recorded(code), "locations of {code:#x}");
    }
}

/// Every byte is accounted for once, and by the kind of event that it is part of.
fn assert_tally(bytes: &[u8], reading: &Reading, trace: &PlainTrace) {
    let totals = &reading.totals;
    let sum = totals.header_bytes
        + totals.info_bytes
        + totals.location_bytes
        + totals.allocation_bytes
        + totals.backtrace_bytes
        + totals.promotion_bytes
        + totals.collection_bytes;
    assert_eq!(sum, bytes.len() as u64);
    assert_eq!(totals.events(), reading.recorded.len() as u64);
    let [mut promotions, mut collections] = [0; 2];
    for packet in &trace.packets {
        let begins = packet.events.iter().map(|event| event.at);
        let ends = begins.skip(1).chain([packet.range.end]);
        for (event, end) in packet.events.iter().zip(ends) {
            match event.recorded.as_ref().map(|recorded| &recorded.kind) {
                Some(RecordedKind::Promote(_)) => promotions += end - event.at,
                Some(RecordedKind::Collect(_)) => collections += end - event.at,
                _ => {}
            }
        }
    }
    assert_eq!(totals.promotion_bytes, promotions as u64);
    assert_eq!(totals.collection_bytes, collections as u64);
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn arbitrary_programs(script in scripts(60)) {
        check(&script);
    }
}

proptest! {
    #![proptest_config(cases(4))]

    #[test]
    fn long_arbitrary_programs(script in scripts(1500)) {
        check(&script);
    }

    #[test]
    fn a_pipe_may_give_any_number_of_bytes(
        script in scripts(60),
        mut sizes in proptest::collection::vec(0..70_usize, 1..20),
    ) {
        sizes.push(1);
        let bytes = script.perform(Style::Whole).bytes;
        let piped = read_through_pipe(&bytes, Mode::Strict, &sizes).unwrap();
        prop_assert_eq!(piped.recorded, read_strictly(&bytes).recorded);
    }
}
