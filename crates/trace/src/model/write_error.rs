//! Why an event was not written.

use std::fmt;
use std::io;

use crate::model::event::Code;

/// Why an event was not written. The file contains nothing of it.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The output failed. What was written so far is a valid trace up to its
    /// last whole packet.
    Io(io::Error),
    /// The sampling rate is not above 0 and at most 1, the word size not 32 or
    /// 64, or the start time beyond the year 294,000.
    Info,
    /// A length does not fit 62 bits.
    Length(u64),
    /// A block of this length cannot have this number of samples.
    Samples(u64),
    /// A block id that was never assigned.
    Id(u64),
    /// A code of 0 or of more than 63 bits.
    Code(Code),
    /// A time before the domain's last, or more than 63 bits.
    Time(u64),
    /// A common prefix of more than 32 bits.
    CommonPrefix(u64),
    /// A second domain in version 2.
    Domain(u16),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Io(error) => write!(f, "{error}"),
            WriteError::Info => write!(f, "impossible trace info"),
            WriteError::Length(length) => write!(f, "block length {length} is over 62 bits"),
            WriteError::Samples(samples) => {
                write!(f, "impossible number of samples in one block: {samples}")
            }
            WriteError::Id(id) => write!(f, "object id {id} was not given out"),
            WriteError::Code(code) => write!(f, "location code {code:#x} is 0 or over 63 bits"),
            WriteError::Time(time) => write!(f, "time {time} µs is before the last event's"),
            WriteError::CommonPrefix(prefix) => write!(f, "common prefix of {prefix} frames"),
            WriteError::Domain(domain) => {
                write!(f, "domain {domain} in a trace of version 2, which has one domain")
            }
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WriteError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        WriteError::Io(error)
    }
}
