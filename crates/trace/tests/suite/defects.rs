//! Every defect that bytes can have, each with the number of its packet and
//! the offset of its event, or of its packet if it belongs to no event.

use heaptap_trace::{Defect, Located, Mode, ReadError};

use crate::forge::{Forged, START, info, packet, trace};
use crate::reading::read;

/// Reads the packets strictly, and leniently unless the first is bad. Both must
/// find this defect first.
#[track_caller]
fn assert_found(packets: &[Forged], number: usize, offset: usize, defect: Defect) {
    let start: usize = packets[..number].iter().map(Forged::len).sum();
    let offset = (start + offset) as u64;
    let located = Located { packet: number as u64, offset, defect: defect.into() };
    let bytes = trace(packets);
    assert_eq!(first_found(&bytes, Mode::Strict), Some(located.clone()), "strict");
    assert_eq!(first_found(&bytes, Mode::Lenient), Some(located), "lenient");
}

/// The first defect that a reader reports, by its error or its losses.
pub(crate) fn first_found(bytes: &[u8], mode: Mode) -> Option<Located> {
    let found = |error| match error {
        ReadError::Defect(located) => located,
        ReadError::Io(error) => panic!("a slice cannot fail: {error}"),
    };
    match read(bytes, mode) {
        Err(error) => Some(found(error)),
        Ok(reading) => {
            let losses = reading.losses;
            let first = losses.defects.first().cloned().or(losses.truncated);
            reading.error.map(found).or(first)
        }
    }
}

/// A defect of the second packet's one event, which begins right behind the
/// header, with a sound packet behind it.
#[track_caller]
fn assert_event(event: Forged, defect: Defect) {
    let behind = packet(event.version).ids(event.ids.1, event.ids.1);
    let at = event.header_len();
    assert_found(&[info(event.version), event, behind], 1, at, defect);
}

/// A defect of the second packet's header.
#[track_caller]
fn assert_header(header: Forged, defect: Defect) {
    assert_found(&[info(2), header, packet(2)], 1, 0, defect);
}

#[test]
fn nothing_at_all() {
    assert_found(&[], 0, 0, Defect::Empty);
}

#[test]
fn headers() {
    let good = packet(2);
    let magic = 0xc1fc_1fc0;
    assert_header(Forged { magic, ..good.clone() }, Defect::Magic { found: magic });
    for found in [0, 4, 0xffff] {
        assert_header(Forged { version: found, ..good.clone() }, Defect::Version { found });
    }
    assert_header(packet(1), Defect::VersionChange { found: 1 });
    for bits in [0, 8 * 65, 8 * 66 + 1, 8 * 32_769, u32::MAX] {
        let packet = Forged { bits: Some(bits), ..good.clone() };
        assert_header(packet, Defect::PacketSize { bits });
    }
    let too_late = i64::MAX as u64 + 1;
    for (begin, end) in [(START, START - 1), (START, START + 30_000_001), (too_late, too_late)] {
        let packet = Forged { times: (begin, end), ..good.clone() };
        assert_header(packet, Defect::PacketTimes { begin, end });
    }
    for (first, next) in [(1, 0), (0, 1 << 62)] {
        assert_header(good.clone().ids(first, next), Defect::PacketIds { first, next });
    }
    for (slot, prediction) in [(16_384, 0), (0, 16_384), (0xfffe, 1)] {
        let packet = Forged { check: (slot, prediction, 0), ..good.clone() };
        assert_header(packet, Defect::CacheCheckSlot { slot, prediction });
    }
    for check in [(7, 0, 1), (7, 1, 0)] {
        assert_header(Forged { check, ..good.clone() }, Defect::CacheCheck { slot: 7 });
    }
}

#[test]
fn headers_in_their_sequence() {
    let alloc = |ids: (u64, u64)| packet(2).ids(ids.0, ids.1).short(0, 0);
    let later = Forged { times: (START + 5, START + 5), ..packet(2) };
    let (time, after) = (START, START + 5);
    let backwards = Defect::TimeBackwards { time, after };
    assert_found(&[info(2), later, packet(2)], 2, 0, backwards);
    let before = Forged { times: (START - 1, START), ..packet(2) };
    let backwards = Defect::TimeBackwards { time: START - 1, after: START };
    assert_found(&[info(2), before], 1, 0, backwards);

    let gap = Defect::IdGap { expected: 1, found: 3 };
    assert_found(&[info(2), alloc((0, 1)), alloc((3, 4))], 2, 0, gap);
    let again = Defect::IdAgain { first: 0 };
    assert_found(&[info(2), alloc((0, 1)), alloc((0, 1))], 2, 0, again);

    // Version 3: across domains, and within a domain's block.
    let alloc = |domain, first| packet(3).domain(domain).ids(first, first + 1).short(0, 0);
    let again = Defect::IdAgain { first: 10_000 };
    assert_found(&[info(3), alloc(0, 10_000), alloc(1, 10_000)], 2, 0, again);
    let gap = Defect::IdGap { expected: 10_001, found: 10_003 };
    assert_found(&[info(3), alloc(0, 10_000), alloc(0, 10_003)], 2, 0, gap);
}

#[test]
fn trace_infos() {
    let fields = |rate: f64, word: u8| {
        let packet = packet(2).event(0).u64(rate.to_bits()).u8(word);
        packet.string(b"").string(b"").string(b"").u64(1).string(b"")
    };
    for rate in [0.0, -0.5, 1.000_000_1, f64::NAN, f64::INFINITY] {
        let defect = Defect::SampleRate { bits: rate.to_bits() };
        assert_found(&[fields(rate, 64)], 0, 66, defect);
    }
    assert_found(&[fields(1.0, 8)], 0, 66, Defect::WordSize { bits: 8 });
    let not_alone = [
        packet(2),
        fields(1.0, 64).ids(0, 1),
        fields(1.0, 64).ids(1, 1),
        fields(1.0, 64).u8(0),
        info(2).event(4).u8(0),
        packet(2).short(0, 0),
        packet(2).event(0).u64(1.0_f64.to_bits()).u8(64).string(b"no end"),
        packet(2).event_at(0, START + 1),
        Forged { times: (START, START + 1), ..info(2) },
    ];
    for first in not_alone {
        assert_found(&[first], 0, 66, Defect::TraceInfo);
    }
    assert_event(info(2), Defect::TraceInfoAgain);
}

#[test]
fn event_codes_and_times() {
    for code in [5, 99, 100, 117, 127] {
        let defect = Defect::EventCode { code: code as u8 };
        assert_event(packet(2).event(code).u32(0), defect);
    }
    let late = packet(2).event_at(4, START + 1).u8(0);
    assert_event(late, Defect::EventTime { time: START + 1 });
    let packet = Forged { times: (START, START + 9), ..packet(2) };
    let packet = packet.ids(0, 1).event_at(101, START + 9).u8(0).u8(0);
    let at = packet.len();
    let back = packet.event_at(4, START + 8).u8(0);
    let defect = Defect::TimeBackwards { time: START + 8, after: START + 9 };
    assert_found(&[info(2), back], 1, at, defect);
}

/// An event that reaches beyond its packet does so whatever follows: nothing,
/// a packet, or enough bytes for a backtrace to continue in them.
#[track_caller]
fn assert_overrun(event: &Forged) {
    let at = event.header_len();
    let empty = packet(event.version).ids(event.ids.1, event.ids.1);
    let mut long = empty.clone();
    // Collections of the last object, and hits of slot 1 to whoever reads so.
    while event.ids.1 > 0 && long.body.len() < 20_000 {
        long = long.event(4).u8(0);
    }
    for behind in [&[][..], &[empty], &[long.clone(), long]] {
        let packets = [&[info(event.version), event.clone()], behind].concat();
        assert_found(&packets, 1, at, Defect::EventOverrun);
    }
}

#[test]
fn events_that_overrun_their_packet() {
    let one = || packet(2).ids(0, 1);
    let cut = |mut packet: Forged, by: usize| {
        packet.body.truncate(packet.body.len() - by);
        packet
    };
    for by in 1..4 {
        assert_overrun(&cut(one().event(101), by));
    }
    for by in 1..12 {
        assert_overrun(&cut(one().short(0, 1).miss(5, 77), by));
    }
    for by in 1..18 {
        assert_overrun(&cut(one().long(0, 1).vint(0), by));
    }
    for by in 1..9 {
        assert_overrun(&cut(packet(2).event(4).vint(0), by));
        assert_overrun(&cut(packet(2).event(1).u64(7).u8(1).u32(0), by));
    }
    assert_overrun(&packet(2).event(1).u64(7).u8(1).u32(0).u16(0xffff).u8(b'a'));
    // The second entry is missing, whatever it would be.
    assert_overrun(&one().short(0, 2).miss(5, 77));
    assert_overrun(&one().short(0, 255).miss(5, 77));
    assert_overrun(&one().long(0, 65_535).miss(5, 77));
    assert_overrun(&one().long(0, 5000).miss(5, 77).hit(5, 255));
}

#[test]
fn blocks() {
    let long = || packet(2).ids(0, 1).event(2);
    for length in [-1, 1 << 62, i64::MIN, i64::MAX] {
        let packet = long().vint(length).u8(1).u8(0).u8(0).u16(0);
        assert_event(packet, Defect::Length { length });
    }
    for samples in [0, -1, 7, i64::MAX] {
        let packet = long().u8(5).vint(samples).u8(0).u8(0).u16(0);
        assert_event(packet, Defect::Samples { samples });
    }
    let packet = long().u8(5).u8(6).u8(3).u8(0).u16(0);
    assert_event(packet, Defect::Source { source: 3 });
}

#[test]
fn backtraces() {
    let one = || packet(2).ids(0, 1);
    assert_event(one().short(1, 0), Defect::CommonPrefix { prefix: 1, depth: 0 });
    for prefix in [-1, 1 << 32, i64::MIN] {
        let defect = Defect::CommonPrefix { prefix, depth: u64::from(u32::MAX) };
        assert_event(one().long(prefix, 0), defect);
    }
    assert_event(one().short(0, 1).u16(5 << 2), Defect::EmptySlot);

    let known = packet(2).location(77);
    let misses = (0..410).fold(one().long(0, 410), |packet, _| packet.miss(5, 77));
    let defect = Defect::BacktraceSize { bytes: 4100 };
    assert_found(&[info(2), known.clone(), misses], 2, 66, defect);

    assert_event(one().short(0, 1).miss(5, 77), Defect::CodeUnknown { code: 77 });
    let first = one().ids(0, 2).short(0, 0);
    let at = first.len();
    let second = first.short(0, 1).miss(5, 88);
    let defect = Defect::CodeUnknown { code: 88 };
    assert_found(&[info(2), known, second], 2, at, defect);
}

/// A slot that nothing followed yet predicts slot 0, which is empty here.
#[test]
fn predictions_of_empty_slots() {
    let known = packet(2).location(77);
    let missed = packet(2).ids(0, 1).short(0, 1).miss(5, 77);
    let hit = || packet(2).ids(1, 2).short(0, 1);
    for predictions in 1..9 {
        let packets = [info(2), known.clone(), missed.clone(), hit().hit(5, predictions)];
        assert_found(&packets, 3, 66, Defect::EmptySlot);
    }
    assert_found(&[info(2), known, missed, hit().u16(5 << 2 | 1)], 3, 66, Defect::EmptySlot);
}

#[test]
fn locations() {
    let location = |packet: Forged, file: u64, definition: u64| {
        let packed = file << 38 | definition << 43;
        packet.u32(packed as u32).u16((packed >> 32) as u16)
    };
    for code in [1 << 62, 1 << 63, (1 << 63) | 5] {
        assert_event(packet(2).location(code), Defect::CodeRange { code });
    }
    let file = location(packet(2).event(1).u64(7).u8(1), 0, 31).string(b"d");
    assert_event(file, Defect::NameCode { code: 0, known: 0 });
    let definition = location(packet(2).event(1).u64(7).u8(1), 31, 2).string(b"f");
    assert_event(definition, Defect::NameCode { code: 2, known: 0 });
    let second = location(packet(2).event(1).u64(7).u8(2), 31, 31).string(b"f").string(b"d");
    assert_event(location(second, 1, 0), Defect::NameCode { code: 1, known: 1 });

    let first = packet(2).location(7);
    let at = first.len();
    let again = location(first.event(1).u64(7).u8(1), 31, 31).string(b"f").string(b"d");
    assert_found(&[info(2), again], 1, at, Defect::LocationChange { code: 7 });
}

#[test]
fn objects() {
    for (code, delta) in [(3, 0), (4, 0), (4, -1), (4, 1 << 40), (3, i64::MIN)] {
        assert_event(packet(2).event(code).vint(delta), Defect::ObjectId { delta });
    }
    let two = packet(2).ids(0, 2).short(0, 0).short(0, 0);
    let at = two.len();
    assert_found(&[info(2), two.event(3).u8(2)], 1, at, Defect::ObjectId { delta: 2 });
    // Version 3 knows objects of other domains.
    let delta = -(1 << 62) - 1;
    assert_event(packet(3).event(4).vint(delta), Defect::ObjectId { delta });
    assert_event(packet(3).event(3).vint(-6), Defect::PromoteAhead { delta: -6 });
}

#[test]
fn allocations_other_than_stated() {
    for (stated, found) in [(2, 1), (11, 1)] {
        let packet = packet(2).ids(0, stated).short(0, 0);
        let end = packet.len();
        let defect = Defect::AllocationCount { stated, found };
        assert_found(&[info(2), packet], 1, end, defect);
    }
    // Where there should be none, the first is one too many.
    let defect = Defect::AllocationCount { stated: 0, found: 1 };
    assert_event(packet(2).short(0, 0), defect);
}

#[test]
fn truncated_files() {
    let packets = [info(2), packet(2).ids(0, 1).short(0, 1).miss(1, 77), packet(2).ids(1, 1)];
    let bytes = trace(&packets);
    let last = bytes.len() - 66;
    for have in 1..66 {
        let found = first_found(&bytes[..last + have], Mode::Strict);
        let unknown = Some(Defect::CodeUnknown { code: 77 }.into());
        assert_eq!(
            found.map(|located| located.defect),
            unknown,
            "the first defect is reported first"
        );
        let reading = read(&bytes[..last + have], Mode::Lenient).unwrap();
        let defect = Defect::Truncated { have, need: 0 }.into();
        let truncated = Located { packet: 2, offset: last as u64, defect };
        assert_eq!(reading.losses.truncated, Some(truncated));
    }
}
