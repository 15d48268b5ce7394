//! What a client gets: lines that begin with another word than `ok` and `error`, and one of
//! these two. The words behind `ok` are the answer of the command.
//!
//! An answer is printed by the plugin, and read by a client from all [`Words`]: one that it does
//! not know is ignored, and one that is missing is 0 or empty.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::words::{Value as _, Words, word};

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

/// Declares the answer of a command: a struct whose fields are its keys, in this order.
macro_rules! answer {
    ($(#[$about:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$of_field])* pub $field: $type,)*
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let words: &[String] =
                    &[$(format!("{}={}", stringify!($field), word(&self.$field.write()))),*];
                f.write_str(&words.join(" "))
            }
        }

        impl From<Words<'_>> for $name {
            fn from(words: Words<'_>) -> $name {
                let _ = words;
                $name { $($field: words.read(stringify!($field)),)* }
            }
        }
    };
}

answer! {
    /// The answer to `snapshot`.
    Taken {
        /// The snapshot.
        file: PathBuf,
        /// Blocks in it.
        blocks: u64,
        /// Their words.
        words: u64,
        /// What holds them.
        roots: u64,
        /// The size of the file.
        bytes: u64,
        /// How long the program stood still, in microseconds.
        pause_us: u64,
        /// Where the heap was walked.
        method: String,
    }
}

answer! {
    /// The answer to `status`.
    Status {
        /// The process, by its number in its own namespace.
        pid: u32,
        /// The name of its program.
        program: OsString,
        /// That of heaptap.
        version: String,
        /// The runtime and its release.
        runtime: String,
        /// The trace; empty if the program is not traced.
        trace: PathBuf,
        /// `yes`, or `no: ` and the reason.
        snapshots: String,
        /// Whether `start` can begin a trace: `yes`, or `no: ` and the reason.
        sessions: String,
        /// `tracing`, `recording` or `idle`.
        state: String,
        /// The sampling rate; 0 if the program is not traced, as all that follows.
        rate: f64,
        /// What tracing may cost, by the program's processor time; 0 if the rate does not change by
        /// itself.
        budget: f64,
        /// What it has cost since the trace began, in the same way.
        cost: f64,
        /// The size of the trace, or the memory of a recorder.
        bytes: u64,
        /// Sampled words.
        samples: u64,
        /// Sampled blocks that are not in the trace.
        lost: u64,
        /// The seconds that a recorder covers.
        covered: f64,
    }
}

answer! {
    /// The answer to `recorder`.
    Recorded {
        /// The directory with the files, which are a series.
        directory: PathBuf,
        /// Their bytes.
        bytes: u64,
        /// The seconds that they cover, until now.
        covered: f64,
        /// Why they cover less than was in memory; empty if they do not.
        cut_short: String,
    }
}

answer! {
    /// The answer to `start`.
    Started {
        /// The trace.
        file: PathBuf,
        /// Its rate.
        rate: f64,
    }
}

answer! {
    /// The answer to `stop`.
    Stopped {
        /// The trace.
        file: PathBuf,
        /// Its size.
        bytes: u64,
        /// Sampled words.
        samples: u64,
        /// Sampled blocks that are not in the trace.
        lost: u64,
        /// The words that the program has allocated meanwhile, by its collector's own counters; 0
        /// if they are not known.
        words: u64,
    }
}

answer! {
    /// The answer to `mark`, which has no words.
    Marked {}
}

answer! {
    /// The answer to `flush`, which has no words.
    Flushed {}
}

answer! {
    /// The answer to `budget`.
    Budgeted {
        /// The trace.
        file: PathBuf,
        /// The rate at this moment.
        rate: f64,
        /// As in [`Status`].
        budget: f64,
    }
}

answer! {
    /// The answer to `rotate` and `rate`.
    Rotated {
        /// The file that is written from now on.
        file: PathBuf,
    }
}
