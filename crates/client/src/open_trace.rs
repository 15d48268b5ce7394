//! The trace that a process has open.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use heaptap_trace::{TraceHead, TraceOrigin};

use crate::process::Process;

/// Tells a file from all others, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    device: u64,
    number: u64,
}

impl FileIdentity {
    /// The identity of the file with this metadata.
    pub fn of(metadata: &Metadata) -> FileIdentity {
        FileIdentity { device: metadata.dev(), number: metadata.ino() }
    }
}

/// Why no trace of a process is found.
#[derive(Debug)]
pub enum NoTrace {
    /// Its open files cannot be seen.
    Unlisted(io::Error),
    /// None of its open files is a trace.
    None,
}

impl fmt::Display for NoTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoTrace::Unlisted(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                f.write_str("it belongs to another user; run this as that user or as root")
            }
            NoTrace::Unlisted(error) => write!(f, "its files cannot be listed: {error}"),
            NoTrace::None => f.write_str(
                "it writes no trace; start it by `heaptap run`, or name the file of its trace if \
                 that was closed",
            ),
        }
    }
}

impl Process {
    /// The trace that it has open: the one that began last, if there are several.
    pub fn trace(self) -> Result<PathBuf, NoTrace> {
        let entries = fs::read_dir(self.file("fd")).map_err(NoTrace::Unlisted)?;
        let found = entries.flatten().filter_map(|entry| {
            let link = entry.path();
            origin(&link).map(|origin| (origin.start_time, link))
        });
        let (_, link) = found.max().ok_or(NoTrace::None)?;
        Ok(named(&link).unwrap_or(link))
    }
}

/// The beginning of the trace in a file; `None` if it is something else. Only regular
/// files are opened: opening a pipe would wait for its other end.
pub fn origin(path: &Path) -> Option<TraceOrigin> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut start = Vec::new();
    File::open(path).ok()?.take(TraceHead::BYTES as u64).read_to_end(&mut start).ok()?;
    TraceHead::of(&start).map(|head| head.origin)
}

/// The name of an open file, if the file still has it: a new file of that name is then
/// noticed.
fn named(link: &Path) -> Option<PathBuf> {
    let name = fs::read_link(link).ok()?;
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| FileIdentity::of(&found));
    (identity(&name)? == identity(link)?).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_of_a_process_is_found_by_its_open_files() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t.ctf");
        let trace = include_bytes!("../../trace/tests/data/tiny.v2.ctf");
        fs::write(&path, trace).unwrap();
        let held = File::open(&path).unwrap();
        // A pipe, and a file that is no trace.
        let pipe = io::pipe().unwrap();
        let other = File::open("/proc/self/exe").unwrap();
        let own = Process::of(std::process::id()).unwrap();
        assert_eq!(own.trace().unwrap(), path);
        fs::remove_file(&path).unwrap();
        let link = own.trace().unwrap();
        assert!(link.starts_with(own.file("fd")), "{link:?}");
        drop((held, pipe, other));
        let message = own.trace().unwrap_err().to_string();
        assert!(message.contains("heaptap run"), "{message}");
    }
}
