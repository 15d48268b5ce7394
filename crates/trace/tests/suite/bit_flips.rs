//! Single bits flipped anywhere. Many such traces still parse without any sign of
//! damage. What must hold is that reading continues, and that nothing wrong is
//! returned once the reader has detected the damage and skipped the packet.

use heaptap_trace::{Defect, Format, Mode};

use crate::damage::{assert_right_or_lost, shown_later};
use crate::reading::{Reading, RecordedEvent, RecordedKind, read, read_through_pipe};
use crate::traces::{Dice, Sound, program, real};

/// Whether the reader detected damage in this packet and returned none of it.
fn left_out(sound: &Sound, number: usize, reading: &Reading) -> bool {
    let packet = &sound.trace.packets[number];
    let ids = packet.first_id..packet.next_id;
    let recorded = reading.recorded.iter().any(|recorded| match recorded.kind {
        RecordedKind::Alloc { id, .. } => ids.contains(&id),
        _ => false,
    });
    let reported = |located: &&heaptap_trace::Located| located.packet == number as u64;
    // Harmless ones do not make it leave a packet out.
    let harmless = |found: &heaptap_trace::Located| {
        matches!(
            found.defect.downcast_ref().unwrap(),
            Defect::CodeUnknown { .. }
                | Defect::LocationChange { .. }
                | Defect::PromoteAhead { .. }
                | Defect::TimeBackwards { .. }
                | Defect::CacheCheck { .. }
                | Defect::IdGap { .. }
        )
    };
    let fatal = reading.losses.defects.iter().filter(reported).any(|found| !harmless(found));
    fatal && !recorded && packet.allocations() > 0
}

/// Flips a bit and reads. Returns whether the packet was left out.
fn assert_flip(sound: &Sound, at: usize, bit: u8) -> bool {
    let mut bytes = sound.bytes.clone();
    bytes[at] ^= 1 << bit;
    let context = format!("{}, byte {at}, bit {bit}", sound.name);
    let packets = &sound.trace.packets;
    let number = packets.iter().position(|packet| packet.range.contains(&at)).unwrap();
    let reading = match read(&bytes, Mode::Lenient) {
        Err(_) if number == 0 => return true,
        Err(error) => panic!("{context}: {error}"),
        Ok(reading) => reading,
    };
    assert!(reading.error.is_none(), "{context}: {:?}", reading.error);
    if at.is_multiple_of(4) {
        let pipe = read_through_pipe(&bytes, Mode::Lenient, &[5000]).unwrap();
        assert_eq!(pipe.recorded, reading.recorded, "{context}: a pipe gives the same");
        assert_eq!(pipe.losses.defects, reading.losses.defects, "{context}");
    }
    if !left_out(sound, number, &reading) {
        return false;
    }
    let others = packets.iter().enumerate().filter(|(other, _)| *other != number);
    let want: Vec<&RecordedEvent> = others.flat_map(|(_, packet)| packet.recorded()).collect();
    assert_right_or_lost(&want, &reading.recorded, &context);
    if shown_later(sound, number) {
        let lost = packets[number].allocations();
        assert_eq!(reading.losses.allocations, lost, "{context}: {:?}", reading.losses.defects);
    }
    true
}

fn sounds() -> Vec<Sound> {
    let generated = [Format::V2, Format::V3]
        .map(|format| Sound::of(&format!("generated {format:?}"), &program(format, 200, 20)));
    generated.into_iter().chain(real(18_000)).collect()
}

#[test]
fn anywhere() {
    let mut dice = Dice::seeded(12);
    for sound in sounds() {
        let flips = if sound.name.starts_with("generated") { 500 } else { 40 };
        let mut noticed = 0;
        for _ in 0..flips {
            let at = dice.below(sound.bytes.len() as u64) as usize;
            noticed += usize::from(assert_flip(&sound, at, dice.below(8) as u8));
        }
        println!("{}: {noticed} of {flips} made the reader leave a packet out", sound.name);
        assert!(noticed > 0);
    }
}

/// Each bit of a header, of an event packet and of a location packet.
#[test]
fn in_headers() {
    for sound in sounds().into_iter().take(2) {
        let packets = &sound.trace.packets;
        for number in [packets.len() / 2, packets.len() / 2 + 1] {
            for at in 0..packets[number].header_len {
                for bit in 0..8 {
                    assert_flip(&sound, packets[number].range.start + at, bit);
                }
            }
        }
    }
}
