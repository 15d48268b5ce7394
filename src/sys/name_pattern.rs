//! Placeholders in the name of a trace file.
//!
//! `%p` is the process id, `%e` the program's base name, `%t` the start time in seconds
//! since the epoch, `%%` a percent sign. Names are bytes and need not be UTF-8.

use core::cell::LazyCell;
use core::fmt;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::program;

/// The values of the placeholders.
#[derive(Clone, Debug)]
pub(crate) struct ProcessFacts {
    pub(crate) pid: u32,
    pub(crate) executable: OsString,
    pub(crate) start_seconds: u64,
}

impl ProcessFacts {
    /// The values for this process at this time.
    pub(crate) fn gather() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            pid: std::process::id(),
            executable: program_name(),
            start_seconds: now.map_or(0, |now| now.as_secs()),
        }
    }
}

/// An invalid placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameError {
    /// `%` followed by this byte.
    Unknown(u8),
    /// `%` at the end of the name.
    Unfinished,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(byte) => write!(f, "`%{}`", byte.escape_ascii())?,
            Self::Unfinished => f.write_str("a `%` at the end")?,
        }
        f.write_str(" in the file's name means nothing: use %p, %e, %t, or %% for a percent sign")
    }
}

impl std::error::Error for NameError {}

/// Replaces the placeholders. Calls `facts` only if there are any.
pub(crate) fn expand(
    pattern: &OsStr,
    facts: impl FnOnce() -> ProcessFacts,
) -> Result<PathBuf, NameError> {
    let facts = LazyCell::new(facts);
    let mut name = Vec::with_capacity(pattern.len());
    let mut bytes = pattern.as_bytes().iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            name.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'p') => name.extend_from_slice(facts.pid.to_string().as_bytes()),
            Some(b't') => name.extend_from_slice(facts.start_seconds.to_string().as_bytes()),
            Some(b'e') => name.extend_from_slice(facts.executable.as_bytes()),
            Some(b'%') => name.push(b'%'),
            Some(&other) => return Err(NameError::Unknown(other)),
            None => return Err(NameError::Unfinished),
        }
    }
    Ok(OsString::from_vec(name).into())
}

/// The base name of the program, even if its file was replaced or deleted since.
fn program_name() -> OsString {
    let path = program::path();
    let name = path.file_name().unwrap_or(OsStr::new("unknown")).as_bytes();
    OsStr::from_bytes(name.strip_suffix(b" (deleted)").unwrap_or(name)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(pattern: &str) -> Result<String, NameError> {
        let facts =
            ProcessFacts { pid: 42, executable: "prog".into(), start_seconds: 1_700_000_000 };
        expand(pattern.as_ref(), || facts).map(|path| path.into_os_string().into_string().unwrap())
    }

    #[test]
    fn placeholders_are_replaced() {
        assert_eq!(expanded("plain.ctf").unwrap(), "plain.ctf");
        assert_eq!(expanded("/t/%e-%p@%t.ctf").unwrap(), "/t/prog-42@1700000000.ctf");
        assert_eq!(expanded("%%p%p%%").unwrap(), "%p42%");
        assert_eq!(expanded("").unwrap(), "");
    }

    #[test]
    fn an_invalid_placeholder_is_named() {
        assert_eq!(expanded("a%q"), Err(NameError::Unknown(b'q')));
        assert_eq!(expanded("a%"), Err(NameError::Unfinished));
        assert_eq!(expanded("a%%%"), Err(NameError::Unfinished));
        assert!(NameError::Unknown(b'q').to_string().starts_with("`%q` in the file's name"));
        assert!(NameError::Unknown(0xff).to_string().starts_with(r"`%\xff` in"));
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_kept() {
        let pattern = OsStr::from_bytes(b"\xff\xfe%p");
        let name = expand(pattern, || ProcessFacts { pid: 7, ..ProcessFacts::gather() }).unwrap();
        assert_eq!(name.as_os_str().as_bytes(), b"\xff\xfe7");
    }

    #[test]
    fn the_facts_of_this_process_are_right() {
        let facts = ProcessFacts::gather();
        assert_eq!(facts.pid, std::process::id());
        let own = std::env::current_exe().unwrap();
        assert_eq!(Some(&*facts.executable), own.file_name());
    }
}
