//! What can be read strictly can be written again; what was written can be read
//! strictly, and has the same events.

#![no_main]

mod mutate;
mod recorded;

use heaptap_trace::{
    Encoder, EventKind, EventSink as _, EventSource as _, Format, Limits, Mode, Reader, Version,
    WriteError,
};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

use crate::recorded::{RecordedEvent, read};

const LIMITS: Limits = Limits { frames: 1 << 16, domains: 8 };

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed)
});

fuzz_target!(|bytes: &[u8]| {
    let first = read(Reader::open(bytes, Mode::Strict, LIMITS));
    if first.error.is_some() {
        return;
    }
    let Some(written) = write(bytes) else { return };
    let second = read(Reader::open(&written[..], Mode::Strict, LIMITS));
    assert_eq!(second.error, None, "our own output");
    assert_eq!(first.events.len(), second.events.len());
    for number in domains(&first.events) {
        // Domains may be interleaved differently, each is as it was.
        let of = |events: &[RecordedEvent]| {
            events.iter().filter(|recorded| recorded.domain == number).cloned().collect::<Vec<_>>()
        };
        assert_eq!(of(&first.events), of(&second.events));
    }
    // Writing it once more changes nothing; the packets of several domains may
    // come in another order.
    if domains(&first.events).len() <= 1 {
        assert_eq!(write(&written).as_deref(), Some(&written[..]));
    }
});

fn domains(events: &[RecordedEvent]) -> std::collections::BTreeSet<u16> {
    events.iter().map(|recorded| recorded.domain).collect()
}

/// The events of a sound trace, encoded again. `None` if they break a rule that
/// binds writers only, or a backtrace does not fit when it is coded anew.
fn write(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::open(bytes, Mode::Strict, LIMITS).expect("it was read before");
    let format = if reader.version() == Version::V3 { Format::V3 } else { Format::V2 };
    let mut encoder = Encoder::new(Vec::new(), format, reader.info()).ok()?;
    while let Some((event, mut table)) = reader.next_located().expect("it was read before") {
        let (domain, time) = (event.domain, event.time);
        let done = match event.kind {
            EventKind::Alloc(allocation) => {
                let backtrace = allocation.backtrace;
                if backtrace.new.len() > 400 {
                    // Coded anew it may be cut elsewhere.
                    return None;
                }
                if encoder.next_id(domain) != Some(allocation.id) {
                    encoder.domain(domain).renumber(time, allocation.id).ok()?;
                }
                let (block, frames) = (allocation.block(), backtrace.suffix());
                let id = encoder.domain(domain).alloc(time, block, frames, &mut table);
                id.map(|id| assert_eq!(id, allocation.id))
            }
            // Only the head of its packet, and no allocation, said that there are ids
            // so high: coded anew it would be ahead of them.
            EventKind::Promote(id) if encoder.next_id(domain).is_none_or(|next| id >= next) => {
                return None;
            }
            EventKind::Promote(id) => encoder.domain(domain).promote(time, id, &mut table),
            EventKind::Collect(id) => encoder.domain(domain).collect(time, id, &mut table),
            other => panic!("{other:?}"),
        };
        match done {
            Ok(()) => {}
            // Empty slots and the years beyond 294,000 are for readers only.
            Err(WriteError::Code(_) | WriteError::Time(_) | WriteError::Id(_)) => return None,
            Err(error) => panic!("refused what was read strictly: {error}"),
        }
    }
    let mut table = reader.locations();
    Some(encoder.finish(&mut table).expect("memory takes everything"))
}
