//! The bounds that [`Limits`] sets, and what a reader says when they are met.

use heaptap_trace::{Defect, Format, Limits, Located, Mode, ReadError, Reader};
use proptest::prelude::*;

use crate::corners::{alloc, distinct, script};
use crate::forge::{Forged, info, packet, trace};
use crate::generate::{cases, scripts};
use crate::reading::{Reading, read_on, read_strictly};
use crate::script::Style;

const NONE: Limits = Limits { frames: usize::MAX, domains: usize::MAX };

fn read_within(bytes: &[u8], mode: Mode, limits: Limits) -> Reading {
    read_on(Reader::open(bytes, mode, limits).unwrap())
}

fn error(reading: &Reading) -> Option<Located> {
    match &reading.error {
        Some(ReadError::Defect(located)) => Some(located.clone()),
        _ => None,
    }
}

#[test]
fn one_domain_too_many() {
    let domain = |number: u16| {
        let first = u64::from(number) * 10_000;
        packet(3).domain(number).ids(first, first + 1).short(0, 0)
    };
    let packets = [info(3), domain(0), domain(1), domain(2), domain(1).ids(10_001, 10_002)];
    let bytes = trace(&packets);
    let limits = Limits { domains: 2, ..Limits::default() };
    let offset = packets[..3].iter().map(|packet| packet.len() as u64).sum();
    let located = Located { packet: 3, offset, defect: Defect::TooManyDomains { limit: 2 }.into() };
    assert_eq!(error(&read_within(&bytes, Mode::Strict, limits)), Some(located.clone()));
    let reading = read_within(&bytes, Mode::Lenient, limits);
    assert_eq!(reading.losses.defects, [located]);
    assert_eq!(reading.losses.packets, 1);
    let domains: Vec<u16> = reading.recorded.iter().map(|recorded| recorded.domain).collect();
    assert_eq!(domains, [0, 1, 1], "the others are read on");
    assert!(read_within(&bytes, Mode::Strict, Limits { domains: 3, ..limits }).error.is_none());
}

/// 20 frames in a packet of which `limit` may be kept.
fn twenty_frames(limit: usize, mode: Mode) -> Reading {
    let known = packet(2).location(77);
    let deep = packet(2).ids(0, 1).short(0, 2).miss(0, 77).hit(0, 18);
    let behind = packet(2).ids(1, 2).short(20, 0);
    let bytes = trace(&[info(2), known, deep, behind]);
    read_within(&bytes, mode, Limits { frames: limit, ..Limits::default() })
}

#[test]
fn one_frame_too_many() {
    let whole = twenty_frames(100, Mode::Strict);
    assert!(whole.error.is_none());
    assert_eq!(whole.recorded[1].frames(), [77; 20]);
    // What is beyond the limit is left out, and the reader says so.
    let cut = twenty_frames(19, Mode::Lenient);
    assert!(cut.error.is_none());
    assert_eq!(cut.recorded.len(), 2);
    for (cut, whole) in cut.recorded.iter().zip(&whole.recorded) {
        assert_eq!(cut.clone().with_frames(whole.frames()), *whole);
        assert_eq!(cut.frames(), [77; 19]);
    }
    let [located] = &cut.losses.defects[..] else { panic!("{:?}", cut.losses) };
    assert_eq!(located.defect, Defect::TooDeep { limit: 19 });
    let strict = error(&twenty_frames(19, Mode::Strict)).map(|located| located.defect);
    assert_eq!(strict, Some(Defect::TooDeep { limit: 19 }.into()));
}

#[test]
fn no_limit_is_a_limit_too() {
    let script = script(Format::V2, vec![alloc(0, 0, vec![(7, 9000)]), alloc(0, 99, vec![])]);
    let bytes = script.perform(Style::Whole).bytes;
    let reading = read_within(&bytes, Mode::Strict, NONE);
    assert!(reading.error.is_none());
    assert_eq!(reading.recorded, read_strictly(&bytes).recorded);
}

#[test]
fn nothing_is_allowed() {
    let script = script(Format::V2, vec![alloc(0, 0, distinct(1..40)), alloc(0, 3, vec![])]);
    let bytes = script.perform(Style::Whole).bytes;
    let reading = read_within(&bytes, Mode::Lenient, Limits { frames: 0, domains: 0 });
    assert!(reading.error.is_none());
    assert!(reading.recorded.is_empty());
    let reading = read_within(&bytes, Mode::Lenient, Limits { frames: 0, domains: 1 });
    assert!(reading.error.is_none());
    assert!(!reading.losses.is_clean());
    assert!(reading.recorded.iter().all(|recorded| recorded.frames().is_empty()));
}

#[test]
fn the_budget_is_shared_between_domains() {
    let steps = vec![
        alloc(0, 0, vec![(7, 600)]),
        alloc(1, 0, vec![(8, 600)]),
        alloc(0, 0, vec![(7, 100)]),
        alloc(1, 0, vec![(8, 100)]),
    ];
    let bytes = script(Format::V3, steps).perform(Style::Whole).bytes;
    let limits = Limits { frames: 1000, ..Limits::default() };
    let reading = read_within(&bytes, Mode::Lenient, limits);
    let depths: Vec<usize> =
        reading.recorded.iter().map(|recorded| recorded.frames().len()).collect();
    let (first, second) = (depths[0], depths[2]);
    assert!(first == 600 && second < 600 && first + second <= 1000, "{depths:?}");
    assert_eq!((depths[1], depths[3]), (100, 100.min(second)), "memory is reused");
}

proptest! {
    #![proptest_config(cases(24))]

    /// A limit takes frames away from the end of backtraces, or whole packets
    /// when one alone has too many; what is returned is right.
    #[test]
    fn any_limit(script in scripts(80), frames in prop_oneof![0..80_usize, 0..4000_usize]) {
        let bytes = script.perform(Style::Whole).bytes;
        let whole = read_strictly(&bytes);
        let limits = Limits { frames, ..Limits::default() };
        let reading = read_within(&bytes, Mode::Lenient, limits);
        prop_assert!(reading.error.is_none());
        let mut all = whole.recorded.iter().zip(&whole.packet_ends);
        let lost = heaptap_trace::LOST_FRAME;
        for (cut, end) in reading.recorded.iter().zip(&reading.packet_ends) {
            let (recorded, _) = all.find(|(_, at)| *at == end).expect("an event of that packet");
            prop_assert_eq!(&cut.clone().with_frames(recorded.frames()), recorded);
            prop_assert!(cut.frames().len() <= frames);
            for (got, want) in cut.frames().iter().zip(recorded.frames()) {
                prop_assert!(got == want || *got == lost);
            }
        }
        let exceeded = whole.recorded.iter().any(|recorded| recorded.frames().len() > frames);
        prop_assert!(!exceeded || !reading.losses.is_clean());
    }
}

/// [`Forged`] packets hold what they say.
#[test]
fn forged_packets_are_sound() {
    let packets: Vec<Forged> =
        vec![info(1), packet(1).location(7), packet(1).ids(0, 1).short(0, 0)];
    assert_eq!(read_strictly(&trace(&packets)).recorded.len(), 1);
}
