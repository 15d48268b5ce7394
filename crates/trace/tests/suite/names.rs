//! Locations: their names, their tables of recent names, and their packets.

use std::collections::HashMap;

use heaptap_trace::{Code, Format};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::corners::{alloc, distinct};
use crate::debug_info::{DebugInfo, OwnedLocation};
use crate::forge::{self, Forged, packet};
use crate::generate::{cases, locations, plain_info};
use crate::oracle::PlainTrace;
use crate::reading::{read_leniently, read_locations};
use crate::round_trip::check;
use crate::script::Script;

fn location(file: &[u8], definition: &[u8]) -> OwnedLocation {
    OwnedLocation {
        file: file.to_vec(),
        line: 7,
        start_char: 1,
        end_char: 2,
        definition: definition.to_vec(),
    }
}

/// Each code is called once, from `main` or from the one before it.
fn calling_each(lists: Vec<Vec<OwnedLocation>>, deep: bool) -> Script {
    let codes = 1..=lists.len() as Code;
    let steps = codes.clone().map(|code| alloc(0, if deep { 3 } else { 0 }, vec![(code, 1)]));
    let debug_info = DebugInfo { locations: codes.clone().zip(lists).collect(), files: 0 };
    Script { format: Format::V2, info: plain_info(), steps: steps.collect(), debug_info }
}

fn location_packets(trace: &PlainTrace) -> Vec<usize> {
    trace.packets.iter().filter(|p| p.has_locations).map(|p| p.range.len()).collect()
}

#[test]
fn more_than_31_files_push_each_other_out_and_come_back() {
    let mut lists = Vec::new();
    for round in 0..3_usize {
        // Forwards, backwards, and in an order that leaves some in the table.
        for at in 0..45 {
            let number = [at, 44 - at, at * 7 % 45][round];
            lists.push(vec![location(format!("file{number}.ml").as_bytes(), b"f")]);
        }
    }
    check(&calling_each(lists, false));
}

#[test]
fn more_than_31_definitions_push_each_other_out_within_their_file() {
    let mut lists = Vec::new();
    for round in 0..3_usize {
        for at in 0..90 {
            let number = [at, 89 - at, at * 7 % 90][round];
            let (file, definition) = (format!("{}.ml", number % 2), format!("f{number}"));
            lists.push(vec![location(file.as_bytes(), definition.as_bytes())]);
        }
    }
    check(&calling_each(lists, true));
}

#[test]
fn a_file_that_comes_back_has_no_definitions_left() {
    let definition = |number: usize| format!("f{number}").into_bytes();
    let mut lists: Vec<Vec<OwnedLocation>> =
        (0..5).map(|d| vec![location(b"a.ml", &definition(d))]).collect();
    lists.extend((0..31).map(|f| vec![location(format!("{f}").as_bytes(), b"g")]));
    lists.extend((0..5).map(|d| vec![location(b"a.ml", &definition(4 - d))]));
    check(&calling_each(lists, false));
}

#[test]
fn odd_names() {
    let names: [&[u8]; 8] =
        [b"", b"\xff\xfe", b"\0", b"a\0b", b"a", b"\x80\0\0", b"line\nbreak", "λ→".as_bytes()];
    let mut lists = Vec::new();
    for file in names {
        for definition in names {
            lists.push(vec![location(file, definition), location(definition, file)]);
        }
    }
    lists.push(Vec::new());
    let trace = check(&calling_each(lists, false));
    assert_eq!(trace.locations[&1], [location(b"", b""), location(b"", b"")]);
    let cut = trace.locations.values().flatten().filter(|location| location.file == b"a");
    assert!(cut.count() > 16, "a NUL ends a name");
    assert_eq!(trace.locations[&65], [], "a code may have no location");
}

#[test]
fn numbers_too_large_for_their_field_become_the_largest() {
    let lists = [0, 0xff, 0x100, 0x3ff, 0x400, 0xf_ffff, 0x10_0000, u32::MAX].map(|number| {
        vec![OwnedLocation {
            line: number,
            start_char: number,
            end_char: number,
            ..location(b"a", b"b")
        }]
    });
    let trace = check(&calling_each(lists.to_vec(), false));
    let last = &trace.locations[&8][0];
    assert_eq!((last.line, last.start_char, last.end_char), (0xf_ffff, 0xff, 0x3ff));
}

#[test]
fn too_many_or_too_long_locations_become_unknown() {
    let inlined = |count| vec![location(b"a", b"b"); count];
    // 8 + 1 bytes, 6 for the numbers and 2 NULs leave 4,079 for names.
    let long = |len| vec![location(&vec![b'x'; len], b"b")];
    let lists =
        vec![inlined(255), inlined(256), inlined(300), long(4078), long(4079), long(100_000)];
    let trace = check(&calling_each(lists, false));
    let unknown = |code| trace.locations[&code][0].file == b"<unknown>";
    assert_eq!(trace.locations[&1].len(), 255);
    assert_eq!([1, 2, 3, 4, 5, 6].map(unknown), [false, true, true, false, true, true]);
}

/// The most that a location event takes is 4 + 4,096 bytes, and a packet of
/// locations is full when no more than 4,096 are left.
#[test]
fn the_longest_location_comes_when_a_packet_is_all_but_full() {
    let header = 66;
    for room in 4090..4110 {
        // Events of 4 + 8 + 1 + 6 bytes and two names of their own.
        let mut left: usize = 32_768 - header - room;
        let mut lists = Vec::new();
        while left > 0 {
            let size = if left > 5000 { 4000 } else { left.min(2500) };
            let size = if left - size > 0 && left - size < 50 { size - 50 } else { size };
            let name = vec![b'a' + lists.len() as u8; size - 19 - 3];
            lists.push(vec![location(&name, b"d")]);
            left -= size;
        }
        for longest in 4070..=4078 {
            let mut lists = lists.clone();
            lists.push(vec![location(&vec![b'z'; longest], b"d")]);
            lists.push(vec![location(b"after", b"d")]);
            // All in one backtrace, so that all go into the same packets.
            let calls = distinct(1..lists.len() as Code + 1);
            let locations: HashMap<_, _> = (1..).zip(lists).collect();
            let debug_info = DebugInfo { locations, files: 0 };
            let steps = vec![alloc(0, 0, calls)];
            let script = Script { format: Format::V2, info: plain_info(), steps, debug_info };
            let sizes = location_packets(&check(&script));
            assert!(sizes[0] > 32_768 - 4110, "the first packet is all but full");
        }
    }
}

#[test]
fn locations_of_one_event_packet_may_take_several_packets() {
    let lists =
        (0..128).map(|at| vec![location(&[b'a' + at % 20; 1500], &[at + 1; 300])]).collect();
    let sizes = location_packets(&check(&calling_each(lists, false)));
    assert!(sizes.len() > 2, "{sizes:?}");
}

/// A location event of one location with new names.
fn explain(packet: Forged, code: Code, file: &[u8], definition: &[u8]) -> Forged {
    packet.event(1).u64(code).u8(1).u32(7).u16(0xffc0).string(file).string(definition)
}

#[test]
fn a_damaged_packet_explains_nothing() {
    let first = explain(packet(2), 7, b"a.ml", b"f");
    // The one event that is wrong comes last.
    let damaged = explain(explain(packet(2), 7, b"b.ml", b"g"), 8, b"b.ml", b"g").event(99);
    let using = packet(2).ids(0, 1).short(0, 2).miss(1, 7).miss(2, 8);
    let bytes = forge::trace(&[forge::info(2), first, damaged, using]);
    let locations = read_locations(&bytes);
    assert_eq!(locations.len(), 1, "code 8 is not explained");
    assert_eq!(locations[&7][0].file, b"a.ml");
    assert_eq!(locations[&7][0].definition, b"f");
}

/// A name that was lost does not replace one that is known.
#[test]
fn what_was_known_before_a_loss_stays_known() {
    let first = explain(packet(2), 7, b"a.ml", b"f");
    // As 7 is evicted and comes again, its names are recent ones: codes 0.
    let again = packet(2).event(1).u64(7).u8(1).u32(7).u16(0);
    let using = packet(2).ids(0, 1).short(0, 1).miss(1, 7);
    let damaged = packet(2).event(1).u64(9).u8(0).event(99);
    let packets = [forge::info(2), first, damaged, again, using];
    let reading = read_leniently(&forge::trace(&packets));
    assert_eq!(reading.losses.defect_count, 1, "{:?}", reading.losses.defects);
    let locations = read_locations(&forge::trace(&packets));
    assert_eq!(locations[&7][0].file, b"a.ml");
    assert_eq!(locations[&7][0].definition, b"f");
}

/// A name that was lost is known as soon as it comes again in full.
#[test]
fn a_lost_name_is_found_again() {
    let damaged = packet(2).event(1).u64(9).u8(0).event(99);
    let lost = packet(2).event(1).u64(7).u8(1).u32(7).u16(0);
    let again = explain(packet(2), 7, b"a.ml", b"f");
    let using = packet(2).ids(0, 1).short(0, 1).miss(1, 7);
    let packets = [forge::info(2), damaged.clone(), lost.clone(), using.clone()];
    assert_eq!(read_locations(&forge::trace(&packets))[&7][0].file, b"<lost>");
    let packets = [forge::info(2), damaged, lost, again, using];
    let reading = read_leniently(&forge::trace(&packets));
    assert_eq!(reading.losses.defect_count, 1, "{:?}", reading.losses.defects);
    assert_eq!(read_locations(&forge::trace(&packets))[&7][0].file, b"a.ml");
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn arbitrary_locations(lists in vec(vec(locations(), 0..6), 1..160), deep: bool) {
        check(&calling_each(lists, deep));
    }
}
