//! The bytes of a trace, from a file or a pipe.
//!
//! A file that can be read again can be read by several at the same time, each at its own
//! offset. Of several traces, no file stays open: each is opened for every read.

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::rc::Rc;

use heaptap_client::FileIdentity;
use heaptap_trace::FileKind;

use crate::io::decompressed::{Compression, Decompressed};
use crate::io::progress::Progress;

/// The first bytes of a pipe, which whoever reads it gets again.
#[derive(Default)]
pub(super) struct PeekedStart {
    bytes: OnceCell<Vec<u8>>,
    /// How many of them were given back.
    given: Cell<usize>,
}

impl PeekedStart {
    /// Peeks into a pipe, once. What cannot be read is reported to whoever reads on.
    pub(super) fn peek(&self, pipe: &File) -> &[u8] {
        self.bytes.get_or_init(|| {
            let mut start = Vec::new();
            let _ = pipe.take(FileKind::LONGEST_MAGIC as u64).read_to_end(&mut start);
            start
        })
    }

    /// Gives back as many of the bytes as there is room for; 0 if there are no more.
    fn give(&self, room: &mut [u8]) -> usize {
        let rest = self.bytes.get().and_then(|bytes| bytes.get(self.given.get()..));
        let count = rest.unwrap_or_default().len().min(room.len());
        room[..count].copy_from_slice(&rest.unwrap_or_default()[..count]);
        self.given.set(self.given.get() + count);
        count
    }
}

/// How the bytes of a file are reached.
#[derive(Clone)]
pub(super) enum FileAccess {
    /// It stays open.
    Held(Rc<File>),
    /// It is opened for every read.
    OnDemand(Rc<NamedFile>),
}

/// A file as it was when it was first opened.
pub(super) struct NamedFile {
    pub(super) path: PathBuf,
    pub(super) identity: FileIdentity,
    pub(super) length: u64,
}

impl NamedFile {
    /// Reads from an offset, up to the length that the file had at first: one that grows
    /// is the same trace in every reading.
    fn read_at(&self, room: &mut [u8], offset: u64) -> io::Result<usize> {
        let file = File::open(&self.path)?;
        if FileIdentity::of(&file.metadata()?) != self.identity {
            return Err(io::Error::other("another file has taken its place; try again"));
        }
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = left.min(room.len());
        file.read_at(&mut room[..count], offset)
    }
}

/// The bytes of a file, as they are.
pub(super) struct FileBytes {
    pub(super) file: FileAccess,
    /// Where the trace begins in a file that can be read again.
    pub(super) begin: Option<u64>,
    pub(super) peeked: Rc<PeekedStart>,
    pub(super) read: u64,
    pub(super) progress: Rc<Progress>,
}

impl Read for FileBytes {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.progress.check()?;
        let count = match (&self.file, self.begin) {
            (FileAccess::Held(file), Some(begin)) => file.read_at(room, begin + self.read)?,
            (FileAccess::Held(file), None) => match self.peeked.give(room) {
                0 => (&**file).read(room)?,
                given => given,
            },
            (FileAccess::OnDemand(file), _) => file.read_at(room, self.read)?,
        };
        self.read += count as u64;
        self.progress.reached(self.read, count as u64);
        Ok(count)
    }
}

/// The bytes of a trace: those of its file, decompressed if need be.
pub(crate) struct TraceBytes(Decompressed<FileBytes>);

impl TraceBytes {
    pub(super) fn new(file: FileBytes, compression: Option<Compression>) -> TraceBytes {
        TraceBytes(Decompressed::new(file, compression))
    }
}

impl Read for TraceBytes {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.read(room)
    }
}

/// Back to the beginning, of a file that can be read again.
impl Seek for TraceBytes {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let Decompressed::Plain(bytes) = &mut self.0 else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        if to != SeekFrom::Start(0)
            || (bytes.begin.is_none() && matches!(bytes.file, FileAccess::Held(_)))
        {
            return Err(io::ErrorKind::Unsupported.into());
        }
        bytes.read = 0;
        Ok(0)
    }
}
