//! Where a sidecar is written: to a file beside its trace, or to memory, as its trace is.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use crate::sys::file;
use crate::sys::output::{Output, Replacement};
use crate::sys::recording::{Kind, MemoryFile, Recording};

/// An open sidecar.
pub(super) enum SidecarOutput {
    File(Output),
    Memory(MemoryFile),
}

/// What takes its place when it is written again in fewer rows.
pub(super) enum SidecarReplacement {
    File(Replacement),
    Memory(Vec<u8>),
}

impl SidecarOutput {
    /// The sidecar of the trace of this name, in memory or beside it.
    pub(super) fn create(
        trace: &OsStr,
        recording: Option<&Arc<Recording>>,
    ) -> Result<SidecarOutput, String> {
        if let Some(recording) = recording {
            let (recording, part) = (Arc::clone(recording), recording.last_part());
            return Ok(SidecarOutput::Memory(MemoryFile::new(recording, part, Kind::Probes)));
        }
        let name = heaptap_probes::sidecar_name(trace);
        let out = file::create_sidecar(Path::new(&name))
            .map_err(|error| format!("{error}; the trace goes on without it"))?;
        Ok(SidecarOutput::File(out))
    }

    /// Its name in messages.
    pub(super) fn name(&self) -> &Path {
        match self {
            SidecarOutput::File(out) => out.path(),
            SidecarOutput::Memory(_) => Path::new("the time line in memory"),
        }
    }

    pub(super) fn written(&self) -> u64 {
        match self {
            SidecarOutput::File(out) => out.written(),
            SidecarOutput::Memory(file) => file.written(),
        }
    }

    pub(super) fn write_all(&mut self, packet: &[u8]) -> io::Result<()> {
        match self {
            SidecarOutput::File(out) => out.write_all(packet),
            SidecarOutput::Memory(file) => file.write(packet).map(|_| ()),
        }
    }

    pub(super) fn restart(&mut self) -> io::Result<()> {
        match self {
            SidecarOutput::File(out) => out.restart(),
            SidecarOutput::Memory(file) => {
                file.restart();
                Ok(())
            }
        }
    }

    /// Whether somebody has truncated it.
    pub(super) fn was_truncated(&mut self) -> bool {
        match self {
            SidecarOutput::File(out) => out.was_truncated(),
            SidecarOutput::Memory(_) => false,
        }
    }

    pub(super) fn read_at(&self, room: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            SidecarOutput::File(out) => out.read_at(room, offset),
            SidecarOutput::Memory(file) => Ok(file.read_at(room, offset)),
        }
    }

    /// Something that can take its place.
    pub(super) fn replacement(&self) -> io::Result<SidecarReplacement> {
        match self {
            SidecarOutput::File(out) => out.replacement().map(SidecarReplacement::File),
            SidecarOutput::Memory(_) => Ok(SidecarReplacement::Memory(Vec::new())),
        }
    }

    /// Has the other take its place. Returns the old file, which others may have open.
    pub(super) fn replace(&mut self, new: SidecarReplacement) -> io::Result<Option<Output>> {
        match (self, new) {
            (SidecarOutput::File(out), SidecarReplacement::File(new)) => {
                Ok(Some(std::mem::replace(out, new.commit()?)))
            }
            (SidecarOutput::Memory(file), SidecarReplacement::Memory(bytes)) => {
                file.restart();
                file.write(&bytes)?;
                Ok(None)
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

impl SidecarReplacement {
    pub(super) fn write_all(&mut self, packet: &[u8]) -> io::Result<()> {
        match self {
            SidecarReplacement::File(replacement) => replacement.out()?.write_all(packet),
            SidecarReplacement::Memory(bytes) => {
                bytes.extend_from_slice(packet);
                Ok(())
            }
        }
    }

    /// Bytes so far.
    pub(super) fn written(&mut self) -> io::Result<u64> {
        match self {
            SidecarReplacement::File(replacement) => Ok(replacement.out()?.written()),
            SidecarReplacement::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }
}
