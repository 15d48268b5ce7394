//! The control socket: where it is, and the words of its lines. `docs/control.md`
//! describes the protocol.
//!
//! The plugin listens on one socket in each process, `PID.sock`, in a directory that
//! only its user can enter. `heaptap snapshot` finds it by the process id.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The variable of the user's runtime directory (XDG Base Directory Specification).
pub const RUNTIME_DIRECTORY: &str = "XDG_RUNTIME_DIR";

/// The most bytes of a line in either direction, without the newline at its end.
pub const MAX_LINE: usize = 16_384;

/// The longest that the plugin waits for a client's line, or for a client that does not
/// read its answer.
pub const CLIENT_SECONDS: u64 = 5;

/// How often a client that waits for a snapshot gets a line, in seconds.
pub const PROGRESS_SECONDS: u64 = 1;

/// The most bytes of a string that a snapshot can include.
pub const MAX_STRING_BYTES: u32 = 4096;

/// The longest wait for a safe point that a client can ask for, in seconds.
pub const MAX_WAIT_SECONDS: u64 = 3600;

/// A wait in seconds, such as `10` or `0.5`, up to [`MAX_WAIT_SECONDS`]; `None` for anything else.
pub fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    // Digits beyond nanoseconds do not matter.
    let nanoseconds = format!("{:0<9}", fraction.get(..9).unwrap_or(fraction));
    let wait = Duration::new(whole.parse().ok()?, nanoseconds.parse().ok()?);
    (wait <= Duration::from_secs(MAX_WAIT_SECONDS)).then_some(wait)
}

/// Below the user's runtime directory.
pub fn in_runtime_directory(directory: &Path) -> PathBuf {
    directory.join("heaptap")
}

/// For a user without a runtime directory.
pub fn in_tmp(uid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/heaptap-{uid}"))
}

/// The socket's name in its directory.
pub fn socket_name(pid: u32) -> String {
    format!("{pid}.sock")
}

/// The process whose socket has this name.
pub fn pid_of(name: &OsStr) -> Option<u32> {
    let pid: u32 = name.to_str()?.strip_suffix(".sock")?.parse().ok()?;
    (name == OsStr::new(&socket_name(pid))).then_some(pid)
}

/// Bytes as a word of a line: a space, a percent sign, control characters and what is
/// not ASCII are written as `%` and two hexadecimal digits.
pub fn encode(bytes: &[u8]) -> String {
    let mut word = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_graphic() && byte != b'%' {
            word.push(char::from(byte));
        } else {
            word.push_str(&format!("%{byte:02X}"));
        }
    }
    word
}

/// The bytes of a word; `None` if a percent sign is not followed by two hexadecimal
/// digits.
pub fn decode(word: &[u8]) -> Option<OsString> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(*rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push((high * 16 + low) as u8);
    }
    Some(OsString::from_vec(bytes))
}

/// The value of `key=` among the words of a line, decoded.
pub fn value<'a>(words: impl IntoIterator<Item = &'a [u8]>, key: &str) -> Option<OsString> {
    let values = words
        .into_iter()
        .filter_map(|word| word.strip_prefix(key.as_bytes())?.strip_prefix(b"=").and_then(decode));
    values.into_iter().next()
}

/// The words of a line.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
}

/// As [`encode`], for file names and other strings of the system.
pub fn encode_os(text: impl AsRef<OsStr>) -> String {
    encode(text.as_ref().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_a_line() {
        let all: Vec<u8> = (0..=255).collect();
        let word = encode(&all);
        assert!(word.bytes().all(|byte| byte.is_ascii_graphic()), "{word}");
        assert_eq!(decode(word.as_bytes()), Some(OsString::from_vec(all)));
        assert_eq!(encode(b"/tmp/a b%.heap"), "/tmp/a%20b%25.heap");
        assert_eq!(encode_os("/tmp/plain.heap"), "/tmp/plain.heap");
    }

    #[test]
    fn a_percent_sign_needs_two_digits() {
        for word in ["%", "%4", "%zz", "a%4", "%+1", "%%41"] {
            assert_eq!(decode(word.as_bytes()), None, "{word}");
        }
        assert_eq!(decode(b"%4a%4A"), Some("JJ".into()));
    }

    #[test]
    fn values_are_found_by_their_keys() {
        let line = b"ok  blocks=12 file=/a%20b blocks=13";
        assert_eq!(value(words(line), "blocks"), Some("12".into()));
        assert_eq!(value(words(line), "file"), Some("/a b".into()));
        assert_eq!(value(words(line), "block"), None);
        assert_eq!(value(words(line), "roots"), None);
    }

    #[test]
    fn waits_have_fractions_and_a_limit() {
        let millis = |text| seconds(text).map(|wait| wait.as_millis());
        assert_eq!([millis("10"), millis("0"), millis("0.6")], [Some(10_000), Some(0), Some(600)]);
        assert_eq!([millis("1.50"), millis("3600.0")], [Some(1_500), Some(3_600_000)]);
        assert_eq!(seconds("0.1234567891234"), Some(Duration::from_nanos(123_456_789)));
        for wrong in ["", ".", ".5", "1.", "-1", "+1", "1e3", "1.2.3", "3600.1", "inf", " 1", "1_0"]
        {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
        assert_eq!(seconds("99999999999999999999"), None);
    }

    #[test]
    fn a_socket_is_named_after_its_process() {
        assert_eq!(pid_of(OsStr::new(&socket_name(4711))), Some(4711));
        for name in ["sock", ".sock", "x.sock", "+1.sock", "01.sock", "1.sock.new", "1"] {
            assert_eq!(pid_of(OsStr::new(name)), None, "{name}");
        }
        assert_eq!(in_tmp(1000), Path::new("/tmp/heaptap-1000"));
        assert_eq!(
            in_runtime_directory(Path::new("/run/user/0")),
            Path::new("/run/user/0/heaptap")
        );
    }
}
