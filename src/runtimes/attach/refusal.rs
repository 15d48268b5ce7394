//! Why a program is not traced.

use std::ffi::CStr;
use std::fmt;

use heaptap_settings::Invalid;

use super::limits::TightLimit;

/// Why a runtime cannot be traced. One variant for each defect.
#[derive(Debug, PartialEq)]
pub(crate) enum Refusal {
    /// An environment variable has a value that is not accepted.
    Setting(Invalid),
    /// The process may not have enough memory or descriptors for both.
    Limit(TightLimit),
    /// A version of the runtime that is not supported.
    Version {
        /// Which it is.
        found: &'static str,
        /// The releases to use instead.
        supported: &'static str,
    },
    /// The runtime has no such symbol, or the function is too small for a jump.
    Symbol(&'static CStr),
    /// The function cannot be called once it is replaced.
    Original(&'static CStr),
    /// The runtime does not behave as its version should: in which respect.
    Layout(&'static str),
    /// Its heap cannot be walked: why.
    Snapshots(&'static str),
    /// The program's code cannot be written: the error number.
    Patch(i32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Setting(invalid) => write!(f, "{invalid}: correct or unset it"),
            Refusal::Limit(tight) => tight.fmt(f),
            Refusal::Version { found, supported } => {
                write!(f, "its runtime is {found}: use {supported}")
            }
            Refusal::Symbol(name) => {
                write!(f, "its runtime has no usable {}", name.to_string_lossy())
            }
            Refusal::Original(name) => {
                write!(f, "its {} cannot be called by a hook", name.to_string_lossy())
            }
            Refusal::Layout(part) => write!(f, "its runtime is not laid out as known: {part}"),
            Refusal::Snapshots(why) => f.write_str(why),
            Refusal::Patch(errno) => {
                let error = std::io::Error::from_raw_os_error(*errno);
                write!(f, "its code cannot be changed: {error}")
            }
        }
    }
}
