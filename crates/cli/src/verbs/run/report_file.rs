//! The file through which the library reports what it traced.
//!
//! The library appends lines. A traced process, forked ones included, has `pid N` and `file
//! PATH` when its trace begins; `end …`, with the library's own statistics, when it exits
//! normally, and `failed` behind them if the trace could not be written to its end; `flushed N`
//! when it ends without exit handlers or by exec. If there is no trace for a reason that the
//! library has already printed, there is `refused` alone. If it cannot write that, it removes
//! the file. Programs that passed the request on have `passed NAME` or `wrapper NAME`. In
//! names and paths, `\n` and `\\` are escapes.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::exit_status::Failure;

/// The file into which the library reports. Removed when dropped. It is not kept open:
/// descriptors may be few.
pub(super) struct ReportFile {
    path: TempPath,
}

impl ReportFile {
    pub(super) fn new() -> Result<ReportFile, Failure> {
        // Absolute even if TMPDIR is not: the library opens the file by its name, wherever
        // the program is then.
        let directory = std::env::temp_dir();
        // The library finds out by the number whether we still wait for it.
        let prefix = format!("heaptap-run-{}-", std::process::id());
        let made = std::path::absolute(&directory)
            .and_then(|there| tempfile::Builder::new().prefix(&prefix).tempfile_in(there));
        let file = made.map_err(|error| {
            let directory = directory.display();
            Failure::Trouble(format!(
                "no file can be made in {directory}: {error}; set TMPDIR to a directory that can \
                 be written"
            ))
        })?;
        Ok(ReportFile { path: file.into_temp_path() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn read(&self) -> Report {
        match fs::read(self.path()) {
            Ok(lines) => Report::parse(&lines),
            Err(_) => Report { lost: true, ..Report::default() },
        }
    }
}

/// What the library has reported.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// The processes that were traced.
    pub(super) processes: Vec<Process>,
    /// A process was not traced, and the library has printed the reason.
    pub(super) refused: bool,
    /// The library could not write its report.
    pub(super) lost: bool,
    /// The names of programs that only started the one to be traced.
    pub(super) wrappers: Vec<OsString>,
    /// The names of programs that could be traced, but were not asked for.
    pub(super) passed: Vec<OsString>,
}

/// A process that was traced.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Vec<u8>,
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

/// What the library counted until the program exited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Statistics {
    /// Sampled words.
    pub(super) samples: u64,
    /// Sampled blocks that are not in the trace.
    pub(super) dropped: u64,
    /// Bytes of trace.
    pub(super) bytes: u64,
}

impl Report {
    /// Whether something was traced, and each trace that was asked for could be made and
    /// written to its end. If the library could not even write its report, it is assumed
    /// that it could not.
    pub(super) fn is_complete(&self) -> bool {
        let failed = |process: &Process| matches!(process.end, End::WriteFailed(_));
        let processes = &self.processes;
        !self.lost && !self.refused && !processes.is_empty() && !processes.iter().any(failed)
    }

    fn parse(lines: &[u8]) -> Report {
        let mut report = Report::default();
        let mut pid: &[u8] = b"";
        for line in lines.split(|&byte| byte == b'\n') {
            let end = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
            let (word, rest) = line.split_at(end);
            let rest = rest.get(1..).unwrap_or(b"");
            match word {
                b"pid" => pid = rest,
                b"file" => {
                    let file = PathBuf::from(name(rest));
                    report.processes.push(Process { pid: pid.to_vec(), file, end: End::Abrupt });
                }
                b"end" if rest.ends_with(b" failed") => {
                    report.end(rest, End::WriteFailed(Statistics::parse(rest)));
                }
                b"end" => report.end(rest, End::Orderly(Statistics::parse(rest))),
                b"flushed" => report.end(rest, End::Flushed),
                b"refused" => report.refused = true,
                b"passed" => report.passed.push(name(rest)),
                b"wrapper" => report.wrappers.push(name(rest)),
                _ => {}
            }
        }
        report
    }

    /// Ends the process whose id is the first of `words`. After an exec, several entries
    /// have the same id; the last one ends.
    fn end(&mut self, words: &[u8], end: End) {
        let pid = words.split(|&byte| byte == b' ').next().unwrap_or_default();
        let process = self.processes.iter_mut().rev().find(|process| process.pid == pid);
        if let Some(process) = process {
            process.end = end;
        }
    }
}

/// A name, without its escapes.
fn name(escaped: &[u8]) -> OsString {
    let mut name = Vec::with_capacity(escaped.len());
    let mut bytes = escaped.iter();
    while let Some(&byte) = bytes.next() {
        name.push(match (byte, bytes.as_slice().first()) {
            (b'\\', Some(&next)) => {
                bytes.next();
                if next == b'n' { b'\n' } else { next }
            }
            _ => byte,
        });
    }
    OsString::from_vec(name)
}

impl Statistics {
    /// From pairs of a name and a number.
    fn parse(words: &[u8]) -> Statistics {
        let words: Vec<&[u8]> = words.split(|&byte| byte == b' ').collect();
        let value = |name: &[u8]| {
            let pair = words.windows(2).find(|pair| pair[0] == name)?;
            std::str::from_utf8(pair[1]).ok()?.parse().ok()
        };
        Statistics {
            samples: value(b"samples").unwrap_or(0),
            dropped: value(b"dropped").unwrap_or(0),
            bytes: value(b"bytes").unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: &[u8], file: &str, end: End) -> Process {
        Process { pid: pid.to_vec(), file: file.into(), end }
    }

    #[test]
    fn the_report_has_each_process() {
        let lines =
            b"pid 7\nfile /t/a b.ctf\npid 8\nfile c\nend 7 samples 5 blocks 4 dropped 2 bytes 9\n";
        let statistics = Statistics { samples: 5, dropped: 2, bytes: 9 };
        let report = Report::parse(lines);
        assert!(!report.refused);
        assert_eq!(
            report.processes,
            [
                process(b"7", "/t/a b.ctf", End::Orderly(statistics)),
                process(b"8", "c", End::Abrupt)
            ]
        );
        let twice = b"pid 7\nfile a\nflushed 7\npid 7\nfile b\n";
        assert_eq!(
            Report::parse(twice).processes,
            [process(b"7", "a", End::Flushed), process(b"7", "b", End::Abrupt)]
        );
        assert_eq!(Report::parse(b"").processes, []);
        let failed = b"pid 7\nfile a\nend 7 samples 5 blocks 4 dropped 2 bytes 9 failed\n";
        assert_eq!(
            Report::parse(failed).processes,
            [process(b"7", "a", End::WriteFailed(statistics))]
        );
    }

    #[test]
    fn names_may_have_any_byte() {
        let lines = b"wrapper du\\\\ne\npassed a b\npid 7\nfile /t/a\\nb\\\\n.ctf\nfile x\\\n";
        let report = Report::parse(lines);
        assert_eq!(report.wrappers, ["du\\ne"]);
        assert_eq!(report.passed, ["a b"]);
        assert_eq!(report.processes[0].file, Path::new("/t/a\nb\\n.ctf"));
        assert_eq!(report.processes[1].file, Path::new("x\\"));
    }

    #[test]
    fn a_refusal_is_a_line_and_a_lost_report_a_missing_file() {
        assert!(Report::parse(b"pid 7\nfile a\n").is_complete());
        let refused = Report::parse(b"pid 7\nfile a\nrefused\n");
        assert!(refused.refused && !refused.is_complete());
        let nothing = Report::parse(b"wrapper dune\n");
        assert!(!nothing.refused && !nothing.is_complete());
        let file = ReportFile::new().unwrap();
        assert!(!file.read().lost && !file.read().is_complete());
        fs::remove_file(file.path()).unwrap();
        assert!(file.read().lost && !file.read().is_complete());
    }
}
