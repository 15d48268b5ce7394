//! Nothing is allocated for an event once warm, on either side.

use std::io::{self, Write};

use heaptap_trace::TraceReader as _;
use heaptap_trace::{
    Block, Encoder, Format, Frames, Input, Locate, Location, LocationList, Mode, Reader, Source,
    TraceInfo,
};

use crate::account::calls;

/// Takes packets and keeps nothing.
struct Sink(u64);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Locations in 50 files, with names of a fixed length.
struct Fixed;

impl Locate for Fixed {
    fn locate(&mut self, code: u64, list: &mut LocationList) {
        let mut file = *b"file00.ml";
        file[4] += (code % 50 / 10) as u8;
        file[5] += (code % 10) as u8;
        list.add(Location {
            file: &file,
            line: 1,
            start_char: 0,
            end_char: 9,
            definition: &file[..6],
        });
    }
}

fn program_info() -> TraceInfo {
    TraceInfo {
        sample_rate: 1e-3,
        word_size: 64,
        executable: b"exe".to_vec(),
        host: b"host".to_vec(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time: 0,
        domain: 0,
    }
}

/// One round of a program whose 20,000 codes do not all fit the cache: misses,
/// hits, predictions, locations and evictions come in every round.
fn round<W: Write>(encoder: &mut Encoder<W>, clock: &mut u64, stack: &mut Vec<u64>) {
    for turn in 0..10_000_u64 {
        let domain = (turn % 2) as u16;
        *clock += 100;
        stack.truncate((turn % 13) as usize);
        stack.extend([1 + turn % 7, 100 + turn * 2, 100 + turn * 2 + 1]);
        let block = Block { length: turn % 40, samples: 1, source: Source::Minor };
        let frames = Frames::Whole(stack);
        let id = encoder.domain(domain).alloc(*clock, block, frames, &mut Fixed).unwrap();
        if turn % 3 == 0 {
            encoder.domain(domain).collect(*clock, id, &mut Fixed).unwrap();
        }
    }
}

#[test]
fn a_warm_encoder_allocates_nothing() {
    let mut encoder = Encoder::new(Sink(0), Format::V3, &program_info()).unwrap();
    let (mut clock, mut stack) = (0, Vec::with_capacity(64));
    for _ in 0..2 {
        round(&mut encoder, &mut clock, &mut stack);
    }
    let calls = calls(|| {
        for _ in 0..3 {
            round(&mut encoder, &mut clock, &mut stack);
        }
    });
    assert_eq!(calls, 0, "for 40,000 events");
    assert!(encoder.finish(&mut Fixed).unwrap().0 > 1_000_000);
}

/// Reads up to a place in the file; how many events.
fn read_until<I: Input>(reader: &mut Reader<I>, offset: u64) -> u64 {
    let mut events = 0;
    while reader.offset() < offset {
        assert!(reader.next_event().unwrap().is_some());
        events += 1;
    }
    events
}

#[test]
fn a_warm_decoder_allocates_nothing() {
    let mut encoder = Encoder::new(Vec::new(), Format::V3, &program_info()).unwrap();
    let (mut clock, mut stack) = (0, Vec::with_capacity(64));
    for _ in 0..12 {
        round(&mut encoder, &mut clock, &mut stack);
    }
    let bytes = encoder.finish(&mut Fixed).unwrap();
    // By then there was a packet of the largest size.
    let warm = bytes.len() as u64 / 4 * 3;
    // The last packet of an input is copied; not a matter of every event.
    let end = bytes.len() as u64 - 40_000;
    let mut slice = Reader::from_slice(&bytes, Mode::Strict).unwrap();
    let mut stream = Reader::new(&bytes[..], Mode::Strict).unwrap();
    read_until(&mut slice, warm);
    read_until(&mut stream, warm);
    let mut events = 0;
    assert_eq!(calls(|| events = read_until(&mut slice, end)), 0);
    assert_eq!(calls(|| events += read_until(&mut stream, end)), 0);
    assert!(events > 50_000, "{events} events");
}
