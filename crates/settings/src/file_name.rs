//! Placeholders in the name of a trace file: which there are, and how to write a name
//! that has none.
//!
//! `%p` is the process id, `%e` the program's name, `%t` the time in seconds, `%%` a
//! percent sign. Only the plugin expands them, in the traced process. Names are bytes
//! and need not be UTF-8.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Whether the name contains `%p`, so that each process gets its own file.
pub fn has_pid(pattern: &OsStr) -> bool {
    let mut bytes = pattern.as_bytes().iter();
    while let Some(byte) = bytes.next() {
        if *byte == b'%' && bytes.next() == Some(&b'p') {
            return true;
        }
    }
    false
}

/// The pattern that stands for `name` itself: its percent signs are doubled.
pub fn literal(name: &OsStr) -> OsString {
    let mut pattern = Vec::with_capacity(name.len());
    for &byte in name.as_bytes() {
        pattern.push(byte);
        if byte == b'%' {
            pattern.push(b'%');
        }
    }
    OsString::from_vec(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_placeholder_is_found() {
        for (pattern, has) in [("%p", true), ("a%tb%p", true), ("%%p", false), ("p%", false)] {
            assert_eq!(has_pid(pattern.as_ref()), has, "{pattern}");
        }
    }

    #[test]
    fn a_literal_has_no_placeholder() {
        assert_eq!(literal("/a/50%p/b".as_ref()), "/a/50%%p/b");
        assert!(!has_pid(&literal("%p%%p".as_ref())));
        let bytes = OsStr::from_bytes(b"\xff%");
        assert_eq!(literal(bytes).as_bytes(), b"\xff%%");
    }
}
