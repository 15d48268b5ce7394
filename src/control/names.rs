//! The files of snapshots for which nobody has given a name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use heaptap_settings::{SNAPSHOT_FILE, file_name};

use crate::sys::name_pattern::{NameError, ProcessFacts, expand};
use crate::tracer::say;

/// The default, in the directory of the trace.
const DEFAULT: &str = "%e-%p-%n.heap";

/// Names one snapshot after the other.
pub(super) struct SnapshotNames {
    /// What the user chose, relative to `directory`. Its placeholders are known.
    pattern: Option<OsString>,
    /// For relative names, and if there is no trace.
    directory: PathBuf,
    /// The number of the next snapshot, from 1.
    next: AtomicU64,
}

impl SnapshotNames {
    /// For a forked child, whose names begin anew.
    pub(super) fn for_child(&self) -> SnapshotNames {
        let (pattern, directory) = (self.pattern.clone(), self.directory.clone());
        SnapshotNames { pattern, directory, next: AtomicU64::new(1) }
    }

    /// Reports a pattern that cannot be used, and uses the default then.
    pub(super) fn new(pattern: Option<OsString>, directory: PathBuf) -> SnapshotNames {
        let is_usable = |pattern: &OsString| match expand_number(pattern, 1, ProcessFacts::gather) {
            Ok(_) => true,
            Err(error) => {
                say(format_args!(
                    "{}={}: {error}, or %n for the number of a snapshot; snapshots are named \
                     {DEFAULT}",
                    SNAPSHOT_FILE.name,
                    pattern.display()
                ));
                false
            }
        };
        SnapshotNames { pattern: pattern.filter(is_usable), directory, next: AtomicU64::new(1) }
    }

    /// The absolute name of the next snapshot. `trace`: the file that the process traces into.
    pub(super) fn next(&self, trace: Option<&Path>) -> PathBuf {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.numbered(number, trace)
    }

    fn numbered(&self, number: u64, trace: Option<&Path>) -> PathBuf {
        let name = |pattern: &OsStr| {
            expand_number(pattern, number, ProcessFacts::gather).unwrap_or_default()
        };
        match &self.pattern {
            Some(pattern) => self.directory.join(name(pattern)),
            None => {
                let beside = trace.filter(|trace| trace.is_file()).and_then(Path::parent);
                beside.unwrap_or(&self.directory).join(name(OsStr::new(DEFAULT)))
            }
        }
    }
}

/// Replaces `%n` by a number, and all other placeholders.
fn expand_number(
    pattern: &OsStr,
    number: u64,
    facts: impl FnOnce() -> ProcessFacts,
) -> Result<PathBuf, NameError> {
    let number = file_name::literal(OsStr::new(&number.to_string()));
    let mut with_number = Vec::with_capacity(pattern.len());
    let mut bytes = pattern.as_bytes().iter();
    while let Some(&byte) = bytes.next() {
        match (byte, (byte == b'%').then(|| bytes.next()).flatten()) {
            (b'%', Some(b'n')) => with_number.extend_from_slice(number.as_bytes()),
            (byte, second) => with_number.extend([byte].iter().chain(second)),
        }
    }
    expand(&OsString::from_vec(with_number), facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pattern: Option<&str>) -> SnapshotNames {
        SnapshotNames::new(pattern.map(OsString::from), PathBuf::from("/cwd"))
    }

    #[test]
    fn numbers_count_up_and_other_placeholders_keep_their_meaning() {
        let names = names(Some("%n/%%n-%p-%n.heap"));
        let pid = std::process::id();
        assert_eq!(names.next(None), PathBuf::from(format!("/cwd/1/%n-{pid}-1.heap")));
        assert_eq!(names.next(None), PathBuf::from(format!("/cwd/2/%n-{pid}-2.heap")));
    }

    #[test]
    fn an_absolute_name_is_kept() {
        assert_eq!(names(Some("/t/%n")).next(None), Path::new("/t/1"));
        assert_eq!(names(Some("/t/same")).next(None), Path::new("/t/same"));
    }

    #[test]
    fn the_default_is_beside_the_trace() {
        let place = tempfile::tempdir().unwrap();
        let trace = place.path().join("trace.ctf");
        std::fs::write(&trace, b"").unwrap();
        let names = names(None);
        let own = std::env::current_exe().unwrap();
        let own = own.file_name().unwrap().to_str().unwrap();
        let name = |number: u32| format!("{own}-{}-{number}.heap", std::process::id());
        assert_eq!(names.next(Some(&trace)), place.path().join(name(1)));
        // A trace that is no file has no directory for others.
        assert_eq!(names.next(Some(Path::new("/dev/null"))), Path::new("/cwd").join(name(2)));
        assert_eq!(names.next(None), Path::new("/cwd").join(name(3)));
    }

    #[test]
    fn a_pattern_with_unknown_placeholders_is_not_used() {
        for pattern in ["%q", "a%", "%n%"] {
            assert_eq!(names(Some(pattern)).pattern, None, "{pattern}");
        }
    }
}
