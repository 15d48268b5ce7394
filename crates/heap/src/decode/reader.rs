//! The reader's public face.

use std::io::Read;

use heaptap_codec::Cursor;

use super::blocks::BlockDecoder;
use super::error::{Defect, ReadError};
use super::input::ChunkInput;
use super::records::RecordDecoder;
use crate::chunk::ChunkKind;
use crate::model::Item;
use crate::totals::Totals;

/// How a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The end has not been read yet.
    Unknown,
    /// The file is complete.
    Complete,
    /// The file has no end: its writer was interrupted or is not done yet. Everything that
    /// was returned is valid.
    CutShort {
        /// How many bytes are valid.
        valid: u64,
    },
}

/// Reads a snapshot.
///
/// Memory is bounded by the size of a chunk, whatever the file says.
///
/// ```
/// use heaptap_heap::{Completion, Item, Reader};
/// # use heaptap_heap::{Encoder, Workspace};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut workspace = Box::new(Workspace::new());
/// # let (_, file) = Encoder::new(Vec::new(), &mut workspace, 1).finish().unwrap();
/// # let file = &file[..];
/// let mut reader = Reader::new(file)?;
/// let mut words = 0;
/// while let Some(item) = reader.next_item()? {
///     if let Item::Block(block) = item
///         && block.is_first
///     {
///         words += block.words;
///     }
/// }
/// assert_eq!(reader.completion(), Completion::Complete);
/// println!("{words} words");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    chunks: ChunkInput<R>,
    /// The kind of the chunk, if it holds items.
    kind: Option<ChunkKind>,
    /// Whether chunks of blocks are passed over: their checksums are verified, no more.
    leaves_blocks_out: bool,
    blocks: BlockDecoder,
    records: RecordDecoder,
    completion: Completion,
    totals: Option<Totals>,
    skipped: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the header of the file. The reader reads in small steps too: give it a buffered input.
    pub fn new(input: R) -> Result<Reader<R>, ReadError> {
        Ok(Reader {
            chunks: ChunkInput::new(input)?,
            kind: None,
            leaves_blocks_out: false,
            blocks: BlockDecoder::new(),
            records: RecordDecoder::default(),
            completion: Completion::Unknown,
            totals: None,
            skipped: 0,
        })
    }

    /// The same without blocks, which take most of the time.
    pub(super) fn without_blocks(input: R) -> Result<Reader<R>, ReadError> {
        Ok(Reader { leaves_blocks_out: true, ..Reader::new(input)? })
    }

    /// How the file ends; known when [`Reader::next_item`] has returned `None`.
    pub fn completion(&self) -> Completion {
        self.completion
    }

    /// What the writer counted; known at the end, unless the file is cut short.
    pub fn totals(&self) -> Option<&Totals> {
        self.totals.as_ref()
    }

    /// How many chunks were skipped because a later version wrote them.
    pub fn skipped_chunks(&self) -> u64 {
        self.skipped
    }

    /// The number of the chunk of the item returned last, from 1, and where it begins in the file.
    pub fn position(&self) -> (u64, u64) {
        (self.chunks.number, self.chunks.offset)
    }

    /// Returns the next item; `None` at the end. After an error the rest cannot be read.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, ReadError> {
        while !self.has_item()? {
            if self.completion != Completion::Unknown {
                return Ok(None);
            }
            self.next_chunk()?;
        }
        let Some(kind) = self.kind else { return Ok(None) };
        let (number, offset) = self.position();
        let streams = &self.chunks.streams;
        let item = match kind {
            ChunkKind::Blocks => self.blocks.next(streams).map(Item::Block),
            kind => streams.first().and_then(|stream| self.records.next(kind, stream)),
        };
        let malformed = ReadError { defect: Defect::Malformed, chunk: number, offset };
        if item.is_none() {
            self.kind = None;
        }
        item.map(Some).ok_or(malformed)
    }

    /// Whether the chunk holds another item.
    fn has_item(&mut self) -> Result<bool, ReadError> {
        let streams = &self.chunks.streams;
        let is_done = match self.kind {
            None => return Ok(false),
            Some(ChunkKind::Blocks) => self.blocks.is_done(streams),
            Some(_) => streams.first().map(|stream| self.records.is_done(stream)),
        };
        match is_done {
            Some(false) => Ok(true),
            Some(true) => {
                self.kind = None;
                Ok(false)
            }
            None => Err(self.malformed()),
        }
    }

    fn malformed(&mut self) -> ReadError {
        self.kind = None;
        self.chunks.error(Defect::Malformed)
    }

    fn next_chunk(&mut self) -> Result<(), ReadError> {
        let Some(kind) = self.chunks.next()? else {
            self.completion = Completion::CutShort { valid: self.chunks.offset };
            return Ok(());
        };
        match ChunkKind::of(kind) {
            None => self.skipped += 1,
            Some(ChunkKind::Totals) => self.totals = Some(self.read_totals()?),
            Some(ChunkKind::End) => {
                self.totals = Some(self.read_totals()?);
                if self.chunks.is_at_end()? {
                    self.completion = Completion::Complete;
                } else {
                    return Err(self.chunks.error(Defect::TrailingBytes));
                }
            }
            Some(ChunkKind::Blocks) if self.leaves_blocks_out => {}
            Some(ChunkKind::Blocks) => {
                self.blocks.begin(&self.chunks.streams).ok_or_else(|| self.malformed())?;
                self.kind = Some(ChunkKind::Blocks);
            }
            Some(kind) => {
                self.records.begin();
                self.kind = Some(kind);
            }
        }
        Ok(())
    }

    fn read_totals(&mut self) -> Result<Totals, ReadError> {
        let stream = self.chunks.streams.first().map_or(&[][..], Vec::as_slice);
        let totals = Totals::decode(&mut Cursor::new(stream));
        totals.ok_or_else(|| self.malformed())
    }
}
