//! Seeds of sidecars: one event of each kind, in one packet and in many.

use heaptap_probes::{
    Encoder, Event, Heap, Pauses, ProbeKind, SliceKind, Start, System, TagSize, Timed,
};

/// Their names and bytes.
pub fn all() -> [(&'static str, Vec<u8>); 2] {
    [("together", file(false)), ("apart", file(true))]
}

fn file(apart: bool) -> Vec<u8> {
    let mut encoder = Encoder::new(7);
    let mut file = Vec::new();
    for (time, event) in events().into_iter().enumerate() {
        file.extend(encoder.add(&Timed { time: time as u64, event }).unwrap_or_default());
        if apart {
            file.extend(encoder.take().unwrap_or_default());
        }
    }
    file.extend(encoder.take().unwrap_or_default());
    file
}

fn events() -> Vec<Event> {
    let (host, program) = ("h".to_owned(), "p".to_owned());
    let mut events =
        vec![Event::Start(Start { trace_start: 1, pid: 7, word_size: 8, host, program })];
    for (probe, kind) in ProbeKind::ALL.into_iter().enumerate() {
        events.push(Event::Probe { probe: probe as u32, kind, name: "a/b".to_owned() });
    }
    let text = "x".to_owned();
    let kind = SliceKind::Minor;
    events.extend([
        Event::Count { probe: 0, total: 3 },
        Event::Timer { probe: 1, total_ns: 4, runs: 1, running: 1 },
        Event::Value { probe: 2, last: 1.0, least: 0.5, greatest: 2.0 },
        Event::Text { probe: 3, text: text.clone() },
        Event::Tag { probe: 4, live: 1, marked: 2, size: TagSize::AtLeast(9) },
        Event::Log { text: text.clone() },
        Event::Pause { text },
        Event::Lost { logs: 1, slices: 2 },
        Event::Slice { kind, domain: 1, ns: 5 },
        Event::Pauses(Pauses { kind, count: 1, total_ns: 5, longest_ns: 5 }),
        Event::Heap(Heap { minor_words: Some(1), ..Heap::default() }),
        Event::System(System { rss: Some(1), ..System::default() }),
        Event::Pressure { headroom: 1 },
        Event::End,
    ]);
    events
}
