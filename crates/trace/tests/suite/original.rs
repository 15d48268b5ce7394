//! Traces of the original writer: read as the oracle reads them, and written
//! again to the same bytes.

use heaptap_trace::EventSource as _;
use heaptap_trace::{Encoder, EventKind, Format, Mode, Reader, Version};

use crate::reading::{read_locations, read_strictly, read_through_pipe};
use crate::traces::{real, real_files};

#[test]
fn they_have_no_defect_and_the_events_that_the_oracle_reads() {
    for sound in real(400_000) {
        let reading = read_strictly(&sound.bytes);
        assert!(reading.losses.is_clean(), "{}", sound.name);
        assert!(sound.trace.recorded().eq(&reading.recorded), "{}", sound.name);
        assert!(reading.recorded.len() > 100, "{}", sound.name);
        for (code, locations) in read_locations(&sound.bytes) {
            assert_eq!(Some(&locations), sound.trace.locations.get(&code), "{}", sound.name);
        }
        let piped = read_through_pipe(&sound.bytes, Mode::Strict, &[4096, 0, 1, 65_536]).unwrap();
        assert_eq!(piped.recorded, reading.recorded, "{}", sound.name);
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
                let (block, frames) = (allocation.block(), allocation.backtrace.suffix());
                encoder.domain(domain).renumber(time, allocation.id).unwrap();
                let id = encoder.domain(domain).alloc(time, block, frames, &mut locate).unwrap();
                assert_eq!(id, allocation.id);
            }
            EventKind::Promote(id) => {
                encoder.domain(domain).promote(time, id, &mut locate).unwrap();
            }
            EventKind::Collect(id) => {
                encoder.domain(domain).collect(time, id, &mut locate).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    encoder.finish(&mut locate).unwrap()
}

#[test]
fn written_again_they_have_the_same_bytes() {
    for (name, bytes) in real_files() {
        let again = written_again(&bytes);
        match bytes[28] {
            // Version 1 is not written; as version 2 it has the same events.
            1 => {
                assert_eq!(
                    read_strictly(&again).recorded,
                    read_strictly(&bytes).recorded,
                    "{name}"
                );
            }
            _ => assert!(again == bytes, "{name}"),
        }
    }
}
