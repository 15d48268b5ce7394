//! What the sidecar of a trace is called.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The name of the sidecar of a trace: the trace's, and `.probes`. If that were longer than file
/// systems allow, the end of the trace's name is replaced by a hash of the whole name.
#[must_use]
pub fn sidecar_name(trace: &OsStr) -> OsString {
    /// The longest name in a directory (`NAME_MAX`).
    const LONGEST: usize = 255;
    const SUFFIX: &str = ".probes";
    let bytes = trace.as_bytes();
    let directory = bytes.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let file = &bytes[directory..];
    let mut name = bytes.to_vec();
    if file.len() + SUFFIX.len() > LONGEST {
        let hash = format!("~{:016x}", fnv_1a(file));
        name.truncate(directory + LONGEST - SUFFIX.len() - hash.len());
        name.extend_from_slice(hash.as_bytes());
    }
    name.extend_from_slice(SUFFIX.as_bytes());
    OsString::from_vec(name)
}

/// The hash FNV-1a of 64 bits (Fowler, Noll and Vo).
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(trace: &str) -> String {
        sidecar_name(OsStr::new(trace)).into_string().unwrap()
    }

    #[test]
    fn it_is_the_traces_name_with_a_suffix() {
        assert_eq!(name("/t/a.ctf"), "/t/a.ctf.probes");
        let longest = format!("/t/{}", "x".repeat(248));
        assert_eq!(name(&longest), format!("{longest}.probes"));
    }

    #[test]
    fn a_long_name_is_shortened_and_stays_its_own() {
        let (one, other) = ("x".repeat(249), format!("{}y", "x".repeat(248)));
        let shortened = name(&format!("/t/{one}"));
        assert!(shortened.starts_with("/t/xxx") && shortened.ends_with(".probes"), "{shortened}");
        assert_eq!(shortened.len(), "/t/".len() + 255);
        assert_ne!(shortened, name(&format!("/t/{other}")));
        assert_eq!(name(&one).len(), 255);
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv_1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
