//! What the processes of a run have said of their traces: the journal
//! (`heaptap_control::journal`), read when the program has ended.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use heaptap_control::journal::{Entry, Statistics, file_prefix};
use tempfile::TempPath;

use crate::exit_status::Failure;

/// The file to which the library appends. Removed when dropped. It is not kept open:
/// descriptors may be few.
pub(super) struct JournalFile {
    path: TempPath,
}

impl JournalFile {
    pub(super) fn new() -> Result<JournalFile, Failure> {
        // Absolute even if TMPDIR is not: the library opens the file by its name, wherever
        // the program is then.
        let directory = std::env::temp_dir();
        // The library finds out by the number whether we still wait for it.
        let prefix = file_prefix(std::process::id());
        let made = std::path::absolute(&directory)
            .and_then(|there| tempfile::Builder::new().prefix(&prefix).tempfile_in(there));
        let file = made.map_err(|error| {
            let directory = directory.display();
            Failure::Trouble(format!(
                "no file can be made in {directory}: {error}; set TMPDIR to a directory that can \
                 be written"
            ))
        })?;
        Ok(JournalFile { path: file.into_temp_path() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn read(&self) -> Journal {
        match fs::read(self.path()) {
            Ok(lines) => Journal::parse(&lines),
            // The library removes a journal that it cannot write to.
            Err(_) => Journal { lost: true, ..Journal::default() },
        }
    }
}

/// What the processes have said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Journal {
    /// The processes that were traced.
    pub(super) processes: Vec<Process>,
    /// A process was not traced, and the library has printed the reason.
    pub(super) refused: bool,
    /// The library could not write it.
    pub(super) lost: bool,
    /// The names of programs that only started the one to be traced.
    pub(super) wrappers: Vec<OsString>,
    /// The names of programs that could be traced, but were not asked for.
    pub(super) passed: Vec<OsString>,
}

/// A process that was traced.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// Where its trace is.
    pub(super) file: PathBuf,
    pub(super) end: End,
}

/// How a trace ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The program was killed.
    Abrupt,
    /// Everything recorded is in the trace.
    Flushed,
    /// The program exited.
    Orderly(Statistics),
    /// The program exited, and the file could not be written to its end. The statistics go
    /// until then.
    WriteFailed(Statistics),
}

impl Journal {
    /// Whether something was traced, and each trace that was asked for could be made and
    /// written to its end. If the library could not even write its journal, it is assumed
    /// that it could not.
    pub(super) fn is_complete(&self) -> bool {
        let failed = |process: &Process| matches!(process.end, End::WriteFailed(_));
        let processes = &self.processes;
        !self.lost && !self.refused && !processes.is_empty() && !processes.iter().any(failed)
    }

    fn parse(lines: &[u8]) -> Journal {
        let mut journal = Journal::default();
        for entry in lines.split(|&byte| byte == b'\n').filter_map(Entry::parse) {
            match entry {
                Entry::Began { pid, file } => {
                    journal.processes.push(Process { pid, file, end: End::Abrupt });
                }
                Entry::Ended { pid, statistics, failed: true } => {
                    journal.end(pid, End::WriteFailed(statistics));
                }
                Entry::Ended { pid, statistics, .. } => journal.end(pid, End::Orderly(statistics)),
                Entry::Flushed { pid } => journal.end(pid, End::Flushed),
                Entry::Refused => journal.refused = true,
                Entry::Passed(name) => journal.passed.push(name),
                Entry::Wrapper(name) => journal.wrappers.push(name),
            }
        }
        journal
    }

    /// After an exec, several entries have the same number; the last one ends.
    fn end(&mut self, pid: u32, end: End) {
        let process = self.processes.iter_mut().rev().find(|process| process.pid == pid);
        if let Some(process) = process {
            process.end = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, file: &str, end: End) -> Process {
        Process { pid, file: file.into(), end }
    }

    #[test]
    fn the_journal_has_each_process() {
        let lines = b"began pid=7 file=/t/a%20b.ctf\nbegan pid=8 file=c\n\
                      ended pid=7 samples=5 dropped=2 bytes=9\n";
        let statistics = Statistics { samples: 5, dropped: 2, bytes: 9, ..Statistics::default() };
        let journal = Journal::parse(lines);
        assert!(!journal.refused);
        assert_eq!(
            journal.processes,
            [process(7, "/t/a b.ctf", End::Orderly(statistics)), process(8, "c", End::Abrupt)]
        );
        let twice = b"began pid=7 file=a\nflushed pid=7\nbegan pid=7 file=b\n";
        assert_eq!(
            Journal::parse(twice).processes,
            [process(7, "a", End::Flushed), process(7, "b", End::Abrupt)]
        );
        assert_eq!(Journal::parse(b"").processes, []);
        let failed =
            b"began pid=7 file=a\nended pid=7 samples=5 dropped=2 bytes=9 failed\nflushed pid=8";
        assert_eq!(
            Journal::parse(failed).processes,
            [process(7, "a", End::WriteFailed(statistics))]
        );
    }

    #[test]
    fn programs_that_were_not_traced_have_names() {
        let journal = Journal::parse(b"wrapper name=du%5Cne\npassed name=a%20b\n");
        assert_eq!(journal.wrappers, ["du\\ne"]);
        assert_eq!(journal.passed, ["a b"]);
    }

    #[test]
    fn a_refusal_is_a_line_and_a_lost_journal_a_missing_file() {
        assert!(Journal::parse(b"began pid=7 file=a\n").is_complete());
        let refused = Journal::parse(b"began pid=7 file=a\nrefused\n");
        assert!(refused.refused && !refused.is_complete());
        let nothing = Journal::parse(b"wrapper name=dune\n");
        assert!(!nothing.refused && !nothing.is_complete());
        let file = JournalFile::new().unwrap();
        assert!(!file.read().lost && !file.read().is_complete());
        fs::remove_file(file.path()).unwrap();
        assert!(file.read().lost && !file.read().is_complete());
    }
}
