//! What is encoded is decoded, in pieces of any size; damage is named, and nothing panics.

use heaptap_probes::{
    Decoder, Encoder, Event, Heap, Pauses, ProbeKind, SliceKind, Spacing, Start, System, TagSize,
    Timed,
};
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    "[a-zé/ ]{0,40}"
}

fn number() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (0..u64::MAX).prop_map(Some)]
}

fn event() -> impl Strategy<Value = Event> {
    let probe = || 0..65_536u32;
    let any = any::<u64>;
    let finite = || -1e300..1e300f64;
    prop_oneof![
        (any(), any(), text(), text()).prop_map(|(trace_start, pid, host, program)| {
            Event::Start(Start { trace_start, pid, word_size: 8, host, program })
        }),
        (probe(), 0..5u32, text()).prop_map(|(probe, kind, name)| Event::Probe {
            probe,
            kind: ProbeKind::from_number(kind).unwrap(),
            name
        }),
        (probe(), any()).prop_map(|(probe, total)| Event::Count { probe, total }),
        (probe(), any(), any(), 0..9u32).prop_map(|(probe, total_ns, runs, running)| {
            Event::Timer { probe, total_ns, runs, running }
        }),
        (probe(), finite(), finite(), finite()).prop_map(|(probe, last, least, greatest)| {
            Event::Value { probe, last, least, greatest }
        }),
        (probe(), text()).prop_map(|(probe, text)| Event::Text { probe, text }),
        (probe(), any(), any(), any()).prop_map(|(probe, live, marked, words)| {
            Event::Tag { probe, live, marked, size: TagSize::AtLeast(words) }
        }),
        text().prop_map(|text| Event::Log { text }),
        text().prop_map(|text| Event::Pause { text }),
        (any(), any()).prop_map(|(logs, slices)| Event::Lost { logs, slices }),
        (0..3u8, 0..128u16, any()).prop_map(|(kind, domain, ns)| Event::Slice {
            kind: SliceKind::from_number(kind).unwrap(),
            domain,
            ns
        }),
        (any(), any()).prop_map(|(count, total_ns)| Event::Pauses(Pauses {
            kind: SliceKind::Major,
            count,
            total_ns,
            longest_ns: 7
        })),
        (number(), number(), number()).prop_map(|(minor_words, compactions, live_words)| {
            Event::Heap(Heap { minor_words, compactions, live_words, ..Heap::default() })
        }),
        (number(), number()).prop_map(|(rss, domains)| {
            Event::System(System { rss, domains, ..System::default() })
        }),
        any().prop_map(|headroom| Event::Pressure { headroom }),
        Just(Event::End),
        (any(), any()).prop_map(|(until, ns)| Event::Spacing(Spacing { until, ns })),
        Just(Event::Replaced),
        (any(), any()).prop_map(|(number, began)| Event::Cycle { number, began }),
    ]
}

fn encode(events: &[Timed]) -> Vec<u8> {
    let mut encoder = Encoder::new(77);
    let mut file = Vec::new();
    for (at, event) in events.iter().enumerate() {
        file.extend(encoder.add(event).unwrap_or_default());
        if at % 7 == 6 {
            file.extend(encoder.take().unwrap_or_default());
        }
    }
    file.extend(encoder.take().unwrap_or_default());
    file
}

fn decode_all(decoder: &mut Decoder, into: &mut Vec<Timed>) -> Result<(), String> {
    loop {
        match decoder.next_event() {
            Ok(Some(event)) => into.push(event),
            Ok(None) => return Ok(()),
            Err(damage) => return Err(damage.to_string()),
        }
    }
}

proptest! {
    #[test]
    fn events_come_back_whatever_the_pieces(
        events in prop::collection::vec((any::<u64>(), event()), 0..200),
        piece in 1..5_000usize,
    ) {
        let events: Vec<Timed> = events.into_iter().map(|(time, event)| Timed { time, event }).collect();
        let file = encode(&events);
        let (mut decoder, mut decoded) = (Decoder::new(), Vec::new());
        for piece in file.chunks(piece) {
            decoder.feed(piece);
            decode_all(&mut decoder, &mut decoded).unwrap();
        }
        prop_assert_eq!(decoder.pending(), 0);
        prop_assert_eq!(decoded, events);
    }

    /// Bytes that come while a packet is being decoded change nothing.
    #[test]
    fn events_may_be_taken_one_by_one_between_pieces(
        events in prop::collection::vec((any::<u64>(), event()), 0..100),
        piece in 1..500usize,
    ) {
        let events: Vec<Timed> = events.into_iter().map(|(time, event)| Timed { time, event }).collect();
        let file = encode(&events);
        let (mut decoder, mut decoded) = (Decoder::new(), Vec::new());
        for piece in file.chunks(piece) {
            decoder.feed(piece);
            decoded.extend(decoder.next_event().unwrap());
        }
        decode_all(&mut decoder, &mut decoded).unwrap();
        prop_assert_eq!(decoder.pending(), 0);
        prop_assert_eq!(decoded, events);
    }

    #[test]
    fn a_changed_byte_never_panics(
        events in prop::collection::vec((any::<u64>(), event()), 1..40),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let events: Vec<Timed> = events.into_iter().map(|(time, event)| Timed { time, event }).collect();
        let mut file = encode(&events);
        let at = at.index(file.len());
        file[at] = byte;
        let mut decoder = Decoder::new();
        decoder.feed(&file);
        let mut decoded = Vec::new();
        if decode_all(&mut decoder, &mut decoded).is_err() {
            prop_assert!(decoder.next_event().is_err());
        }
    }
}

#[test]
fn another_file_is_refused_by_name() {
    let mut decoder = Decoder::new();
    decoder.feed(&[b'x'; 100]);
    assert_eq!(decoder.next_event().unwrap_err().to_string(), "at byte 0: not a packet of CTF");
}

#[test]
fn packets_of_a_forked_child_are_skipped() {
    let mut file = encode(&[Timed { time: 1, event: Event::Log { text: "parent".into() } }]);
    let mut child = Encoder::new(78);
    assert!(child.add(&Timed { time: 2, event: Event::Log { text: "child".into() } }).is_none());
    file.extend(child.take().unwrap());
    file.extend(encode(&[Timed { time: 3, event: Event::End }]));
    let (mut decoder, mut decoded) = (Decoder::new(), Vec::new());
    decoder.feed(&file);
    decode_all(&mut decoder, &mut decoded).unwrap();
    assert_eq!(decoded.len(), 2);
    assert_eq!(decoded[1].event, Event::End);
}
