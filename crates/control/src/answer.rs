//! What a client gets: lines that begin with another word than `ok` and `error`, and one of
//! these two. The words behind `ok` are the answer of the command.
//!
//! An answer is printed by the plugin, and read by a client from all [`Words`]: one that it does
//! not know is ignored, and one that is missing is 0 or empty.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::words::{Words, word};

/// A line that a client gets, without the end of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `wait SECONDS`: the command is being carried out for so long.
    Wait(u64),
    /// `ok` and the words of the answer, if there are any.
    Done(String),
    /// `error` and the reason, a sentence.
    Refused(String),
}

impl Reply {
    /// The reply in a line; `None` for one of a later version, which clients ignore.
    pub fn parse(line: &[u8]) -> Option<Reply> {
        let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (kind, rest) = line.split_at(end);
        let rest = String::from_utf8_lossy(rest.get(1..).unwrap_or_default());
        match kind {
            b"wait" => rest.parse().ok().map(Reply::Wait),
            b"ok" => Some(Reply::Done(rest.into_owned())),
            b"error" => Some(Reply::Refused(rest.into_owned())),
            _ => None,
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Wait(seconds) => write!(f, "wait {seconds}"),
            Reply::Done(words) if words.is_empty() => f.write_str("ok"),
            Reply::Done(words) => write!(f, "ok {words}"),
            Reply::Refused(reason) => write!(f, "error {}", reason.replace('\n', " ")),
        }
    }
}

/// The answer to `snapshot`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The snapshot.
    pub file: PathBuf,
    /// Blocks in it, their words, and roots.
    pub blocks: u64,
    /// See `blocks`.
    pub words: u64,
    /// See `blocks`.
    pub roots: u64,
    /// The size of the file.
    pub bytes: u64,
    /// How long the program stood still, in microseconds.
    pub pause: Duration,
    /// Where the heap was walked.
    pub method: String,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Taken { file, blocks, words, roots, bytes, pause, method } = self;
        let (file, pause, method) = (word(file), pause.as_micros(), word(method));
        write!(f, "file={file} blocks={blocks} words={words} roots={roots} bytes={bytes} ")?;
        write!(f, "pause_us={pause} method={method}")
    }
}

impl From<Words<'_>> for Taken {
    fn from(words: Words<'_>) -> Taken {
        Taken {
            file: words.value("file").unwrap_or_default().into(),
            blocks: words.number("blocks"),
            words: words.number("words"),
            roots: words.number("roots"),
            bytes: words.number("bytes"),
            pause: Duration::from_micros(words.number("pause_us")),
            method: words.text("method"),
        }
    }
}

/// The answer to `status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The process, by its number in its own namespace.
    pub pid: u32,
    /// The name of its program.
    pub program: OsString,
    /// That of heaptap.
    pub version: String,
    /// The runtime and its release.
    pub runtime: String,
    /// The trace; empty if the program is not traced.
    pub trace: PathBuf,
    /// `yes`, or `no: ` and the reason.
    pub snapshots: String,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status { pid, program, version, runtime, trace, snapshots } = self;
        write!(f, "pid={pid} program={} version={} ", word(program), word(version))?;
        let (runtime, trace, snapshots) = (word(runtime), word(trace), word(snapshots));
        write!(f, "runtime={runtime} trace={trace} snapshots={snapshots}")
    }
}

impl From<Words<'_>> for Status {
    fn from(words: Words<'_>) -> Status {
        Status {
            pid: words.number("pid").try_into().unwrap_or(0),
            program: words.value("program").unwrap_or_default(),
            version: words.text("version"),
            runtime: words.text("runtime"),
            trace: words.value("trace").unwrap_or_default().into(),
            snapshots: words.text("snapshots"),
        }
    }
}

/// The answer to `flush`, which has no words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushed;

impl fmt::Display for Flushed {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl From<Words<'_>> for Flushed {
    fn from(_: Words<'_>) -> Flushed {
        Flushed
    }
}
