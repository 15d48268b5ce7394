//! What to tail: a file, standard input, or the trace that a process writes.

use std::fs::{self, File};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use heaptap_client::{FileIdentity, NamedWriter, NoTrace, Process, WriterWatch, origin};
use heaptap_trace::TraceOrigin;

use crate::exit_status::Failure;
use crate::io::live_trace::LiveTrace;
use crate::io::running::is_recording;
use crate::io::series_files::{first_part_in, first_part_of_series};
use crate::io::trace_files::shown;

/// A trace to tail.
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
            Some(pid) => LiveTarget::of(pid),
            None => Ok(LiveTarget { path: argument.to_owned(), writer: None }),
        }
    }

    /// The trace that a process has open.
    fn of(pid: u32) -> Result<LiveTarget, Failure> {
        let process = Process::of(pid).ok_or_else(|| {
            Failure::Trouble(format!(
                "there is no process {pid}; for a file of that name, give ./{pid}"
            ))
        })?;
        let trace = process.trace();
        let path = trace.map_err(|none| {
            if matches!(none, NoTrace::None) && is_recording(process) {
                return Failure::Trouble(format!(
                    "process {pid}: it keeps its trace in memory, and there is no file to follow; \
                     `heaptap recorder {pid}` writes what it has, for `heaptap report`"
                ));
            }
            Failure::Trouble(format!("process {pid}: {none}"))
        })?;
        Ok(LiveTarget { path, writer: Some(process) })
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

    /// Begins to tail it: of a directory, and of a process whose trace goes on in other files, from
    /// the first file of the series that is still there.
    pub(crate) fn open(&self) -> Result<LiveTrace, Failure> {
        let first = if self.path.is_dir() {
            Some(first_part_in(&self.path).ok_or_else(|| {
                Failure::Trouble(format!(
                    "{}: is a directory without a series of files; name a trace file in it",
                    shown(&self.path)
                ))
            })?)
        } else {
            self.first_of_process()
        };
        match first {
            Some(first) => LiveTrace::open(&first, None),
            None => LiveTrace::open(&self.path, self.writer),
        }
    }

    /// The first file of the series that a process writes, if its trace is one and can be found by
    /// its name.
    fn first_of_process(&self) -> Option<PathBuf> {
        self.writer?;
        // Either the name that it has told, or one of its open files.
        let name = fs::read_link(&self.path).unwrap_or_else(|_| self.path.clone());
        let (named, open) = (fs::metadata(&name).ok()?, fs::metadata(&self.path).ok()?);
        (FileIdentity::of(&named) == FileIdentity::of(&open))
            .then(|| first_part_of_series(&name))?
    }

    /// What a page calls it, unless the name of its file will do: a file without a name is that
    /// of its process.
    pub(crate) fn process_name(&self) -> Option<String> {
        let writer = self.writer.filter(|_| self.path.starts_with("/proc"))?;
        Some(format!("process {}", writer.pid()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_an_ended_process_is_not_being_written() {
        let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/data/tiny.v2.ctf");
        let trace = Path::new(trace);
        let held = File::open(trace).unwrap();
        assert!(LiveTarget::being_written(trace).is_none(), "another process has written it");
        let own = LiveTarget::find(Path::new(&std::process::id().to_string())).unwrap();
        assert_eq!(own.path.canonicalize().unwrap(), trace.canonicalize().unwrap());
        drop(held);
    }

    #[test]
    fn a_number_is_a_process() {
        let message = LiveTarget::find(Path::new("4294967295")).unwrap_err();
        assert!(message.message().unwrap().contains("no process 4294967295"), "{message:?}");
    }
}
