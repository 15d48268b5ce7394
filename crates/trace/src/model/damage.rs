//! Damage to a trace: defects, where they are, and what is missing because of them.
//!
//! Each format has its own defects. Here a defect is a [`FormatDefect`], an error
//! with a message, so that the tools report the defects of any format in the same
//! manner. Code that knows the format gets its type back by
//! [`FormatDefect::downcast_ref`].

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

/// What a format says is wrong with a file.
pub trait TraceDefect: Error + PartialEq + Send + Sync + 'static {
    /// Why nothing can be read, if this is found where the file begins.
    fn unreadable(&self) -> Option<Unreadable>;
}

/// Why nothing of a file can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is empty.
    Empty,
    /// It does not begin like a trace.
    Other {
        /// The four bytes that it begins with.
        found: u32,
    },
    /// Its version of the format is unknown.
    Version {
        /// It is above those that are known.
        newer: bool,
    },
    /// It ends too early.
    Truncated,
}

/// A rule of a file format that the bytes break.
#[derive(Clone)]
pub struct FormatDefect(Arc<dyn AnyDefect>);

impl FormatDefect {
    /// A defect of some format.
    pub fn new<D: TraceDefect>(defect: D) -> Self {
        FormatDefect(Arc::new(defect))
    }

    /// See [`TraceDefect::unreadable`].
    pub fn unreadable(&self) -> Option<Unreadable> {
        self.0.unreadable()
    }

    /// The defect as the type that its format gives it; `None` for another type.
    pub fn downcast_ref<D: Error + 'static>(&self) -> Option<&D> {
        self.0.as_error().downcast_ref()
    }
}

impl fmt::Display for FormatDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for FormatDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl PartialEq for FormatDefect {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(other)
    }
}

impl Eq for FormatDefect {}

/// An error that can be compared with another of unknown type.
trait AnyDefect: Error + Send + Sync {
    fn as_error(&self) -> &(dyn Error + 'static);
    fn unreadable(&self) -> Option<Unreadable>;
    fn equals(&self, other: &FormatDefect) -> bool;
}

impl<D: TraceDefect> AnyDefect for D {
    fn as_error(&self) -> &(dyn Error + 'static) {
        self
    }

    fn unreadable(&self) -> Option<Unreadable> {
        TraceDefect::unreadable(self)
    }

    fn equals(&self, other: &FormatDefect) -> bool {
        other.downcast_ref() == Some(self)
    }
}

/// A defect and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Number of the packet in the file, from 0.
    pub packet: u64,
    /// Byte offset in the file.
    pub offset: u64,
    /// What is wrong there.
    pub defect: FormatDefect,
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}, packet {}: {}", self.offset, self.packet, self.defect)
    }
}

/// Why reading stopped.
#[derive(Debug)]
pub enum ReadError {
    /// The source failed.
    Io(io::Error),
    /// The trace is defective, and either the mode is strict or nothing in it is
    /// usable.
    Defect(Located),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "{error}"),
            ReadError::Defect(located) => write!(f, "{located}"),
        }
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReadError::Io(error) => Some(error),
            ReadError::Defect(_) => None,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        ReadError::Io(error)
    }
}

/// Why a trace does not cover its program to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutReason {
    /// The program was killed, or still runs.
    Unfinished,
    /// The file could not be written any further, for instance because the disk is full.
    WriteFailed,
}

/// A trace that does not cover its program to the end, and says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutShort {
    /// Why.
    pub reason: CutReason,
    /// Until when it covers the program: microseconds after its start, from the packets
    /// read so far.
    pub until: u64,
}

/// What a lenient reader found wrong, and what is missing because of it.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// The first defects, at most [`Losses::KEPT`].
    pub defects: Vec<Located>,
    /// The number of defects.
    pub defect_count: u64,
    /// The file ends inside a packet: the program was killed, or still runs.
    pub truncated: Option<Located>,
    /// The trace's own word that its end is missing. Traces of other writers have none.
    pub cut_short: Option<CutShort>,
    /// Packets with a readable header that were skipped.
    pub packets: u64,
    /// Bytes that were skipped, whole packets and others.
    pub bytes: u64,
    /// Allocations that are missing, according to the ids.
    pub allocations: u64,
    /// Packets of other processes, for instance after a fork.
    pub foreign_packets: u64,
    /// Allocations whose backtrace has lost frames.
    pub partial_backtraces: u64,
}

impl Losses {
    /// The most defects that are kept individually.
    pub const KEPT: usize = 64;

    /// Whether nothing is wrong and nothing is missing.
    pub fn is_clean(&self) -> bool {
        self.defect_count == 0 && self.truncated.is_none()
    }

    /// Counts a defect, which `located` describes if it is one of the first.
    pub(crate) fn note(&mut self, located: impl FnOnce() -> Located) {
        self.defect_count += 1;
        if self.defects.len() < Self::KEPT {
            self.defects.push(located());
        }
    }
}
