//! Several domains in the order of time.

use heaptap_trace::{EventKind, Format, Limits, Merged, Mode};
use proptest::prelude::*;

use crate::corners::{alloc, script};
use crate::generate::{cases, scripts};
use crate::reading::{Reading, read_leniently, read_strictly};
use crate::script::Style;
use crate::traces::{Dice, generated, real};

/// Time, domain and frames of each event, and its id.
type Seen = (u64, u16, u64, Vec<u64>);

fn merged(bytes: &[u8], mode: Mode) -> Vec<Seen> {
    let mut merged = Merged::open(|| Ok(bytes), mode, Limits::default()).unwrap();
    let mut seen = Vec::new();
    while let Some(event) = merged.next_event().unwrap() {
        let (id, frames) = match event.kind {
            EventKind::Alloc(allocation) => (allocation.id, allocation.backtrace.frames.to_vec()),
            other => (other.block_id().unwrap(), Vec::new()),
        };
        seen.push((event.time, event.domain, id, frames));
    }
    seen
}

/// Each domain has its events in its order, whatever the merge.
fn assert_same_domains(merged: &[Seen], reading: &Reading) {
    use crate::reading::RecordedKind;
    assert_eq!(merged.len(), reading.recorded.len());
    let mut domains: Vec<u16> = reading.recorded.iter().map(|recorded| recorded.domain).collect();
    domains.sort_unstable();
    domains.dedup();
    for domain in domains {
        let seen = merged.iter().filter(|(_, number, ..)| *number == domain);
        for ((time, _, seen_id, frames), recorded) in seen.zip(reading.of_domain(domain)) {
            let (RecordedKind::Alloc { id, .. }
            | RecordedKind::Promote(id)
            | RecordedKind::Collect(id)) = recorded.kind;
            assert_eq!((*time, *seen_id), (recorded.time, id));
            assert_eq!(frames, recorded.frames());
        }
    }
}

fn assert_in_order(merged: &[Seen]) {
    assert!(merged.windows(2).all(|pair| pair[0].0 <= pair[1].0));
}

#[test]
fn a_domain_that_says_little_comes_in_its_time() {
    // Domain 1 has one packet, at the end of the file; its events belong
    // between those of domain 0.
    let mut steps = vec![alloc(1, 0, vec![(7, 1)])];
    for _ in 0..5000 {
        steps.push(alloc(0, 0, vec![(5, 1)]));
    }
    for _ in 0..50 {
        steps.push(alloc(1, 0, vec![(8, 1)]));
    }
    let bytes = script(Format::V3, steps).perform(Style::Whole).bytes;
    let merged = merged(&bytes, Mode::Strict);
    assert_in_order(&merged);
    assert_same_domains(&merged, &read_strictly(&bytes));
    let last = merged.iter().rposition(|(_, domain, ..)| *domain == 1).unwrap();
    assert!(last < 200, "it comes early in time, if late in the file: {last}");
}

#[test]
fn real_and_generated_traces() {
    for sound in generated().into_iter().chain(real(100_000)) {
        let merged = merged(&sound.bytes, Mode::Strict);
        assert_in_order(&merged);
        assert_same_domains(&merged, &read_strictly(&sound.bytes));
    }
}

/// If a damaged packet still states its domain, the merge returns the same events
/// as the reader.
#[test]
fn damaged_traces() {
    let mut dice = Dice::seeded(14);
    let sound = generated().swap_remove(1);
    for _ in 0..10 {
        let number = 1 + dice.below(sound.trace.packets.len() as u64 - 1) as usize;
        let packet = &sound.trace.packets[number];
        let Some(event) = packet.events.first() else { continue };
        let mut bytes = sound.bytes.clone();
        bytes[event.at + 3] = bytes[event.at + 3] & 1 | 99 << 1;
        assert_same_domains(&merged(&bytes, Mode::Lenient), &read_leniently(&bytes));
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn arbitrary_programs(script in scripts(60)) {
        let bytes = script.perform(Style::Whole).bytes;
        let merged = merged(&bytes, Mode::Strict);
        assert_in_order(&merged);
        assert_same_domains(&merged, &read_strictly(&bytes));
    }
}
