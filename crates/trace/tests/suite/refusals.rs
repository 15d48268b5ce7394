//! What the encoder refuses: nothing of it is in the file, and the trace goes
//! on as if it had not been asked.

use heaptap_trace::{Block, Code, Encoder, Format, Frames, Source, TraceInfo, WriteError};

use crate::corners::SMALL;
use crate::debug_info::DebugInfo;
use crate::generate::plain_info;
use crate::reading::read_strictly;

const START: u64 = 1_600_000_000_000_000;
const WHOLE: Frames<'static> = Frames::Whole(&[1, 2, 3]);

/// Writes a trace during which `refused` is asked for what cannot be.
fn assert_refused(
    format: Format,
    refused: impl Fn(&mut Encoder<Vec<u8>>, &DebugInfo) -> WriteError,
) {
    let debug_info = DebugInfo { files: 3, ..DebugInfo::default() };
    let write = |ask: bool| {
        let mut encoder = Encoder::new(Vec::new(), format, &plain_info()).unwrap();
        for turn in 0..5 {
            encoder.domain(0).alloc(START + 10 * turn, SMALL, WHOLE, &mut &debug_info).unwrap();
            if ask {
                refused(&mut encoder, &debug_info);
            }
        }
        encoder.finish(&mut &debug_info).unwrap()
    };
    let bytes = write(true);
    assert!(bytes == write(false), "a refusal leaves no trace");
    assert_eq!(read_strictly(&bytes).recorded.len(), 5);
}

fn alloc(
    encoder: &mut Encoder<Vec<u8>>,
    time: u64,
    block: Block,
    frames: Frames<'_>,
) -> WriteError {
    encoder.domain(0).alloc(time, block, frames, &mut &DebugInfo::default()).unwrap_err()
}

#[test]
fn blocks() {
    for length in [1 << 62, u64::MAX] {
        assert_refused(Format::V2, |encoder, _| {
            let error = alloc(encoder, START + 100, Block { length, ..SMALL }, WHOLE);
            assert!(matches!(error, WriteError::Length(found) if found == length));
            error
        });
    }
    for samples in [0, 4, u64::MAX] {
        assert_refused(Format::V2, |encoder, _| {
            let error = alloc(encoder, START + 100, Block { samples, ..SMALL }, WHOLE);
            assert!(matches!(error, WriteError::Samples(found) if found == samples));
            error
        });
    }
}

#[test]
fn stacks() {
    for code in [0, 1 << 62, 1 << 63, heaptap_trace::LOST_FRAME | 1] {
        let stacks: [&[Code]; 3] = [&[code], &[1, 2, 3, code], &[1, 2, code, 3]];
        for stack in stacks {
            assert_refused(Format::V2, |encoder, _| {
                let error = alloc(encoder, START + 100, SMALL, Frames::Whole(stack));
                assert!(matches!(error, WriteError::Code(found) if found == code));
                error
            });
        }
    }
    for common_prefix in [1 << 32, u64::MAX] {
        assert_refused(Format::V2, |encoder, _| {
            let frames = Frames::Suffix { common_prefix, new: &[] };
            let error = alloc(encoder, START + 100, SMALL, frames);
            assert!(matches!(error, WriteError::CommonPrefix(found) if found == common_prefix));
            error
        });
    }
}

#[test]
fn times() {
    for time in [0, START - 1, i64::MAX as u64 + 1, u64::MAX] {
        assert_refused(Format::V3, |encoder, mut debug_info| {
            let refused = |error: &WriteError| matches!(error, WriteError::Time(at) if *at == time);
            assert!(refused(&alloc(encoder, time, SMALL, WHOLE)));
            assert!(refused(&encoder.domain(0).promote(time, 0, &mut debug_info).unwrap_err()));
            let new_domain =
                encoder.domain(9).alloc(time, SMALL, WHOLE, &mut debug_info).unwrap_err();
            assert!(refused(&new_domain));
            encoder.domain(0).collect(time, 0, &mut debug_info).unwrap_err()
        });
    }
}

#[test]
fn objects_and_domains() {
    for id in [5, 6, 1 << 62, u64::MAX] {
        assert_refused(Format::V2, |encoder, mut debug_info| {
            let refused =
                |error: &WriteError| matches!(error, WriteError::Id(found) if *found == id);
            let error = encoder.domain(0).promote(START + 100, id, &mut debug_info).unwrap_err();
            assert!(refused(&error));
            let error = encoder.domain(0).collect(START + 100, id, &mut debug_info).unwrap_err();
            assert!(refused(&error));
            error
        });
    }
    assert_refused(Format::V2, |encoder, mut debug_info| {
        let error =
            encoder.domain(1).alloc(START + 100, SMALL, WHOLE, &mut debug_info).unwrap_err();
        assert!(matches!(error, WriteError::Domain(1)));
        error
    });
}

/// A domain that could not be given its first event is not in the trace.
#[test]
fn a_domain_of_refused_events_does_not_begin() {
    assert_refused(Format::V3, |encoder, mut debug_info| {
        let zero = Frames::Whole(&[0]);
        let error = encoder.domain(7).alloc(START + 100, SMALL, zero, &mut debug_info).unwrap_err();
        assert!(matches!(error, WriteError::Code(0)));
        let error = encoder.domain(8).collect(START + 100, u64::MAX, &mut debug_info).unwrap_err();
        assert!(matches!(error, WriteError::Id(u64::MAX)));
        error
    });
}

#[test]
fn renumbering() {
    for first in [0, 1 << 62, u64::MAX] {
        assert_refused(Format::V3, |encoder, _| {
            encoder.domain(0).renumber(START + 100, first).unwrap_err()
        });
    }
}

/// No other domain takes the ids that a domain was renumbered to.
#[test]
fn renumbered_ids_are_kept() {
    let debug_info = DebugInfo::default();
    let mut encoder = Encoder::new(Vec::new(), Format::V3, &plain_info()).unwrap();
    encoder.domain(0).renumber(START, 20_000).unwrap();
    let mut ids = Vec::new();
    for domain in [1, 2, 3, 0] {
        ids.push(encoder.domain(domain).alloc(START, SMALL, WHOLE, &mut &debug_info).unwrap());
    }
    assert_eq!(ids[3], 20_000);
    assert!(!ids[..3].contains(&20_000), "{ids:?}");
    read_strictly(&encoder.finish(&mut &debug_info).unwrap());
}

/// The largest id cannot be given out: a packet's header has the id after it.
#[test]
fn ids_end() {
    let debug_info = DebugInfo::default();
    for first in [(1 << 62) - 3, (1 << 62) - 2, (1 << 62) - 1] {
        let mut encoder = Encoder::new(Vec::new(), Format::V3, &plain_info()).unwrap();
        let renumbered = encoder.domain(0).renumber(START, first);
        let mut written = 0;
        while renumbered.is_ok() && written < 5 {
            match encoder.domain(0).alloc(START, SMALL, WHOLE, &mut &debug_info) {
                Ok(_) => written += 1,
                Err(error) => {
                    assert!(matches!(error, WriteError::Id(_)), "{error}");
                    break;
                }
            }
        }
        assert!(written < 3);
        let bytes = encoder.finish(&mut &debug_info).unwrap();
        let reading = crate::reading::read_leniently(&bytes);
        assert_eq!(reading.recorded.len(), written, "{:?}", reading.losses.defects);
    }
}

#[test]
fn infos() {
    let good = plain_info();
    let bad = [
        TraceInfo { sample_rate: 0.0, ..good.clone() },
        TraceInfo { sample_rate: 1.5, ..good.clone() },
        TraceInfo { sample_rate: f64::NAN, ..good.clone() },
        TraceInfo { word_size: 16, ..good.clone() },
        TraceInfo { start_time: i64::MAX as u64 + 1, ..good.clone() },
        TraceInfo { domain: 1, ..good.clone() },
    ];
    for info in bad {
        let error = Encoder::new(Vec::new(), Format::V2, &info).err();
        assert!(matches!(error, Some(WriteError::Info)), "{info:?}");
    }
    let error = Encoder::new(Full, Format::V2, &good).err();
    assert!(matches!(error, Some(WriteError::Io(_))));
}

/// A disk without room.
struct Full;

impl std::io::Write for Full {
    fn write(&mut self, _bytes: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Accepts `room` bytes and then fails, possibly inside a packet.
struct Filling {
    room: usize,
    written: Vec<u8>,
}

impl std::io::Write for &mut Filling {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = bytes.len().min(self.room - self.written.len());
        if count == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.written.extend(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What was written before the disk was full is a trace.
#[test]
fn a_full_disk_leaves_a_trace_up_to_its_last_whole_packet() {
    let debug_info = DebugInfo { files: 3, ..DebugInfo::default() };
    for room in [200, 500, 5000, 40_000] {
        let mut disk = Filling { room, written: Vec::new() };
        let mut encoder = Encoder::new(&mut disk, Format::V2, &plain_info()).unwrap();
        let mut refused = false;
        for turn in 0..20_000_u64 {
            let block = Block { length: turn % 30, samples: 1, source: Source::Minor };
            let frames = [1 + turn % 300, 1 + turn % 1000];
            let frames = Frames::Whole(&frames);
            match encoder.domain(0).alloc(START + turn, block, frames, &mut &debug_info) {
                Ok(_) => {}
                Err(WriteError::Io(_)) => {
                    refused = true;
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(refused);
        drop(encoder);
        let reading = crate::reading::read_leniently(&disk.written);
        assert_eq!(reading.losses.defect_count, 0, "{:?}", reading.losses.defects);
    }
}
