//! The encoder's public face: blocks, errors and the end.

use heaptap_codec::Buffer;

use super::blocks::{Misuse, Refusal};
use super::record_state::RecordState;
use super::workspace::Workspace;
use crate::chunk::{ChunkKind, Stream, file_header, pack};
use crate::totals::Totals;

/// Where an encoder writes: a file descriptor, a buffer.
pub trait Sink {
    /// Writes all of the bytes, or returns the `errno` of what went wrong.
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), i32>;
}

impl<S: Sink> Sink for &mut S {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), i32> {
        (**self).write_all(bytes)
    }
}

impl Sink for Vec<u8> {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), i32> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// `EINVAL`: the calls are in a wrong order, or an address is not a multiple of 8.
pub(super) const MISUSE: i32 = 22;
/// `EOVERFLOW`: a buffer was too small, a defect of the encoder.
const OVERFLOW: i32 = 75;

/// Writes a snapshot to a sink.
///
/// Nothing is allocated, nothing panics, and no call needs more than 1 KiB of stack. After
/// the first error every call returns it. The error is the sink's `errno`, or `EINVAL` for
/// calls that make no sense.
///
/// Blocks come in ascending order of their addresses within a segment. Of the rest any
/// order will do, also between two blocks or inside of one; it is cheapest to write many
/// records of one kind in a row.
///
/// ```
/// use heaptap_heap::{Encoder, MetaKey, Root, RootOwner, Segment, SegmentKind, Workspace};
///
/// # fn main() -> Result<(), i32> {
/// let mut workspace = Box::new(Workspace::new());
/// let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
/// encoder.meta(MetaKey::RUNTIME, b"OCaml 4.14.1 native")?;
/// encoder.segment(Segment { kind: SegmentKind::Major, start: 0x1000, words: 6 })?;
/// encoder.begin_block(0x1008, 2, 0)?;
/// encoder.pointer(1, 0x1020)?;
/// encoder.end_block()?;
/// encoder.begin_block(0x1020, 2, 252)?;
/// encoder.end_block()?;
/// encoder.root(Root { owner: RootOwner::GlobalC { slot: 0x4000 }, target: 0x1008 })?;
/// let (totals, file) = encoder.finish()?;
/// assert_eq!((totals.blocks, totals.words), (2, 4));
/// # assert!(file.starts_with(&heaptap_heap::MAGIC));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Encoder<'w, S: Sink> {
    pub(super) sink: S,
    pub(super) workspace: &'w mut Workspace,
    /// The first error; 0 for none.
    error: i32,
    pub(super) totals: Totals,
    pub(super) records: RecordState,
}

impl<'w, S: Sink> Encoder<'w, S> {
    /// Writes the header of the file. An error is returned by the next call.
    ///
    /// `header_words` is the usual distance from the end of a block to the next one's address.
    pub fn new(sink: S, workspace: &'w mut Workspace, header_words: u32) -> Self {
        let mut encoder = Encoder::resume(sink, workspace, header_words, Totals::default());
        if let Err(error) = encoder.sink.write_all(&file_header()) {
            encoder.error = error.max(1);
        }
        encoder
    }

    /// Goes on with a file that [`Encoder::suspend`] left, whose totals are given. The sink
    /// appends to it.
    pub fn resume(
        sink: S,
        workspace: &'w mut Workspace,
        header_words: u32,
        totals: Totals,
    ) -> Self {
        workspace.blocks.reset(header_words);
        workspace.records.clear();
        workspace.codes.clear();
        workspace.recent_codes.fill(0);
        let records = RecordState::default();
        Encoder { sink, workspace, error: 0, totals, records }
    }

    /// What has been taken so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The first error, if there was one.
    #[inline]
    pub fn state(&self) -> Result<(), i32> {
        if self.error == 0 { Ok(()) } else { Err(self.error) }
    }

    #[cold]
    pub(super) fn fail<T>(&mut self, error: i32) -> Result<T, i32> {
        if self.error == 0 {
            self.error = error.max(1);
        }
        Err(self.error)
    }

    /// Begins a block: the address of its first field, its words without the header, its tag.
    #[inline]
    pub fn begin_block(&mut self, address: u64, words: u64, tag: u32) -> Result<(), i32> {
        self.state()?;
        if let Err(refusal) = self.workspace.blocks.begin(address, words, tag) {
            self.make_room(refusal)?;
            let again = self.workspace.blocks.begin(address, words, tag);
            self.take(again)?;
        }
        self.totals.blocks += 1;
        self.totals.words = self.totals.words.saturating_add(words);
        Ok(())
    }

    /// A field that points to a block. Fields ascend.
    #[inline]
    pub fn pointer(&mut self, field: u64, target: u64) -> Result<(), i32> {
        self.state()?;
        if let Err(refusal) = self.workspace.blocks.pointer(field, target) {
            self.make_room(refusal)?;
            let again = self.workspace.blocks.pointer(field, target);
            self.take(again)?;
        }
        self.totals.pointers += 1;
        Ok(())
    }

    /// A field that holds a code address, which is listed too, as by `code_seen`. Fields ascend.
    pub fn code(&mut self, field: u64, address: u64) -> Result<(), i32> {
        self.state()?;
        if let Err(refusal) = self.workspace.blocks.code(field, address) {
            self.make_room(refusal)?;
            let again = self.workspace.blocks.code(field, address);
            self.take(again)?;
        }
        self.totals.codes += 1;
        self.code_seen(address)
    }

    /// The block is a custom one: the address of its operations, and its bytes outside the heap.
    pub fn custom(&mut self, operations: u64, outside_bytes: u64) -> Result<(), i32> {
        self.state()?;
        if let Err(refusal) = self.workspace.blocks.custom(operations, outside_bytes) {
            self.make_room(refusal)?;
            let again = self.workspace.blocks.custom(operations, outside_bytes);
            self.take(again)?;
        }
        self.totals.customs += 1;
        self.totals.outside_bytes = self.totals.outside_bytes.saturating_add(outside_bytes);
        Ok(())
    }

    /// The beginning of the block's contents. What is beyond [`MAX_STRING`](crate::MAX_STRING)
    /// bytes is left out.
    pub fn string(&mut self, contents: &[u8]) -> Result<(), i32> {
        self.state()?;
        if let Err(refusal) = self.workspace.blocks.string(contents) {
            self.make_room(refusal)?;
            let again = self.workspace.blocks.string(contents);
            self.take(again)?;
        }
        self.totals.strings += 1;
        Ok(())
    }

    /// Ends the block.
    #[inline]
    pub fn end_block(&mut self) -> Result<(), i32> {
        self.state()?;
        match self.workspace.blocks.end() {
            Ok(()) => Ok(()),
            Err(Misuse) => self.fail(MISUSE),
        }
    }

    #[cold]
    fn make_room(&mut self, refusal: Refusal) -> Result<(), i32> {
        match refusal {
            Refusal::Full => self.flush_blocks(),
            Refusal::Misuse => self.fail(MISUSE),
        }
    }

    fn take(&mut self, result: Result<(), Refusal>) -> Result<(), i32> {
        match result {
            Ok(()) => Ok(()),
            Err(Refusal::Misuse) => self.fail(MISUSE),
            Err(Refusal::Full) => self.fail(OVERFLOW),
        }
    }

    fn flush_blocks(&mut self) -> Result<(), i32> {
        // Segments come before their blocks.
        self.flush_records()?;
        if self.workspace.blocks.is_empty() {
            return Ok(());
        }
        let Workspace { blocks, chunk, positions, .. } = &mut *self.workspace;
        blocks.finish();
        let overflowed = blocks.overflowed();
        let length = pack(ChunkKind::Blocks, &blocks.streams(), chunk, positions);
        blocks.clear();
        self.write(length.filter(|_| !overflowed))
    }

    /// Writes the chunk that was packed.
    pub(super) fn write(&mut self, length: Option<usize>) -> Result<(), i32> {
        let Some(chunk) = length.and_then(|length| self.workspace.chunk.get(..length)) else {
            return self.fail(OVERFLOW);
        };
        match self.sink.write_all(chunk) {
            Ok(()) => Ok(()),
            Err(error) => self.fail(error),
        }
    }

    /// Writes what waits, and the end. Returns what was written, and the sink.
    pub fn finish(self) -> Result<(Totals, S), i32> {
        self.end(ChunkKind::End)
    }

    /// Writes what waits, and the totals but no end. [`Encoder::resume`] goes on, for instance
    /// in another process, which may allocate and find names. Until then the file counts as
    /// cut short.
    pub fn suspend(self) -> Result<(Totals, S), i32> {
        self.end(ChunkKind::Totals)
    }

    fn end(mut self, kind: ChunkKind) -> Result<(Totals, S), i32> {
        self.state()?;
        if self.workspace.blocks.is_open() || self.records.is_open() {
            return self.fail(MISUSE);
        }
        self.flush_blocks()?;
        self.flush_codes()?;
        let Workspace { records, chunk, positions, .. } = &mut *self.workspace;
        put_totals(records, &self.totals);
        let length = pack(kind, &[Stream::new(records.bytes())], chunk, positions);
        self.write(length)?;
        Ok((self.totals, self.sink))
    }
}

/// Encodes totals for [`Totals::decode`].
pub(crate) fn put_totals<const N: usize>(buffer: &mut Buffer<N>, totals: &Totals) {
    let numbers = totals.named();
    buffer.put_varint(numbers.len() as u64);
    for (_, number) in numbers {
        buffer.put_varint(number);
    }
}
