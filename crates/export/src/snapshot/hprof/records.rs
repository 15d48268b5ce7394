//! Records, big-endian, and the heap dump in segments.

use std::io::{self, Write};

/// The id of an object, a class, a string or a frame; 0 is none. Each kind has its own numbers, but
/// objects and classes share theirs.
pub(super) type Id = u32;

/// Tags of records.
const STRING: u8 = 0x01;
const LOAD_CLASS: u8 = 0x02;
const STACK_FRAME: u8 = 0x04;
const STACK_TRACE: u8 = 0x05;
const HEAP_DUMP_SEGMENT: u8 = 0x1c;
const HEAP_DUMP_END: u8 = 0x2c;

/// The stack trace of objects: none is known.
pub(super) const NO_TRACE: u32 = 0;
/// A segment is written when it has this many bytes.
const SEGMENT: usize = 1 << 20;

/// Writes a file from its header to its end.
pub(super) struct DumpWriter<'a> {
    out: &'a mut dyn Write,
    /// The parts of the heap dump that are not written yet.
    segment: Vec<u8>,
    strings: Id,
}

impl<'a> DumpWriter<'a> {
    pub(super) fn new(out: &'a mut dyn Write, milliseconds: u64) -> io::Result<DumpWriter<'a>> {
        out.write_all(b"JAVA PROFILE 1.0.2\0")?;
        out.write_all(&(size_of::<Id>() as u32).to_be_bytes())?;
        out.write_all(&milliseconds.to_be_bytes())?;
        let mut dump = DumpWriter { out, segment: Vec::new(), strings: 0 };
        // Every object refers to it.
        dump.stack_trace(NO_TRACE, 0, &[])?;
        Ok(dump)
    }

    fn record(&mut self, tag: u8, parts: &[&[u8]]) -> io::Result<()> {
        self.flush_segment()?;
        self.header(tag, parts.iter().map(|part| part.len()).sum())?;
        parts.iter().try_for_each(|part| self.out.write_all(part))
    }

    fn header(&mut self, tag: u8, length: usize) -> io::Result<()> {
        let length = u32::try_from(length).map_err(|_| too_long(length as u64))?;
        self.out.write_all(&[tag])?;
        // Microseconds since the beginning.
        self.out.write_all(&[0; 4])?;
        self.out.write_all(&length.to_be_bytes())
    }

    /// Writes a string and returns its id.
    pub(super) fn string(&mut self, text: &str) -> io::Result<Id> {
        self.strings = next(self.strings)?;
        let id = self.strings;
        self.record(STRING, &[&id.to_be_bytes(), text.as_bytes()])?;
        Ok(id)
    }

    pub(super) fn load_class(&mut self, serial: u32, class: Id, name: Id) -> io::Result<()> {
        let numbers = [serial, class, NO_TRACE, name];
        self.record(LOAD_CLASS, &[&numbers_be(&numbers)])
    }

    /// A frame of a function; the class is that of its thread.
    pub(super) fn stack_frame(&mut self, frame: Id, name: Id, class_serial: u32) -> io::Result<()> {
        let empty = self.string("")?;
        // -1 is an unknown line: the name has it.
        let numbers = [frame, name, empty, empty, class_serial, u32::MAX];
        self.record(STACK_FRAME, &[&numbers_be(&numbers)])
    }

    pub(super) fn stack_trace(
        &mut self,
        serial: u32,
        thread: u32,
        frames: &[Id],
    ) -> io::Result<()> {
        let numbers = [serial, thread, frames.len() as u32];
        self.record(STACK_TRACE, &[&numbers_be(&numbers), &numbers_be(frames)])
    }

    /// Adds a part of the heap dump.
    pub(super) fn part(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.segment.len() + bytes.len() > SEGMENT {
            self.flush_segment()?;
        }
        self.segment.extend_from_slice(bytes);
        Ok(())
    }

    /// Adds a part that begins with these bytes and goes on with references, which are given in the
    /// order of their indexes; those between are null.
    pub(super) fn part_with_references(
        &mut self,
        beginning: &[u8],
        count: u64,
        references: &[(u64, Id)],
    ) -> io::Result<()> {
        let length = beginning.len() as u64 + count * size_of::<Id>() as u64;
        if length < SEGMENT as u64 {
            self.part(beginning)?;
            let start = self.segment.len();
            self.segment.resize(start + count as usize * size_of::<Id>(), 0);
            for &(index, id) in references {
                let at = start + index as usize * size_of::<Id>();
                self.segment[at..at + size_of::<Id>()].copy_from_slice(&id.to_be_bytes());
            }
            return Ok(());
        }
        self.begin_long_part(beginning, length)?;
        let mut written = 0;
        for &(index, id) in references {
            self.nulls(index - written)?;
            self.out.write_all(&id.to_be_bytes())?;
            written = index + 1;
        }
        self.nulls(count - written)
    }

    /// Adds a part that begins with these bytes and goes on with zeros.
    pub(super) fn part_with_zeros(&mut self, beginning: &[u8], count: u64) -> io::Result<()> {
        let length = beginning.len() as u64 + count;
        if length < SEGMENT as u64 {
            self.part(beginning)?;
            self.segment.resize(self.segment.len() + count as usize, 0);
            return Ok(());
        }
        self.begin_long_part(beginning, length)?;
        self.zeros(count)
    }

    /// Begins a part of this length that is a segment by itself.
    fn begin_long_part(&mut self, beginning: &[u8], length: u64) -> io::Result<()> {
        self.flush_segment()?;
        let length = usize::try_from(length).map_err(|_| too_long(length))?;
        self.header(HEAP_DUMP_SEGMENT, length)?;
        self.out.write_all(beginning)
    }

    fn nulls(&mut self, count: u64) -> io::Result<()> {
        self.zeros(count * size_of::<Id>() as u64)
    }

    fn zeros(&mut self, count: u64) -> io::Result<()> {
        io::copy(&mut io::Read::take(io::repeat(0), count), self.out)?;
        Ok(())
    }

    fn flush_segment(&mut self) -> io::Result<()> {
        if self.segment.is_empty() {
            return Ok(());
        }
        let segment = std::mem::take(&mut self.segment);
        self.header(HEAP_DUMP_SEGMENT, segment.len())?;
        self.out.write_all(&segment)?;
        self.segment = segment;
        self.segment.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush_segment()?;
        self.header(HEAP_DUMP_END, 0)
    }
}

/// Numbers one behind the other.
pub(super) fn numbers_be(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// The id after this one.
pub(super) fn next(id: Id) -> io::Result<Id> {
    id.checked_add(1).ok_or_else(|| io::Error::other("more ids are needed than HPROF has"))
}

fn too_long(length: u64) -> io::Error {
    io::Error::other(format!(
        "a block takes {length} bytes in HPROF, which allows 4,294,967,295; use --to heapsnapshot"
    ))
}
