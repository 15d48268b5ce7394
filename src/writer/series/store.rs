//! Where the parts of a series are: in files, in memory, or in the one file that a trace is.

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
use crate::writer::series::RotationLimits;

/// Where the parts are.
#[derive(Clone)]
pub(crate) enum Store {
    Files(SharedFiles),
    Memory(Arc<Recording>),
    /// A trace of one file, beside which is the sidecar.
    OneFile,
}

/// The files of parts, which their outputs share: one that finds the disk full, or would take more
/// than all files together may have, has the oldest part removed.
#[derive(Clone)]
pub(crate) struct SharedFiles(Arc<Mutex<BoundedFiles>>);

struct BoundedFiles {
    files: PartFiles,
    /// The most bytes of all parts.
    most: u64,
    /// What others write beside the parts, before it is counted: sidecars of probes, which may be
    /// there twice while they are thinned.
    reserve: u64,
    /// So many bytes can be written before all files are counted again.
    room: u64,
}

impl BoundedFiles {
    /// Removes the oldest parts until so many bytes fit.
    fn make_room(&mut self, bytes: u64) {
        if let Some(rest) = self.room.checked_sub(bytes) {
            self.room = rest;
            return;
        }
        let most = self.most.saturating_sub(self.reserve);
        loop {
            let there = self.files.all_bytes();
            if there.saturating_add(bytes) <= most {
                self.room = most - there - bytes;
                return;
            }
            if !self.files.remove_oldest() {
                // One part, or those of other processes, have it all.
                self.room = self.reserve;
                return;
            }
        }
    }
}

impl SharedFiles {
    pub(crate) fn new(files: PartFiles, limits: RotationLimits) -> SharedFiles {
        let all = |bytes: u64| bytes.saturating_mul(limits.keep as u64);
        let (most, part) = (limits.bytes.map_or(u64::MAX, all), limits.bytes.unwrap_or(0));
        let bounded = BoundedFiles { files, most, reserve: part / 4, room: 0 };
        SharedFiles(Arc::new(Mutex::new(bounded)))
    }

    fn with_all<A>(&self, with: impl FnOnce(&mut BoundedFiles) -> A) -> A {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with<A>(&self, with: impl FnOnce(&mut PartFiles) -> A) -> A {
        self.with_all(|bounded| with(&mut bounded.files))
    }

    fn claim(&self, part_bytes: Option<u64>) -> Result<(PathBuf, Output), FileError> {
        self.with_all(|bounded| {
            // The sidecar of probes of the part before is counted from now on.
            bounded.room = 0;
            bounded.files.claim(part_bytes)
        })
    }

    /// Writes a packet, and makes room for it if the disk is full, or the files have as many bytes as
    /// they may.
    fn write(&self, out: &mut Output, packet: &[u8]) -> io::Result<usize> {
        self.with_all(|bounded| bounded.make_room(packet.len() as u64));
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
                let (trace, sidecar) = files.claim(part_bytes)?;
                Ok(ClaimedPart { trace, sidecar: StoredFile::File(sidecar) })
            }
            Store::Memory(recording) => {
                let part = recording.begin_part(Instant::now());
                let sidecar = MemoryFile::new(Arc::clone(recording), part, Kind::Series);
                let trace = PathBuf::from(format!("part {part} in memory"));
                Ok(ClaimedPart { trace, sidecar: StoredFile::Memory(sidecar) })
            }
            // There is no next one.
            Store::OneFile => {
                Err(FileError::Open(PathBuf::new(), io::ErrorKind::Unsupported.into()))
            }
        }
    }

    /// Makes the trace of the part that was claimed last.
    pub(super) fn open(&self, trace: &Path) -> Result<PartOutput, FileError> {
        let out = match self {
            Store::Files(_) | Store::OneFile => StoredFile::File(file::create(trace)?),
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
            Store::OneFile => {}
        }
    }

    /// The parts before the one that was claimed last are over.
    pub(super) fn end_before(&self) {
        match self {
            Store::Files(files) => files.with(PartFiles::end_before),
            Store::Memory(recording) => recording.end_before(),
            Store::OneFile => {}
        }
    }

    /// The bytes of the part that was claimed last, sidecars included.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Store::Files(files) => files.with(|files| files.bytes()),
            Store::Memory(recording) => recording.part_bytes(),
            Store::OneFile => 0,
        }
    }

    /// The most bytes of the list of what is alive, if that is not a matter of the size of a part:
    /// of what is in memory only the first list counts, and the others make room for it.
    pub(super) fn most_base(&self) -> Option<u64> {
        match self {
            Store::Files(_) | Store::OneFile => None,
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

    fn is_file(&self) -> bool {
        match &self.out {
            StoredFile::File(out) => out.is_regular(),
            StoredFile::Memory(_) => false,
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
