//! The result of a verb, and the exit status that follows from it.
//!
//! | status | meaning |
//! |---|---|
//! | 0 | the trace is sound; at most its tail was cut off |
//! | 1 | the trace is defective; what could be read of it was used |
//! | 2 | a wrong call, a file that is no trace, or one that could not be read or written |
//! | 3 | `diff --fail-over`: it grew by more than the limit; `doctor`: something is wrong |
//! | 4 | `diff --fail-over`: a trace is incomplete, so that nothing is said about growth; `doctor`: it cannot be told |
//! | 126, 127 | `run` alone: the program cannot be executed, or was not found |
//!
//! A trace is defective for every verb alike: if packets are damaged or missing, or if
//! an object is promoted or collected twice, in the wrong order or without having
//! been allocated. A file is no trace if it is empty, begins otherwise, is of a later
//! version of the format, or ends inside its first packet. Of several traces, those that
//! cannot be read are named and left out, the others are used, and the status is 2.

use std::io;
use std::process::ExitCode;

/// The end of every verb's help.
macro_rules! help_end {
    ($examples:literal) => {
        concat!(
            "Examples:\n",
            $examples,
            "\n\nExit status:\n",
            "  0  the trace is sound; at most its tail was cut off\n",
            "  1  the trace is defective; what could be read of it was used\n",
            "  2  a wrong call, a file that is no trace, or one that could not be read or\n",
            "     written"
        )
    };
}
pub(crate) use help_end;

/// The same for a verb that can fail a build.
macro_rules! gate_help_end {
    ($examples:literal) => {
        concat!(
            $crate::exit_status::help_end!($examples),
            "\n  3  with --fail-over: it grew by more than the limit\n",
            "  4  with --fail-over: a trace is incomplete, so that growth is not known"
        )
    };
}
pub(crate) use gate_help_end;

/// The verdict on the trace.
/// Of several traces, the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Sound,
    Defective,
    /// It grew by more than was allowed.
    OverLimit,
    /// Something is wrong with the program.
    Found,
    /// Whether it grew by more, or whether something is wrong, cannot be said.
    Undecided,
    /// One of several traces could not be read, and is left out.
    LeftOut,
}

/// Why a verb could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing can be made of the trace.
    Defective(String),
    /// The call is wrong, or a file cannot be read or written.
    Trouble(String),
    /// The program to run could not be started.
    NotStarted {
        message: String,
        /// As shells have it: 126 or 127.
        status: u8,
    },
    /// The reader of our output closed the pipe, which is not an error.
    PipeClosed,
}

/// What every verb returns.
pub(crate) type VerbResult = Result<Verdict, Failure>;

impl Failure {
    /// The message for standard error, if there is one.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Failure::Defective(message)
            | Failure::Trouble(message)
            | Failure::NotStarted { message, .. } => Some(message),
            Failure::PipeClosed => None,
        }
    }

    /// Writing to the output called `name` failed.
    pub(crate) fn writing(name: &str, error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::PipeClosed,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Failure::Trouble(format!("{name}: {error}; make room or write elsewhere"))
            }
            _ => Failure::Trouble(format!("{name}: cannot be written: {error}")),
        }
    }
}

/// The exit status of the process.
pub(crate) fn exit_code(result: &VerbResult) -> ExitCode {
    match result {
        Ok(Verdict::Sound) | Err(Failure::PipeClosed) => ExitCode::SUCCESS,
        Ok(Verdict::Defective) | Err(Failure::Defective(_)) => ExitCode::from(1),
        Ok(Verdict::LeftOut) | Err(Failure::Trouble(_)) => ExitCode::from(2),
        Ok(Verdict::OverLimit | Verdict::Found) => ExitCode::from(3),
        Ok(Verdict::Undecided) => ExitCode::from(4),
        Err(Failure::NotStarted { status, .. }) => ExitCode::from(*status),
    }
}
