//! Opening a trace of any format.
//!
//! The format follows from the first bytes. A new format is a variant of
//! [`FileKind`] and of [`TraceFormat`]; the compiler then finds the three matches
//! here.

use std::io;

use crate::input::Input;
use crate::memtrace::{Merged, Reader};
use crate::model::{EventSource, Limits, Mode, ReadError};
use crate::recognise::FileKind;

/// The formats that can be read.
enum TraceFormat {
    Memtrace,
}

impl TraceFormat {
    /// The format of what an input begins with. The input's position stays.
    fn of(input: &mut impl Input) -> io::Result<TraceFormat> {
        input.fill(FileKind::LONGEST_MAGIC)?;
        Ok(match FileKind::of(input.visible()) {
            Some(FileKind::Memtrace) => TraceFormat::Memtrace,
            // No trace. The memtrace reader reports how the file begins.
            Some(
                FileKind::HeapSnapshot
                | FileKind::Probes
                | FileKind::Gzip
                | FileKind::Zstd
                | FileKind::Xz
                | FileKind::Bzip2,
            )
            | None => TraceFormat::Memtrace,
        })
    }
}

/// Reads a trace of any format in the order of the file.
pub fn open<'a, I: Input + 'a>(
    mut input: I,
    mode: Mode,
    limits: Limits,
) -> Result<Box<dyn EventSource + 'a>, ReadError> {
    Ok(match TraceFormat::of(&mut input)? {
        TraceFormat::Memtrace => Box::new(Reader::open(input, mode, limits)?),
    })
}

/// Reads the events of all domains in the order of time. `reopen` opens the trace
/// from its beginning, as often as the format needs.
pub fn open_in_time_order<'a, I: Input + 'a>(
    mut reopen: impl FnMut() -> io::Result<I>,
    mode: Mode,
    limits: Limits,
) -> Result<Box<dyn EventSource + 'a>, ReadError> {
    let mut first = reopen()?;
    let format = TraceFormat::of(&mut first)?;
    let mut first = Some(first);
    let inputs = || first.take().map_or_else(&mut reopen, Ok);
    Ok(match format {
        TraceFormat::Memtrace => Box::new(Merged::open(inputs, mode, limits)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Stream;
    use crate::memtrace::Defect;

    const TRACE: &[u8] = include_bytes!("../tests/data/tiny.v2.ctf");

    /// The times of all events.
    fn times(source: &mut dyn EventSource) -> Vec<u64> {
        std::iter::from_fn(|| source.next_located().unwrap().map(|(event, _)| event.time)).collect()
    }

    #[test]
    fn a_trace_is_opened_by_its_first_bytes() {
        let (mode, limits) = (Mode::Strict, Limits::default());
        let mut reader = Reader::open(TRACE, mode, limits).unwrap();
        let expected = times(&mut reader);
        assert!(!expected.is_empty());
        let mut opened = open(TRACE, mode, limits).unwrap();
        assert_eq!(times(&mut *opened), expected);
        assert_eq!(opened.info(), reader.info());
        let mut piped = open(Stream::new(TRACE), mode, limits).unwrap();
        assert_eq!(times(&mut *piped), expected);
    }

    #[test]
    fn the_order_of_time_reads_each_input_from_its_beginning() {
        let mut opened = 0;
        let reopen = || {
            opened += 1;
            Ok(TRACE)
        };
        let mut merged = open_in_time_order(reopen, Mode::Strict, Limits::default()).unwrap();
        let mut reader = Reader::from_slice(TRACE, Mode::Strict).unwrap();
        // The trace has one domain.
        assert_eq!(times(&mut *merged), times(&mut reader));
        assert_eq!(opened, 2, "one pass over all, one for the domain");
    }

    #[test]
    fn other_files_are_reported_with_their_first_bytes() {
        for (bytes, defect) in [
            (&[0; 66][..], Defect::Magic { found: 0 }),
            (&[0x28, 0xb5, 0x2f, 0xfd].repeat(20), Defect::Magic { found: 0xfd2f_b528 }),
            (b"", Defect::Empty),
        ] {
            let opened = open(bytes, Mode::Lenient, Limits::default());
            let Err(ReadError::Defect(found)) = opened.map(drop) else { panic!("{bytes:x?}") };
            assert_eq!(found.defect, defect);
            assert_eq!(found.offset, 0);
        }
    }
}
