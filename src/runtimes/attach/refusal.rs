//! Why a program is not traced.

use std::ffi::CStr;
use std::fmt;

/// Why a runtime cannot be traced. One variant for each defect.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A version of the runtime that is not supported.
    Version {
        /// Which it is.
        found: &'static str,
        /// The releases to use instead.
        supported: &'static str,
    },
    /// The runtime has no such symbol, or the function is too small for a jump.
    Symbol(&'static CStr),
    /// The runtime does not behave as its version should: in which respect.
    Layout(&'static str),
    /// The program's code cannot be written: the error number.
    Patch(i32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Version { found, supported } => {
                write!(f, "its runtime is {found}: use {supported}")
            }
            Refusal::Symbol(name) => {
                write!(f, "its runtime has no usable {}", name.to_string_lossy())
            }
            Refusal::Layout(part) => write!(f, "its runtime is not laid out as known: {part}"),
            Refusal::Patch(errno) => {
                let error = std::io::Error::from_raw_os_error(*errno);
                write!(f, "its code cannot be changed: {error}")
            }
        }
    }
}
