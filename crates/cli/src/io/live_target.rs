//! What to follow: a file, standard input, or the trace that a process writes.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use heaptap_trace::{FileKind, TraceOrigin};

use crate::exit_status::Failure;
use crate::io::live_trace::LiveTrace;
use crate::io::trace_bytes::FileIdentity;
use crate::io::writing_process::{NamedWriter, Process, WriterWatch};

/// A trace to follow.
#[derive(Clone, Debug)]
pub(crate) struct LiveTarget {
    /// `-` is standard input.
    pub(crate) path: PathBuf,
    /// The process that writes it, if that was given.
    writer: Option<Process>,
}

impl LiveTarget {
    /// What the argument stands for. A number is a process; a file whose name is a number is
    /// given as `./4711`.
    pub(crate) fn find(argument: &Path) -> Result<LiveTarget, Failure> {
        match argument.to_str().and_then(|text| text.parse().ok()) {
            Some(pid) => Ok(LiveTarget { path: trace_of(pid)?, writer: Process::of(pid) }),
            None => Ok(LiveTarget { path: argument.to_owned(), writer: None }),
        }
    }

    /// A file, if it can be seen that it is being written: then it grows.
    pub(crate) fn being_written(path: &Path) -> Option<LiveTarget> {
        let TraceOrigin { pid, start_time } = origin(path)?;
        let named = NamedWriter { pid, start_time, host: None };
        let sign = WriterWatch::default().look(&File::open(path).ok()?, Some(named));
        sign.is_there().then(|| LiveTarget { path: path.to_owned(), writer: None })
    }

    /// Whether it is a pipe, which cannot be opened twice: its writer would lose its reader.
    pub(crate) fn is_pipe(&self) -> bool {
        self.path.as_os_str() == "-"
            || fs::metadata(&self.path).is_ok_and(|metadata| metadata.file_type().is_fifo())
    }

    /// Begins to follow it.
    pub(crate) fn open(&self) -> Result<LiveTrace, Failure> {
        LiveTrace::open(&self.path, self.writer)
    }

    /// What a page calls it, unless the name of its file will do: a file without a name is that
    /// of its process.
    pub(crate) fn process_name(&self) -> Option<String> {
        let writer = self.writer.filter(|_| self.path.starts_with("/proc"))?;
        Some(format!("process {}", writer.pid()))
    }
}

/// The trace that a process has open: the one that began last, if there are several.
fn trace_of(pid: u32) -> Result<PathBuf, Failure> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let trouble = |reason: &str| Failure::Trouble(format!("process {pid}: {reason}"));
    if !process.exists() {
        return Err(Failure::Trouble(format!(
            "there is no process {pid}; for a file of that name, give ./{pid}"
        )));
    }
    let entries = fs::read_dir(process.join("fd")).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            trouble("it belongs to another user; run this as that user or as root")
        }
        _ => trouble(&format!("its files cannot be listed: {error}")),
    })?;
    let found = entries.flatten().filter_map(|entry| {
        let link = entry.path();
        origin(&link).map(|origin| (origin.start_time, link))
    });
    let (_, link) = found.max().ok_or_else(|| {
        trouble(
            "it writes no trace; start it by `heaptap run`, or name the file of its trace if \
             that was closed",
        )
    })?;
    Ok(named(&link).unwrap_or(link))
}

/// The beginning of the trace in an open file; `None` if it is something else. Only regular
/// files are opened: opening a pipe would wait for its other end.
pub(crate) fn origin(link: &Path) -> Option<TraceOrigin> {
    if !fs::metadata(link).ok()?.is_file() {
        return None;
    }
    let mut start = Vec::new();
    File::open(link).ok()?.take(TraceOrigin::BYTES as u64).read_to_end(&mut start).ok()?;
    if FileKind::of(&start) != Some(FileKind::Memtrace) {
        return None;
    }
    TraceOrigin::of(&start)
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
        let trace = include_bytes!("../../../trace/tests/data/tiny.v2.ctf");
        fs::write(&path, trace).unwrap();
        let held = File::open(&path).unwrap();
        // A pipe, and a file that is no trace.
        let pipe = io::pipe().unwrap();
        let other = File::open("/proc/self/exe").unwrap();
        let own = std::process::id();
        assert_eq!(trace_of(own).unwrap(), path);
        assert!(LiveTarget::being_written(&path).is_none(), "another process has written it");
        fs::remove_file(&path).unwrap();
        let link = trace_of(own).unwrap();
        assert!(link.starts_with(format!("/proc/{own}/fd")), "{link:?}");
        drop((held, pipe, other));
        let message = trace_of(own).unwrap_err().message().unwrap().to_owned();
        assert!(message.contains("heaptap run"), "{message}");
    }

    #[test]
    fn a_number_is_a_process() {
        let message = LiveTarget::find(Path::new("4294967295")).unwrap_err();
        assert!(message.message().unwrap().contains("no process 4294967295"), "{message:?}");
    }
}
