//! The formats of traces: which there are, and what reads and writes each.
//!
//! The only place that knows both. A new format is a folder beside `memtrace`, a kind of file
//! in [`FileKind`], a [`TraceFormat`] with what can be said in it, and a line in each function
//! here: the compiler finds them.

use std::io::{self, Read, Write};

use crate::input::{Input, Stream};
use crate::memtrace::{self, Encoder, Format, Merged, Reader};
use crate::model::{
    Completion, EventSink, EventSource, Limits, LiveSource, Mode, ReadError, TraceFormat,
    TraceHead, TraceInfo, TraceReader, WriteError,
};
use crate::recognise::FileKind;

/// What can read a file.
enum Family {
    Memtrace,
}

impl Family {
    /// What reads a file of this kind.
    fn of(kind: Option<FileKind>) -> Option<Family> {
        match kind? {
            FileKind::Memtrace => Some(Family::Memtrace),
            FileKind::HeapSnapshot
            | FileKind::Probes
            | FileKind::Series
            | FileKind::Gzip
            | FileKind::Zstd
            | FileKind::Xz
            | FileKind::Bzip2 => None,
        }
    }

    /// What reads an input, by what it begins with. Its position stays. If that is no trace, the
    /// memtrace reader reports how it begins.
    fn of_input(input: &mut impl Input) -> io::Result<Family> {
        input.fill(FileKind::LONGEST_MAGIC)?;
        Ok(Family::of(FileKind::of(input.visible())).unwrap_or(Family::Memtrace))
    }
}

impl FileKind {
    /// Whether it is a trace.
    pub fn is_trace(self) -> bool {
        Family::of(Some(self)).is_some()
    }
}

impl TraceHead {
    /// Reads the head of a trace; `None` if the bytes are too few or do not begin like one.
    pub fn of(bytes: &[u8]) -> Option<TraceHead> {
        match Family::of(FileKind::of(bytes))? {
            Family::Memtrace => memtrace::head(bytes),
        }
    }
}

/// Reads a trace of any format in the order of the file.
pub fn open<'a, I: Input + 'a>(
    mut input: I,
    mode: Mode,
    limits: Limits,
) -> Result<Box<dyn TraceReader + 'a>, ReadError> {
    Ok(match Family::of_input(&mut input)? {
        Family::Memtrace => Box::new(Reader::open(input, mode, limits)?),
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
    let family = Family::of_input(&mut first)?;
    let mut first = Some(first);
    let inputs = || first.take().map_or_else(&mut reopen, Ok);
    Ok(match family {
        Family::Memtrace => Box::new(Merged::open(inputs, mode, limits)?),
    })
}

/// Reads a trace while it is written, once its first bytes are there.
pub(crate) fn tail<'a, R: Read + 'a>(
    mut stream: Stream<R>,
    mode: Mode,
    limits: Limits,
) -> Result<Box<dyn LiveSource + 'a>, ReadError> {
    Ok(match Family::of_input(&mut stream)? {
        Family::Memtrace => Box::new(memtrace::Tail::new(stream, mode, limits)),
    })
}

/// Begins a trace in this format, or in that of [its copies](TraceFormat::of_copy).
pub fn create<'a, W: Write + 'a>(
    out: W,
    format: TraceFormat,
    info: &TraceInfo,
    completion: Completion,
) -> Result<Box<dyn EventSink<Output = W> + 'a>, WriteError> {
    Ok(match format {
        TraceFormat::Memtrace1 | TraceFormat::Memtrace2 | TraceFormat::Memtrace3 => {
            Box::new(Encoder::begin(out, Format::of(format), info, completion)?)
        }
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
