//! Damage that a reader is certain to notice. It hands out every event of every
//! other packet, right in all its numbers; a frame is right or said to be lost.

use std::ops::Range;

use heaptap_trace::{Defect, Format, LOST_FRAME, Mode};

use crate::debug_info::OwnedLocation;
use crate::forge::{Forged, info, packet, trace};
use crate::oracle::PlainPacket;
use crate::reading::{Reading, RecordedEvent, read_leniently, read_locations, read_through_pipe};
use crate::traces::{Dice, Sound, generated, program, real};

/// The events of all packets but one.
fn recorded_without(sound: &Sound, lost: usize) -> Vec<&RecordedEvent> {
    let packets = sound.trace.packets.iter().enumerate();
    packets
        .filter(|(number, _)| *number != lost)
        .flat_map(|(_, packet)| packet.recorded())
        .collect()
}

/// Compares the events with the expected ones: frames may be lost.
#[track_caller]
pub(crate) fn assert_right_or_lost(want: &[&RecordedEvent], got: &[RecordedEvent], context: &str) {
    assert_eq!(got.len(), want.len(), "{context}: number of events");
    for (got, want) in got.iter().zip(want) {
        assert_eq!(got.clone().with_frames(want.frames()), **want, "{context}");
        assert_eq!(got.frames().len(), want.frames().len(), "{context}: depth of {want:?}");
        let right = |(got, want): (&u64, &u64)| got == want || *got == LOST_FRAME;
        let frames = got.frames().iter().zip(want.frames());
        assert!(frames.clone().all(right), "{context}: {got:?} is not {want:?}");
    }
}

/// Names, too, are right or lost.
fn assert_locations_right_or_lost(sound: &Sound, damaged: &[u8], context: &str) {
    for (code, locations) in read_locations(damaged) {
        let want = &sound.trace.locations[&code];
        assert_eq!(locations.len(), want.len(), "{context}: locations of {code:#x}");
        for (got, want) in locations.iter().zip(want) {
            let numbers =
                |location: &OwnedLocation| (location.line, location.start_char, location.end_char);
            assert_eq!(numbers(got), numbers(want), "{context}: {code:#x}");
            for (got, want) in [(&got.file, &want.file), (&got.definition, &want.definition)] {
                assert!(got == want || got == b"<lost>", "{context}: {code:#x}: {got:?}, {want:?}");
            }
        }
    }
}

/// Reads a trace with one packet damaged beyond doubt.
#[track_caller]
fn assert_lost(sound: &Sound, lost: usize, damaged: &[u8], context: &str) -> Reading {
    let context = format!("{}, packet {lost}, {context}", sound.name);
    let reading = read_leniently(damaged);
    assert_right_or_lost(&recorded_without(sound, lost), &reading.recorded, &context);
    assert!(reading.losses.defect_count > 0, "{context}: it is noticed");
    let partial =
        reading.recorded.iter().filter(|recorded| recorded.frames().contains(&LOST_FRAME));
    assert_eq!(reading.losses.partial_backtraces, partial.count() as u64, "{context}");
    let pipe = read_through_pipe(damaged, Mode::Lenient, &[999, 70_000]).unwrap();
    assert_eq!(pipe.recorded, reading.recorded, "{context}: a pipe gives the same");
    assert_eq!(pipe.losses.defects, reading.losses.defects, "{context}: and the same defects");
    reading
}

/// Whether a later packet of the domain shows how many allocations were lost.
pub(crate) fn shown_later(sound: &Sound, lost: usize) -> bool {
    let domain = sound.trace.packets[lost].domain;
    sound.trace.packets[lost + 1..].iter().any(|packet| packet.domain == domain)
}

/// The bytes with one packet replaced.
fn with_packet(sound: &Sound, number: usize, packet: &[u8]) -> Vec<u8> {
    let Range { start, end } = sound.trace.packets[number].range;
    [&sound.bytes[..start], packet, &sound.bytes[end..]].concat()
}

fn packet_bytes(sound: &Sound, number: usize) -> Vec<u8> {
    sound.bytes[sound.trace.packets[number].range.clone()].to_vec()
}

/// All traces, with some of their packets: every event packet of the small
/// ones, and as many of the others as there is time for.
fn victims(dice: &mut Dice, each: usize) -> Vec<(Sound, Vec<usize>)> {
    let sounds = generated().into_iter().chain(real(100_000));
    let choose = |sound: Sound| {
        let count = sound.trace.packets.len() as u64 - 1;
        let numbers = (0..each).map(|_| 1 + dice.below(count) as usize).collect();
        (sound, numbers)
    };
    sounds.map(choose).collect()
}

#[test]
fn an_event_of_an_unknown_kind() {
    let mut dice = Dice::seeded(5);
    for (sound, numbers) in victims(&mut dice, 5) {
        for number in numbers {
            let packet = &sound.trace.packets[number];
            if packet.events.is_empty() {
                continue;
            }
            let event = &packet.events[dice.below(packet.events.len() as u64) as usize];
            let mut bytes = sound.bytes.clone();
            // The kind is in the upper 7 bits.
            bytes[event.at + 3] = bytes[event.at + 3] & 1 | 99 << 1;
            let reading = assert_lost(&sound, number, &bytes, "kind 99");
            let [first, ..] = &reading.losses.defects[..] else { panic!("no defect") };
            assert_eq!(first.defect, Defect::EventCode { code: 99 });
            assert_eq!((first.packet, first.offset), (number as u64, event.at as u64));
            assert_eq!(reading.losses.packets, 1);
            assert_eq!(reading.losses.allocations, packet.allocations());
            assert_locations_right_or_lost(&sound, &bytes, "kind 99");
        }
    }
}

/// Headers that are none, or of a packet that cannot be.
#[test]
fn a_header_beyond_belief() {
    let mut dice = Dice::seeded(6);
    for (sound, numbers) in victims(&mut dice, 2) {
        for number in numbers {
            let size = sound.trace.packets[number].range.len() as u32;
            let ids_at = sound.trace.packets[number].header_len - 16;
            let fields: [(&str, usize, Vec<u8>); 8] = [
                ("magic", 0, vec![0]),
                ("magic", 3, vec![0x41]),
                ("no size", 4, 0_u32.to_le_bytes().to_vec()),
                ("a byte too few", 4, (8 * (size - 1)).to_le_bytes().to_vec()),
                ("a byte too many", 4, (8 * (size + 1)).to_le_bytes().to_vec()),
                ("a packet too many", 4, (8 * 32_768_u32).to_le_bytes().to_vec()),
                ("version", 28, vec![9]),
                ("ids", ids_at, vec![255; 8]),
            ];
            for (context, at, field) in fields {
                let mut packet = packet_bytes(&sound, number);
                let same = packet[at..].starts_with(&field);
                packet[at..at + field.len()].copy_from_slice(&field);
                let last = number + 1 == sound.trace.packets.len();
                // An empty packet has no byte to spare, and the last packet's
                // size may only say that the file is cut.
                let empty = sound.trace.packets[number].events.is_empty();
                if same || empty && context.starts_with("a ") || last && context.ends_with("many") {
                    continue;
                }
                let damaged = with_packet(&sound, number, &packet);
                let reading = assert_lost(&sound, number, &damaged, context);
                if shown_later(&sound, number) {
                    let lost = sound.trace.packets[number].allocations();
                    assert_eq!(reading.losses.allocations, lost, "{}: {context}", sound.name);
                }
            }
        }
    }
}

#[test]
fn bytes_that_are_missing_overwritten_or_in_between() {
    let mut dice = Dice::seeded(7);
    for (sound, numbers) in victims(&mut dice, 2) {
        for number in numbers {
            let packet = packet_bytes(&sound, number);
            let zeros = with_packet(&sound, number, &vec![0; packet.len()]);
            assert_lost(&sound, number, &zeros, "zeros");
            let noise: Vec<u8> = packet.iter().map(|_| dice.below(256) as u8).collect();
            let noise = with_packet(&sound, number, &noise);
            assert_lost(&sound, number, &noise, "noise");
            let half = with_packet(&sound, number, &packet[..packet.len() / 2]);
            if number + 1 < sound.trace.packets.len()
                && !sound.trace.packets[number].events.is_empty()
            {
                assert_lost(&sound, number, &half, "half");
            }
        }
    }
}

/// Garbage between packets is passed over. What it may have been is not known,
/// so frames are lost, but no event.
#[test]
fn garbage_between_packets() {
    let mut dice = Dice::seeded(8);
    for (sound, numbers) in victims(&mut dice, 4) {
        for number in numbers {
            let start = sound.trace.packets[number].range.start;
            let garbage: Vec<u8> =
                (0..1 + dice.below(70_000)).map(|_| dice.below(256) as u8).collect();
            let damaged = [&sound.bytes[..start], &garbage, &sound.bytes[start..]].concat();
            let context = format!("{}: {} bytes before {number}", sound.name, garbage.len());
            let reading = read_leniently(&damaged);
            let all: Vec<&RecordedEvent> = sound.trace.recorded().collect();
            assert_right_or_lost(&all, &reading.recorded, &context);
            assert_eq!(reading.losses.bytes, garbage.len() as u64, "{context}");
            assert_eq!(reading.losses.allocations, 0, "{context}");
            let [first] = &reading.losses.defects[..] else { panic!("{:?}", reading.losses) };
            let defect = first.defect.downcast_ref();
            assert!(matches!(defect, Some(Defect::Magic { .. })), "{context}: {first}");
            assert_eq!((first.packet, first.offset), (number as u64, start as u64), "{context}");
            let pipe = read_through_pipe(&damaged, Mode::Lenient, &[500]).unwrap();
            assert_eq!(pipe.recorded, reading.recorded, "{context}");
            assert_eq!(pipe.losses.defects, reading.losses.defects, "{context}");
            assert_locations_right_or_lost(&sound, &damaged, &context);
        }
    }
}

/// The search goes through a pipe's bytes piece by piece; a header may lie
/// across two pieces.
#[test]
fn garbage_of_any_length() {
    let sound = Sound::of("short", &program(Format::V2, 60, 20));
    let start = sound.trace.packets[3].range.start;
    let all: Vec<&RecordedEvent> = sound.trace.recorded().collect();
    for len in (32_768 - 100..32_768 + 20).chain(2 * 32_768 - 200..2 * 32_768) {
        let damaged = [&sound.bytes[..start], &vec![0; len], &sound.bytes[start..]].concat();
        let piped = read_through_pipe(&damaged, Mode::Lenient, &[16]).unwrap();
        assert_right_or_lost(&all, &piped.recorded, &format!("{len} bytes"));
        assert_eq!(piped.losses.bytes, len as u64);
    }
}

/// The next packet's ids show that one is missing.
#[test]
fn a_missing_packet() {
    let mut dice = Dice::seeded(9);
    for (sound, numbers) in victims(&mut dice, 6) {
        for number in numbers {
            let packet = &sound.trace.packets[number];
            if packet.allocations() == 0 || !shown_later(&sound, number) {
                continue;
            }
            let damaged = with_packet(&sound, number, &[]);
            let reading = assert_lost(&sound, number, &damaged, "missing");
            let [first, ..] = &reading.losses.defects[..] else { panic!("no defect") };
            let next = sound.trace.packets[number + 1..].iter();
            let next =
                next.filter(|next| next.domain == packet.domain).collect::<Vec<&PlainPacket>>()[0];
            let (expected, found) = (packet.first_id, next.first_id);
            assert_eq!(first.defect, Defect::IdGap { expected, found });
            assert_eq!(first.offset, (next.range.start - packet.range.len()) as u64);
            assert_eq!(reading.losses.allocations, packet.allocations(), "{}", sound.name);
            assert_locations_right_or_lost(&sound, &damaged, "missing");
        }
    }
}

/// A packet that comes twice is returned once.
#[test]
fn a_packet_that_comes_again() {
    let mut dice = Dice::seeded(10);
    for (sound, numbers) in victims(&mut dice, 8) {
        for number in numbers {
            let packet = &sound.trace.packets[number];
            if packet.allocations() == 0 {
                continue;
            }
            let twice = with_packet(&sound, number, &packet_bytes(&sound, number).repeat(2));
            let context = format!("{}: {number} twice", sound.name);
            let reading = read_leniently(&twice);
            let all: Vec<&RecordedEvent> = sound.trace.recorded().collect();
            assert_right_or_lost(&all, &reading.recorded, &context);
            let again = Defect::IdAgain { first: packet.first_id };
            let found = reading.losses.defects.iter().find(|located| located.defect == again);
            let found = found.unwrap_or_else(|| panic!("{context}: {:?}", reading.losses));
            assert_eq!((found.packet, found.offset), (number as u64 + 1, packet.range.end as u64));
            assert_eq!(reading.losses.allocations, 0, "{context}: nothing is missing");
        }
    }
}

/// A forked child that wrote into the same file.
#[test]
fn packets_of_another_process() {
    let mut dice = Dice::seeded(11);
    for (sound, numbers) in victims(&mut dice, 6) {
        for number in numbers {
            let mut foreign = packet_bytes(&sound, number);
            foreign[30] ^= 1;
            let both = [foreign.clone(), packet_bytes(&sound, number), foreign].concat();
            let reading = read_leniently(&with_packet(&sound, number, &both));
            assert!(sound.trace.recorded().eq(&reading.recorded), "{}", sound.name);
            assert_eq!(reading.losses.foreign_packets, 2);
            assert!(reading.losses.is_clean());
        }
    }
}

#[test]
fn what_looks_like_an_allocation_among_locations_changes_no_backtrace() {
    let locations = |id| packet(2).ids(id, id).location(7).location(9);
    let allocation = |id| packet(2).ids(id, id + 1).short(0, 1);
    let damaged = locations(1).short(0, 1).miss(3, 9).short(0, 1).miss(3, 1 << 62);
    let (first, second) = (allocation(0).miss(3, 7), allocation(1).hit(3, 0));
    let reading = read_leniently(&trace(&[info(2), locations(0), first, damaged, second]));
    let frames: Vec<_> = reading.recorded.iter().map(RecordedEvent::frames).collect();
    assert_eq!(frames, [[7], [7]]);
    assert_eq!((reading.losses.packets, reading.losses.partial_backtraces), (1, 0));
}

#[test]
fn what_looks_like_a_location_among_allocations_changes_no_name() {
    let location = |packet: Forged, code: u64, name: u64| {
        let packed = 1 | name << 38 | name << 43;
        packet.event(1).u64(code).u8(1).u32(packed as u32).u16((packed >> 32) as u16)
    };
    let first = location(packet(2), 7, 31).string(b"file").string(b"function");
    let damaged = packet(2).ids(0, 2).short(0, 1).miss(3, 7);
    let damaged = location(damaged, 9, 31).string(b"other").string(b"other");
    let damaged = damaged.short(0, 1).miss(3, 1 << 62);
    let last = location(packet(2).ids(2, 2), 11, 0);
    let both = packet(2).ids(2, 4).short(0, 1).miss(4, 7).short(0, 1).miss(5, 11);
    let locations = read_locations(&trace(&[info(2), first, damaged, last, both]));
    let files: Vec<_> =
        locations.iter().map(|(code, locations)| (*code, &locations[0].file[..])).collect();
    assert!(files.contains(&(7, b"file")), "{files:?}");
    assert!(files.contains(&(11, b"<lost>")), "{files:?}");
}
