//! Any bytes can be read as a sidecar: no panic, bounded memory, and the same events in pieces of any
//! size. What was read can be written again, and is read as the same.

#![no_main]

use heaptap_probes::{Damage, Decoder, Encoder, Event, History, Timed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (whole, damage) = read(bytes, usize::MAX);
    let (pieces, same_damage) =
        read(bytes, bytes.first().map_or(1, |&first| usize::from(first) + 1));
    assert_eq!((format!("{whole:?}"), &damage), (format!("{pieces:?}"), &same_damage));
    let mut history = History::default();
    whole.iter().for_each(|event| history.add(event.clone()));
    assert!(history.probes().count() <= whole.len());
    let (again, _) = read(&written(&whole), usize::MAX);
    assert_eq!(again.len(), whole.len());
    for (event, again) in whole.iter().zip(&again) {
        // A text that was no UTF-8 may be longer than what is kept.
        assert_eq!(event.time, again.time);
        assert_eq!(
            std::mem::discriminant::<Event>(&event.event),
            std::mem::discriminant(&again.event)
        );
    }
});

fn read(bytes: &[u8], piece: usize) -> (Vec<Timed>, Option<Damage>) {
    let (mut decoder, mut events) = (Decoder::new(), Vec::new());
    for piece in bytes.chunks(piece.min(bytes.len()).max(1)) {
        decoder.feed(piece);
        loop {
            match decoder.next_event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(damage) => return (events, Some(damage)),
            }
        }
    }
    (events, None)
}

fn written(events: &[Timed]) -> Vec<u8> {
    let mut encoder = Encoder::new(1);
    let mut file = Vec::new();
    for event in events {
        file.extend(encoder.add(event).unwrap_or_default());
    }
    file.extend(encoder.take().unwrap_or_default());
    file
}
