//! A line of words, separated by spaces. Any bytes can be a word.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::str::FromStr;

/// Bytes as a word: a space, a percent sign, control characters and what is not ASCII are
/// written as `%` and two hexadecimal digits. Printing it takes no memory.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a>(pub &'a [u8]);

/// A file's name or another text as a word.
pub fn word<T: AsRef<OsStr> + ?Sized>(text: &T) -> Word<'_> {
    Word(text.as_ref().as_bytes())
}

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|&byte| match byte {
            b'!'..=b'~' if byte != b'%' => f.write_char(char::from(byte)),
            _ => write!(f, "%{byte:02X}"),
        })
    }
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

/// The words of a line, as they are written.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a>(pub &'a [u8]);

impl<'a> Words<'a> {
    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
    }

    /// The value of the first `key=`, decoded.
    pub fn value(self, key: &str) -> Option<OsString> {
        let is_value = |word: &'a [u8]| word.strip_prefix(key.as_bytes())?.strip_prefix(b"=");
        self.iter().filter_map(is_value).find_map(decode)
    }

    /// The same as a number or another value; zero or empty if there is none.
    pub fn read<T: Value + Default>(self, key: &str) -> T {
        self.value(key).and_then(T::read).unwrap_or_default()
    }
}

/// What is behind a key.
pub trait Value: Sized {
    /// As text, before it is a word.
    fn write(&self) -> OsString;
    /// `None` if the text is no such value.
    fn read(text: OsString) -> Option<Self>;
}

macro_rules! values {
    ($($type:ty: $write:expr, $read:expr;)*) => {$(
        impl Value for $type {
            fn write(&self) -> OsString {
                $write(self)
            }

            fn read(text: OsString) -> Option<Self> {
                $read(text)
            }
        }
    )*};
}

values! {
    u32: print, parse;
    u64: print, parse;
    f64: print, parse;
    String: print, parse;
    OsString: Clone::clone, Some;
    PathBuf: OsString::from, |text| Some(PathBuf::from(text));
}

fn print(value: &impl ToString) -> OsString {
    value.to_string().into()
}

fn parse<T: FromStr>(text: OsString) -> Option<T> {
    text.into_string().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_a_line() {
        let all: Vec<u8> = (0..=255).collect();
        let written = Word(&all).to_string();
        assert!(written.bytes().all(|byte| byte.is_ascii_graphic()), "{written}");
        assert_eq!(decode(written.as_bytes()), Some(OsString::from_vec(all)));
        assert_eq!(word("/tmp/a b%.heap").to_string(), "/tmp/a%20b%25.heap");
        assert_eq!(word("/tmp/plain.heap").to_string(), "/tmp/plain.heap");
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
        let line = Words(b"ok  blocks=12 file=/a%20b blocks=13 text=%");
        assert_eq!((line.value("blocks"), line.read::<u64>("blocks")), (Some("12".into()), 12));
        assert_eq!(line.value("file"), Some("/a b".into()));
        assert_eq!((line.value("block"), line.read::<u64>("block")), (None, 0));
        assert_eq!((line.value("roots"), line.read::<String>("roots")), (None, String::new()));
        assert_eq!(line.value("text"), None);
    }
}
