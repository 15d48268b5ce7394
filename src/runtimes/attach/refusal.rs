//! Why a program is not traced.

use std::ffi::CStr;
use std::fmt;

/// Why a program is not traced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The runtime, but not one of the versions that are known.
    Version(&'static str),
    /// The runtime has no such symbol, or it is not what it should be.
    Symbol(&'static CStr),
    /// The runtime does not behave as its version should.
    Layout(&'static str),
    /// The text cannot be written.
    Patch(i32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Version(which) => write!(f, "its runtime is {which}"),
            Refusal::Symbol(name) => {
                write!(f, "its runtime has no usable {}", name.to_string_lossy())
            }
            Refusal::Layout(what) => write!(f, "its runtime is not laid out as known: {what}"),
            Refusal::Patch(errno) => {
                let error = std::io::Error::from_raw_os_error(*errno);
                write!(f, "its code cannot be changed: {error}")
            }
        }
    }
}
