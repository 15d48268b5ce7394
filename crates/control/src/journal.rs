//! The journal of `heaptap run`: a file to which every process of the run appends what becomes
//! of its trace, for the summary at the end. The variable `HEAPTAP_JOURNAL` names it.
//!
//! An [`Entry`] is a line of words, a few bytes in one write. A traced process, forked ones
//! included, has `began` when its trace begins and `ended` when it exits normally, or `flushed` when it
//! ends without exit handlers or by exec; one that was killed has neither. If there is no trace
//! for a reason that the library has already printed, there is `refused`. Programs that passed
//! the request on have `passed` or `wrapper`.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::words::{Value as _, Words, word};

/// What a process says. Printing it takes no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A trace begins.
    Began {
        /// The process.
        pid: u32,
        /// Its trace.
        file: PathBuf,
    },
    /// The program exits.
    Ended {
        /// The process.
        pid: u32,
        /// What was counted until now.
        statistics: Statistics,
        /// Whether the trace could not be written to its end.
        failed: bool,
    },
    /// The program ends without exit handlers, and everything recorded is in its trace.
    Flushed {
        /// The process.
        pid: u32,
    },
    /// There is no trace, and a message says why.
    Refused,
    /// The program of this name could be traced, but was not asked for.
    Passed(OsString),
    /// The program of this name only starts the one to be traced.
    Wrapper(OsString),
}

/// What was counted until a program exited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Sampled words.
    pub samples: u64,
    /// Sampled blocks that are not in the trace.
    pub dropped: u64,
    /// Bytes of trace.
    pub bytes: u64,
    /// Processor time of hooks and of the library's threads, in nanoseconds.
    pub cost_ns: u64,
    /// That of the program without it.
    pub program_ns: u64,
}

impl Entry {
    /// The entry in a line; `None` if it is no whole entry.
    pub fn parse(line: &[u8]) -> Option<Entry> {
        let words = Words(line);
        let pid = || words.value("pid").and_then(u32::read);
        match words.iter().next()? {
            b"began" => Some(Entry::Began { pid: pid()?, file: words.value("file")?.into() }),
            b"ended" => {
                let [samples, dropped, bytes, cost_ns, program_ns] =
                    ["samples", "dropped", "bytes", "cost_ns", "program_ns"]
                        .map(|key| words.read(key));
                let statistics = Statistics { samples, dropped, bytes, cost_ns, program_ns };
                let failed = words.iter().any(|word| word == b"failed");
                Some(Entry::Ended { pid: pid()?, statistics, failed })
            }
            b"flushed" => Some(Entry::Flushed { pid: pid()? }),
            b"refused" => Some(Entry::Refused),
            b"passed" => words.value("name").map(Entry::Passed),
            b"wrapper" => words.value("name").map(Entry::Wrapper),
            _ => None,
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Began { pid, file } => write!(f, "began pid={pid} file={}", word(file)),
            Entry::Ended { pid, statistics, failed } => {
                let Statistics { samples, dropped, bytes, cost_ns, program_ns } = statistics;
                write!(f, "ended pid={pid} samples={samples} dropped={dropped} bytes={bytes}")?;
                write!(f, " cost_ns={cost_ns} program_ns={program_ns}")?;
                f.write_str(if *failed { " failed" } else { "" })
            }
            Entry::Flushed { pid } => write!(f, "flushed pid={pid}"),
            Entry::Refused => f.write_str("refused"),
            Entry::Passed(name) => write!(f, "passed name={}", word(name)),
            Entry::Wrapper(name) => write!(f, "wrapper name={}", word(name)),
        }
    }
}

/// How the name of a journal begins that a process reads.
pub fn file_prefix(reader: u32) -> String {
    format!("heaptap-run-{reader}-")
}

/// The process that reads a journal, by the journal's name.
pub fn reader_of(journal: &Path) -> Option<u32> {
    let name = journal.file_name()?.to_str()?.strip_prefix("heaptap-run-")?;
    name.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_read_as_it_was_written() {
        let statistics =
            Statistics { samples: 5, dropped: 2, bytes: 9, cost_ns: 1, program_ns: 100 };
        let ended = |failed| Entry::Ended { pid: 7, statistics, failed };
        for entry in [
            Entry::Began { pid: 7, file: "/t/a\nb\\n %.ctf".into() },
            ended(false),
            ended(true),
            Entry::Flushed { pid: u32::MAX },
            Entry::Refused,
            Entry::Passed("a b".into()),
            Entry::Wrapper("du\\ne".into()),
        ] {
            let line = entry.to_string();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Entry::parse(line.as_bytes()), Some(entry), "{line}");
        }
        for line in ["", "later pid=7", "began pid=7", "flushed pid=99999999999", "passed"] {
            assert_eq!(Entry::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn the_name_of_a_journal_says_who_reads_it() {
        let own = format!("/tmp/{}x1y2z3", file_prefix(4711));
        assert_eq!(reader_of(Path::new(&own)), Some(4711));
        for other in ["/tmp/heaptap-run-x1y2z3", "/tmp/heaptap-run-x-7", "/tmp/x", "/"] {
            assert_eq!(reader_of(Path::new(other)), None, "{other}");
        }
    }
}
