//! Why a program is not traced.

use std::ffi::CStr;
use std::fmt;

use heaptap_settings::Invalid;

use super::limits::TightLimit;

/// Why a runtime cannot be traced. One variant for each defect.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    /// An environment variable has a value that is not accepted.
    Setting(Invalid),
    /// A setting of traces has a value that is not accepted, which was reported.
    Settings,
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
    /// Somebody else has changed the function.
    Replaced(&'static CStr),
    /// Another copy of this library traces the program.
    OtherCopy,
    /// The program takes a profile of its own.
    InUse,
    /// The program's code cannot be written: the error number.
    Patch(i32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Setting(invalid) => write!(f, "{invalid}: correct or unset it"),
            Refusal::Settings => f.write_str(
                "one of its settings is wrong, as its standard error says: correct or unset it and \
                 start the program again",
            ),
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
            Refusal::Replaced(name) => write!(
                f,
                "another tool has changed its {}: remove that first",
                name.to_string_lossy()
            ),
            Refusal::OtherCopy => {
                f.write_str("another copy of heaptap's library is loaded into it: load one only")
            }
            Refusal::InUse => f.write_str(
                "it takes a profile of its own: have it call Gc.Memprof.stop (and \
                 Gc.Memprof.discard in OCaml 5) first",
            ),
            Refusal::Patch(errno) => {
                let error = std::io::Error::from_raw_os_error(*errno);
                write!(f, "its code cannot be changed: {error}")
            }
        }
    }
}
