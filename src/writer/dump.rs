//! What is kept in memory is to be written to files: why, where, and what came of it.

use std::path::PathBuf;
use std::time::Duration;

/// Why it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DumpReason {
    Asked,
    Pressure,
    Exit,
    UncaughtException,
    Signal(i32),
}

impl DumpReason {
    /// A number for a shared word in which 0 means none.
    pub(super) fn number(self) -> u32 {
        match self {
            DumpReason::Asked => 1 << 16,
            DumpReason::Pressure => 2 << 16,
            DumpReason::Exit => 3 << 16,
            DumpReason::UncaughtException => 4 << 16,
            DumpReason::Signal(signal) => (signal as u32 & 0xffff).max(1),
        }
    }

    /// The reason with this number.
    pub(super) fn from_number(number: u32) -> Option<DumpReason> {
        match (number >> 16, number & 0xffff) {
            (0, 0) => None,
            (0, signal) => Some(DumpReason::Signal(signal as i32)),
            (1, _) => Some(DumpReason::Asked),
            (2, _) => Some(DumpReason::Pressure),
            (3, _) => Some(DumpReason::Exit),
            _ => Some(DumpReason::UncaughtException),
        }
    }
}

/// What is to be written.
#[derive(Clone, Debug)]
pub(crate) struct DumpOrder {
    pub(crate) reason: DumpReason,
    /// A directory that is made for it; `None` for the next one of the session's own.
    pub(crate) directory: Option<PathBuf>,
}

/// What was written.
#[derive(Clone, Debug)]
pub(crate) struct Dumped {
    pub(crate) directory: PathBuf,
    pub(crate) bytes: u64,
    /// The time that it covers, until now.
    pub(crate) covered: Duration,
    /// Why it covers less than is kept, if it does.
    pub(crate) cut_short: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_a_number_of_its_own() {
        let reasons = [
            DumpReason::Asked,
            DumpReason::Pressure,
            DumpReason::Exit,
            DumpReason::UncaughtException,
            DumpReason::Signal(libc::SIGTERM),
            DumpReason::Signal(libc::SIGSEGV),
        ];
        for reason in reasons {
            assert_eq!(DumpReason::from_number(reason.number()), Some(reason));
        }
        assert_eq!(DumpReason::from_number(0), None);
    }
}
