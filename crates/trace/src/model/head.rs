//! What the first bytes of a trace's file say, before any of it is decoded.

use crate::model::damage::CutReason;

/// Which process began a trace, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOrigin {
    /// The process id.
    pub pid: u64,
    /// Microseconds since the epoch.
    pub start_time: u64,
}

/// Whether a trace is complete, as its first bytes say. A writer that can change bytes of its
/// output sets this when it has begun the trace, and again at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The trace covers its program to the end, or its writer does not say.
    Complete = 0,
    /// It is being written, or the program was killed.
    Unfinished = 1,
    /// It could not be written any further.
    WriteFailed = 2,
}

impl Completion {
    /// What a copy says of itself if the original was cut short like this.
    pub fn of_copy(cut: Option<CutReason>) -> Completion {
        match cut {
            None => Completion::Complete,
            Some(CutReason::Unfinished) => Completion::Unfinished,
            Some(CutReason::WriteFailed) => Completion::WriteFailed,
        }
    }

    /// Why the trace is cut short, if it is.
    pub(crate) fn cut_reason(self) -> Option<CutReason> {
        match self {
            Completion::Complete => None,
            Completion::Unfinished => Some(CutReason::Unfinished),
            Completion::WriteFailed => Some(CutReason::WriteFailed),
        }
    }
}

/// What the first bytes of a trace's file say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHead {
    /// Who began the trace.
    pub origin: TraceOrigin,
    /// Whether it is complete.
    pub completion: Completion,
}

impl TraceHead {
    /// The number of bytes that [`TraceHead::of`] needs at most.
    pub const BYTES: usize = 38;

    /// How many bytes at the beginning of a file stay as they are once they are written, and
    /// tell the trace from another one.
    pub const FIXED: usize = 24;
}
