//! Traces that end too early, as those of killed programs do.

use heaptap_trace::{Completion, CutReason, CutShort, Defect, Format, Located, Mode, ReadError};

use crate::defects::first_found;
use crate::oracle::PlainPacket;
use crate::reading::{read_leniently, read_through_pipe};
use crate::traces::{Dice, Sound, generated, program, real};

/// Cuts the trace `have` bytes into a packet. The events before it are returned,
/// and there is no other defect.
fn assert_cut(sound: &Sound, number: usize, have: usize) {
    let Sound { name, bytes, trace } = sound;
    let packet = &trace.packets[number];
    let cut = &bytes[..packet.range.start + have];
    let context = format!("{name}, {have} bytes into packet {number}");
    let need = if have < packet.header_len { 0 } else { packet.range.len() };
    let truncated = Located {
        packet: number as u64,
        offset: packet.range.start as u64,
        defect: Defect::Truncated { have, need }.into(),
    };
    let reading = read_leniently(cut);
    let whole = trace.packets[..number].iter().flat_map(PlainPacket::recorded);
    assert!(whole.eq(&reading.recorded), "{context}: the events of all whole packets");
    assert_eq!(reading.losses.truncated.as_ref(), Some(&truncated), "{context}");
    assert_eq!(reading.losses.defects, [], "{context}: no other defect");
    assert_eq!(reading.losses.bytes, have as u64, "{context}");
    let known = if need == 0 { 0 } else { packet.allocations() };
    assert_eq!(reading.losses.allocations, known, "{context}: the number in the header");
    assert_eq!(reading.losses.partial_backtraces, 0, "{context}");
    assert_eq!(first_found(cut, Mode::Strict), Some(truncated), "{context}: strict");
}

/// A killed program leaves any number of bytes of its last packet.
#[test]
fn at_every_byte_of_the_last_packet() {
    for format in [Format::V2, Format::V3] {
        // A short trace, because for each byte all of it is read anew.
        let sound = Sound::of("short", &program(format, 90, 30));
        let last = sound.trace.packets.len() - 1;
        for number in last - 1..=last {
            for have in 1..sound.trace.packets[number].range.len() {
                assert_cut(&sound, number, have);
            }
        }
    }
}

#[test]
fn at_every_byte_of_the_last_packet_of_a_real_trace() {
    for sound in real(20_000) {
        let last = sound.trace.packets.len() - 1;
        let size = sound.trace.packets[last].range.len();
        // Every byte of the shortest trace; of the others, which take longer to
        // read again, those near either end and some between.
        let whole = sound.name.starts_with("lists");
        let near_either_end = |have: &usize| *have < 80 || size - have < 80;
        for have in (1..size).filter(|have| whole || have % 97 == 0 || near_either_end(have)) {
            assert_cut(&sound, last, have);
        }
    }
}

#[test]
fn anywhere() {
    let mut dice = Dice::seeded(3);
    for sound in generated().into_iter().chain(real(100_000)) {
        for _ in 0..15 {
            let number = 1 + dice.below(sound.trace.packets.len() as u64 - 1) as usize;
            let size = sound.trace.packets[number].range.len() as u64;
            assert_cut(&sound, number, 1 + dice.below(size - 1) as usize);
        }
    }
}

#[test]
fn between_packets_nothing_is_wrong() {
    for sound in generated().into_iter().chain(real(100_000)) {
        let some = sound.trace.packets.len() / 10 + 1;
        for packet in sound.trace.packets.iter().step_by(some) {
            let cut = &sound.bytes[..packet.range.end];
            assert_eq!(first_found(cut, Mode::Strict), None);
            let before = |other: &&PlainPacket| other.range.end <= packet.range.end;
            let whole = sound.trace.packets.iter().filter(before).flat_map(PlainPacket::recorded);
            assert!(whole.eq(&read_leniently(cut).recorded));
        }
    }
}

#[test]
fn inside_the_trace_info_there_is_nothing_to_tell() {
    for sound in generated().into_iter().chain(real(20_000)) {
        let first = &sound.trace.packets[0];
        for have in 1..first.range.len() {
            let need = if have < first.header_len { 0 } else { first.range.len() };
            let defect = Defect::Truncated { have, need }.into();
            let truncated = Some(Located { packet: 0, offset: 0, defect });
            for mode in [Mode::Strict, Mode::Lenient] {
                assert_eq!(first_found(&sound.bytes[..have], mode), truncated);
            }
        }
    }
}

/// A source that fails is not a trace that ends.
#[test]
fn an_error_of_the_source_is_told() {
    struct Failing<'a>(&'a [u8]);
    impl std::io::Read for Failing<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buffer) {
                Ok(0) => Err(std::io::ErrorKind::ConnectionReset.into()),
                read => read,
            }
        }
    }
    let sound = &generated()[0];
    let second = sound.trace.packets[2].range.clone();
    for have in [0, 1, 100, second.start, second.start + 10, second.end - 1, second.end] {
        let failing = Failing(&sound.bytes[..have]);
        let error = match heaptap_trace::Reader::new(failing, Mode::Lenient) {
            Ok(reader) => crate::reading::read_on(reader).error,
            Err(error) => Some(error),
        };
        assert!(matches!(error, Some(ReadError::Io(_))), "after {have} bytes: {error:?}");
    }
}

#[test]
fn a_pipe_that_closes_early_is_a_truncated_file() {
    let sound = &generated()[0];
    let cut = &sound.bytes[..sound.bytes.len() - 7];
    let piped = read_through_pipe(cut, Mode::Lenient, &[1, 999, 0]).unwrap();
    let slice = read_leniently(cut);
    assert_eq!(piped.recorded, slice.recorded);
    assert_eq!(piped.losses.truncated, slice.losses.truncated);
    assert!(slice.losses.truncated.is_some());
}

/// A trace whose first packet says that its end is missing is read as before, in both
/// modes, and the reader returns why and until when it covers the program.
#[test]
fn a_trace_that_is_cut_short_says_so() {
    for (completion, reason) in [
        (Completion::Complete, None),
        (Completion::Unfinished, Some(CutReason::Unfinished)),
        (Completion::WriteFailed, Some(CutReason::WriteFailed)),
    ] {
        let Sound { mut bytes, trace, .. } = Sound::of("cut", &program(Format::V3, 400, 31));
        let at = Completion::OFFSET as usize;
        bytes[at..at + 4].copy_from_slice(&completion.bytes());
        let reading = read_leniently(&bytes);
        assert!(trace.packets.iter().flat_map(PlainPacket::recorded).eq(&reading.recorded));
        let time = |from: usize| u64::from_le_bytes(bytes[from..from + 8].try_into().unwrap());
        let ends = trace.packets.iter().map(|packet| time(packet.range.start + 16));
        let until = ends.max().unwrap() - time(8);
        assert_eq!(reading.losses.cut_short, reason.map(|reason| CutShort { reason, until }));
        assert_eq!(first_found(&bytes, Mode::Strict), None);
    }
}
