//! The report after the program has ended.
//!
//! The library appends lines to a temporary file: `pid N` and `file PATH` when it
//! starts; `end …`, with its own statistics, when the program exits normally;
//! `flushed N` when it ends without exit handlers or by exec; `refused` alone if
//! there is no trace for a reason that the library has already printed. Everything
//! else is in the trace, however the program ended.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use heaptap_settings::supported_runtimes;
use heaptap_trace::EventKind;
use tempfile::NamedTempFile;

use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::notices::say;
use crate::text::units::{bytes, count};

/// The file into which the library reports. Removed when dropped.
pub(super) struct ReportFile {
    file: NamedTempFile,
}

impl ReportFile {
    pub(super) fn new() -> Result<ReportFile, Failure> {
        // Absolute even if TMPDIR is not: the library opens the file by its name, wherever
        // the program is then.
        let directory = std::env::temp_dir();
        let made = std::path::absolute(&directory)
            .and_then(|there| tempfile::Builder::new().prefix("heaptap-run-").tempfile_in(there));
        let file = made.map_err(|error| {
            let directory = directory.display();
            Failure::Trouble(format!(
                "no file can be made in {directory}: {error}; set TMPDIR to a directory that can \
                 be written"
            ))
        })?;
        Ok(ReportFile { file })
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Prints a line for each process that was traced.
    pub(super) fn print(&self, program: &str) {
        let lines = fs::read(self.path()).unwrap_or_default();
        let traced = processes(&lines);
        // If it was refused, the library has printed the reason.
        let refused = lines.split(|&byte| byte == b'\n').any(|line| line == b"refused");
        if traced.is_empty() && !refused {
            let supported = supported_runtimes();
            say(&format!(
                "{program} was not traced: it is not a program that heaptap knows ({supported}, \
                 dynamically linked)"
            ));
        }
        for process in traced {
            say(&process.line());
        }
    }
}

/// A process that was traced.
#[derive(Debug, Default, PartialEq, Eq)]
struct Process {
    pid: Vec<u8>,
    file: PathBuf,
    end: End,
}

/// How the trace ended.
#[derive(Debug, Default, PartialEq, Eq)]
enum End {
    /// The program was killed.
    #[default]
    Abrupt,
    /// Everything recorded is in the trace.
    Flushed,
    /// The program exited; this many sampled blocks are not in the trace.
    Orderly { dropped: u64 },
}

/// The processes in the report.
fn processes(report: &[u8]) -> Vec<Process> {
    let mut all: Vec<Process> = Vec::new();
    let mut pid: &[u8] = b"";
    for line in report.split(|&byte| byte == b'\n') {
        let end = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
        let (word, rest) = line.split_at(end);
        let rest = rest.get(1..).unwrap_or(b"");
        match word {
            b"pid" => pid = rest,
            b"file" => {
                let file = PathBuf::from(OsStr::from_bytes(rest));
                all.push(Process { pid: pid.to_vec(), file, end: End::Abrupt });
            }
            b"end" | b"flushed" => {
                let words: Vec<&[u8]> = rest.split(|&byte| byte == b' ').collect();
                let value = |name: &[u8]| {
                    let pair = words.windows(2).find(|pair| pair[0] == name)?;
                    std::str::from_utf8(pair[1]).ok()?.parse().ok()
                };
                // After an exec, several entries have the same pid; the last one ends.
                let of_process = |process: &&mut Process| words.first() == Some(&&process.pid[..]);
                if let Some(process) = all.iter_mut().rev().find(of_process) {
                    process.end = match value(b"dropped") {
                        Some(dropped) => End::Orderly { dropped },
                        None => End::Flushed,
                    };
                }
            }
            _ => {}
        }
    }
    all
}

impl Process {
    /// File, samples, estimated words, dropped, bytes.
    fn line(&self) -> String {
        let name = crate::text::escape::path(&self.file);
        let Ok((samples, rate)) = samples(&self.file) else {
            return format!("{name}: nothing can be read of the trace; see heaptap check");
        };
        let words = samples as f64 / rate;
        // The number of samples is binomial.
        let error = if samples == 0 { 0.0 } else { ((1.0 - rate) / samples as f64).sqrt() };
        let dropped = match self.end {
            End::Orderly { dropped } => format!("{dropped} dropped"),
            End::Flushed => "ended by _exit or exec".into(),
            End::Abrupt => "ended abruptly: the last moments are missing".into(),
        };
        let size = fs::metadata(&self.file).map_or(0, |found| found.len());
        format!(
            "{name}: {}, about {words:.0} words ± {:.2}% allocated, {dropped}, {}",
            count(samples, "sample", "samples"),
            error * 100.0,
            bytes(size as f64),
        )
    }
}

/// The samples in a trace, and its rate.
fn samples(file: &Path) -> Result<(u64, f64), Failure> {
    let input = Input::open(file)?.quietly();
    let mut reader = input.in_file_order()?;
    let rate = reader.info().sample_rate;
    let mut samples = 0;
    while let Some((event, _)) = reader.next_located().map_err(|error| input.failure(error))? {
        if let EventKind::Alloc(allocation) = event.kind {
            samples += allocation.samples;
        }
    }
    Ok((samples, rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_each_process() {
        let report =
            b"pid 7\nfile /t/a b.ctf\npid 8\nfile c\nend 7 samples 5 blocks 4 dropped 2 bytes 9\n";
        let process =
            |pid: &[u8], file: &str, end| Process { pid: pid.to_vec(), file: file.into(), end };
        assert_eq!(
            processes(report),
            [
                process(b"7", "/t/a b.ctf", End::Orderly { dropped: 2 }),
                process(b"8", "c", End::Abrupt)
            ]
        );
        let twice = b"pid 7\nfile a\nflushed 7\npid 7\nfile b\n";
        assert_eq!(
            processes(twice),
            [process(b"7", "a", End::Flushed), process(b"7", "b", End::Abrupt)]
        );
        assert_eq!(processes(b""), []);
    }
}
