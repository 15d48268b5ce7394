//! What a snapshot is ordered with, and what comes of it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::safe_point::{Cancellation, Unreached};

/// Why a snapshot is taken. The file says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// `heaptap snapshot PID`, over the control socket.
    Request,
    /// The program ends.
    Exit,
    /// The n-th major collection has ended.
    Major,
    /// A time has passed.
    Timer,
    /// A signal has come.
    Signal,
    /// Memory runs short.
    Pressure,
    /// The program called a function of ours.
    Program,
}

impl Reason {
    /// As the file has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reason::Request => "request",
            Reason::Exit => "exit",
            Reason::Major => "major collection",
            Reason::Timer => "timer",
            Reason::Signal => "signal",
            Reason::Pressure => "memory pressure",
            Reason::Program => "program",
        }
    }
}

/// Where the heap is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// In a copy of the process; the program stands still while the kernel copies its page
    /// tables. At the safe point if the process cannot be copied.
    CopyOnWrite,
    /// At the safe point. The program stands still for the whole walk.
    Synchronous,
}

impl Method {
    /// As the file has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::CopyOnWrite => "copy-on-write",
            Method::Synchronous => "synchronous",
        }
    }
}

/// A snapshot that is to be taken.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// The file's final name. A file of that name is replaced only if it is a snapshot.
    pub(crate) path: PathBuf,
    pub(crate) reason: Reason,
    pub(crate) method: Method,
    /// How many bytes of each string are included: 0 for no contents at all.
    pub(crate) string_bytes: u32,
    /// The longest wait for a safe point.
    pub(crate) patience: Duration,
    pub(crate) cancellation: Cancellation,
}

impl Order {
    /// The longest wait for a safe point, unless another is asked for.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

    pub(crate) fn new(path: PathBuf, reason: Reason) -> Order {
        Order {
            path,
            reason,
            method: Method::CopyOnWrite,
            string_bytes: 0,
            patience: Order::PATIENCE,
            cancellation: Cancellation::default(),
        }
    }
}

/// A snapshot that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) path: PathBuf,
    /// Where the heap was walked in the end.
    pub(crate) method: Method,
    pub(crate) blocks: u64,
    pub(crate) words: u64,
    pub(crate) roots: u64,
    /// The size of the file in bytes.
    pub(crate) bytes: u64,
    /// How long the program stood still.
    pub(crate) pause: Duration,
}

/// Why there is no snapshot. The program goes on.
#[derive(Debug)]
pub(crate) enum SnapshotError {
    /// No runtime here can be walked, with the reason.
    Unsupported(&'static str),
    /// Another snapshot is being taken.
    Busy,
    /// The program has not reached a safe point in time.
    NoSafePoint(Duration),
    /// Nobody waits for the snapshot any more.
    Cancelled,
    /// The file could not be made or written.
    File(PathBuf, io::Error),
    /// The file could not be written to its end.
    Write(io::Error),
    /// The file's final name belongs to something that is not a snapshot.
    Taken(PathBuf),
    /// The heap was not as expected, and why.
    Heap(&'static str),
    /// What the host reported about its heap was wrong, and why.
    Host(&'static str),
    /// The copy of the process ended without a result: by this signal, or with 0.
    CopyEnded(i32),
    /// There is no memory.
    Memory,
}

impl From<Unreached> for SnapshotError {
    fn from(unreached: Unreached) -> SnapshotError {
        match unreached {
            Unreached::NoRuntime => SnapshotError::Unsupported(NO_RUNTIME),
            Unreached::Late(waited) => SnapshotError::NoSafePoint(waited),
            Unreached::Cancelled => SnapshotError::Cancelled,
        }
    }
}

/// Why a program of an unknown runtime has no snapshots.
pub(super) const NO_RUNTIME: &str =
    "heaptap knows no runtime in this program whose heap it can walk";

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::Unsupported(why) => write!(f, "{why}"),
            SnapshotError::Busy => {
                f.write_str("another snapshot is being taken; try again when it is done")
            }
            SnapshotError::NoSafePoint(waited) => write!(
                f,
                "the program reached no point at which its heap can be walked within {} s: \
                 it computes without allocating or stays in C code, has threads that cannot be seen \
                 waiting, or hardly allocates and has code without -g (docs/snapshots.md); try again",
                waited.as_secs_f64()
            ),
            SnapshotError::Cancelled => f.write_str("nobody waits for the snapshot any more"),
            SnapshotError::File(path, error) => write!(f, "{}: {error}", path.display()),
            SnapshotError::Write(error) => {
                write!(f, "the file could not be written to its end: {error}")
            }
            SnapshotError::Taken(path) => write!(
                f,
                "{} exists and is not a heap snapshot; remove it or choose another name",
                path.display()
            ),
            SnapshotError::Heap(why) => {
                write!(f, "the heap is not as expected ({why}); please report this")
            }
            SnapshotError::Host(why) => {
                write!(f, "the program's own walk of its heap failed: {why}")
            }
            SnapshotError::CopyEnded(0) => {
                f.write_str("the copy of the process ended without a result")
            }
            SnapshotError::CopyEnded(libc::SIGKILL) => f.write_str(
                "the copy of the process was killed; if memory is short, ask for a synchronous \
                 snapshot",
            ),
            SnapshotError::CopyEnded(signal) => write!(
                f,
                "the copy of the process ended by signal {signal} while it walked the heap"
            ),
            SnapshotError::Memory => f.write_str("there is not enough memory"),
        }
    }
}
