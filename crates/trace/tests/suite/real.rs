//! The real traces: read as the oracle reads them, and written again to the
//! same bytes.

use heaptap_trace::{Block, Encoder, EventKind, Format, Frames, Mode, Reader, Version};

use crate::reading::{read_places, read_strictly, read_through_pipe};
use crate::traces::{real, real_files};

#[test]
fn they_have_no_defect_and_say_what_the_oracle_says() {
    for sound in real(400_000) {
        let reading = read_strictly(&sound.bytes);
        assert!(reading.losses.is_clean(), "{}", sound.name);
        assert!(sound.trace.told().eq(&reading.told), "{}", sound.name);
        assert!(reading.told.len() > 100, "{}", sound.name);
        for (code, places) in read_places(&sound.bytes) {
            assert_eq!(Some(&places), sound.trace.places.get(&code), "{}", sound.name);
        }
        let piped = read_through_pipe(&sound.bytes, Mode::Strict, &[4096, 0, 1, 65_536]).unwrap();
        assert_eq!(piped.told, reading.told, "{}", sound.name);
    }
}

/// Decodes a trace and encodes its events again.
pub(crate) fn written_again(bytes: &[u8]) -> Vec<u8> {
    let mut table = Reader::from_slice(bytes, Mode::Strict).unwrap();
    while table.next_event().unwrap().is_some() {}
    let mut locate = table.locations();
    let mut reader = Reader::from_slice(bytes, Mode::Strict).unwrap();
    let format = if reader.version() == Version::V3 { Format::V3 } else { Format::V2 };
    let mut encoder = Encoder::new(Vec::new(), format, reader.info()).unwrap();
    while let Some(event) = reader.next_event().unwrap() {
        let (domain, time) = (event.domain, event.time);
        match event.kind {
            EventKind::Alloc(allocation) => {
                let block = Block {
                    length: allocation.length,
                    samples: allocation.samples,
                    source: allocation.source,
                };
                let backtrace = allocation.backtrace;
                let frames =
                    Frames::Suffix { common_prefix: backtrace.common_prefix, new: backtrace.new };
                encoder.renumber(domain, time, allocation.id).unwrap();
                let id = encoder.alloc(domain, time, block, frames, &mut locate).unwrap();
                assert_eq!(id, allocation.id);
            }
            EventKind::Promote(id) => encoder.promote(domain, time, id, &mut locate).unwrap(),
            EventKind::Collect(id) => encoder.collect(domain, time, id, &mut locate).unwrap(),
        }
    }
    encoder.finish(&mut locate).unwrap()
}

#[test]
fn written_again_they_have_the_same_bytes() {
    for (name, bytes) in real_files() {
        let again = written_again(&bytes);
        match bytes[28] {
            // Version 1 is not written; as version 2 it tells the same.
            1 => assert_eq!(read_strictly(&again).told, read_strictly(&bytes).told, "{name}"),
            _ => assert!(again == bytes, "{name}"),
        }
    }
}
