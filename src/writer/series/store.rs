//! Where the parts of a series are: in files, or in memory.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use heaptap_trace::Completion;

use crate::sys::file::{self, FileError};
use crate::sys::output::Output;
use crate::sys::part_files::PartFiles;
use crate::sys::recording::{Kind, MemoryFile, Recording};
use crate::writer::output::TraceOutput;

/// Where the parts are.
#[derive(Clone)]
pub(crate) enum Store {
    Files(SharedFiles),
    Memory(Arc<Recording>),
}

/// The names of parts, which their outputs share: one that finds the disk full has the oldest part
/// removed.
#[derive(Clone)]
pub(crate) struct SharedFiles(Arc<Mutex<PartFiles>>);

impl SharedFiles {
    pub(crate) fn new(files: PartFiles) -> SharedFiles {
        SharedFiles(Arc::new(Mutex::new(files)))
    }

    fn with<A>(&self, with: impl FnOnce(&mut PartFiles) -> A) -> A {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes a packet, and makes room for it if the disk is full.
    fn write(&self, out: &mut Output, packet: &[u8]) -> io::Result<usize> {
        loop {
            match out.write(packet) {
                Err(error) if is_full(&error) && self.with(|files| files.remove_oldest()) => {}
                written => return written,
            }
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// A file of a part.
pub(super) enum StoredFile {
    File(Output),
    Memory(MemoryFile),
}

impl StoredFile {
    /// Bytes so far.
    pub(super) fn written(&self) -> u64 {
        match self {
            StoredFile::File(out) => out.written(),
            StoredFile::Memory(file) => file.written(),
        }
    }

    /// Empties it.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        match self {
            StoredFile::File(out) => out.restart(),
            StoredFile::Memory(file) => {
                file.restart();
                Ok(())
            }
        }
    }
}

/// A part that was claimed, and whose trace is to be begun.
pub(crate) struct ClaimedPart {
    pub(crate) trace: PathBuf,
    pub(super) sidecar: StoredFile,
}

impl Store {
    /// Claims the files of the next part, each of which has `part_bytes` at most.
    pub(super) fn claim(&self, part_bytes: Option<u64>) -> Result<ClaimedPart, FileError> {
        match self {
            Store::Files(files) => {
                let (trace, sidecar) = files.with(|files| files.claim(part_bytes))?;
                Ok(ClaimedPart { trace, sidecar: StoredFile::File(sidecar) })
            }
            Store::Memory(recording) => {
                let part = recording.begin_part(Instant::now());
                let sidecar = MemoryFile::new(Arc::clone(recording), part, Kind::Series);
                let trace = PathBuf::from(format!("part {part} in memory"));
                Ok(ClaimedPart { trace, sidecar: StoredFile::Memory(sidecar) })
            }
        }
    }

    /// Makes the trace of the part that was claimed last.
    pub(super) fn open(&self, trace: &Path) -> Result<PartOutput, FileError> {
        let out = match self {
            Store::Files(_) => StoredFile::File(file::create(trace)?),
            Store::Memory(recording) => {
                let (recording, part) = (Arc::clone(recording), recording.last_part());
                StoredFile::Memory(MemoryFile::new(recording, part, Kind::Trace))
            }
        };
        Ok(PartOutput { name: trace.to_owned(), out, store: self.clone() })
    }

    /// Writes a packet, and makes room for it.
    pub(super) fn write(&self, out: &mut StoredFile, packet: &[u8]) -> io::Result<usize> {
        match (self, out) {
            (Store::Files(files), StoredFile::File(out)) => files.write(out, packet),
            (_, StoredFile::File(out)) => out.write(packet),
            (_, StoredFile::Memory(file)) => file.write(packet),
        }
    }

    /// Removes the part that was claimed last and has not begun.
    pub(super) fn abandon(&self) {
        match self {
            Store::Files(files) => files.with(PartFiles::abandon),
            Store::Memory(recording) => recording.abandon(),
        }
    }

    /// The parts before the one that was claimed last are over.
    pub(super) fn end_before(&self) {
        match self {
            Store::Files(files) => files.with(PartFiles::end_before),
            Store::Memory(recording) => recording.end_before(),
        }
    }

    /// The bytes of the part that was claimed last, sidecars included.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Store::Files(files) => files.with(|files| files.bytes()),
            Store::Memory(recording) => recording.part_bytes(),
        }
    }

    /// The most bytes of the list of what is alive, if that is not a matter of the size of a part:
    /// of what is in memory only the first list counts, and the others make room for it.
    pub(super) fn most_base(&self) -> Option<u64> {
        match self {
            Store::Files(_) => None,
            Store::Memory(recording) => Some(recording.size() as u64 / 4),
        }
    }

    pub(super) fn is_memory(&self) -> bool {
        matches!(self, Store::Memory(_))
    }
}

/// The trace of a part.
pub(crate) struct PartOutput {
    name: PathBuf,
    out: StoredFile,
    store: Store,
}

impl Write for PartOutput {
    fn write(&mut self, packet: &[u8]) -> io::Result<usize> {
        self.store.write(&mut self.out, packet)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TraceOutput for PartOutput {
    fn name(&self) -> &std::ffi::OsStr {
        match &self.out {
            StoredFile::File(out) => out.path().as_os_str(),
            StoredFile::Memory(_) => self.name.as_os_str(),
        }
    }

    fn set_completion(&mut self, completion: Completion) {
        match &mut self.out {
            StoredFile::File(out) => TraceOutput::set_completion(out, completion),
            StoredFile::Memory(file) => file.overwrite(Completion::OFFSET, &completion.bytes()),
        }
    }

    fn was_truncated(&mut self) -> bool {
        match &mut self.out {
            StoredFile::File(out) => Output::was_truncated(out),
            StoredFile::Memory(_) => false,
        }
    }

    fn restart(&mut self) -> io::Result<()> {
        self.out.restart()
    }
}
