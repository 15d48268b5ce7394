//! JSON as every verb writes it: one object a line, safe to print.
//!
//! `serde_json` leaves DEL, the C1 controls and the invisible characters of
//! Unicode as they are, which a terminal might obey; here they become `\uNNNN`.
//! Names that are not UTF-8 get U+FFFD for what is not.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::text::escape::is_odd;

/// Compact, with odd characters escaped.
struct OneLine;

impl Formatter for OneLine {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, odd)) = rest.char_indices().find(|&(_, c)| is_odd(c)) {
            out.write_all(&rest.as_bytes()[..at])?;
            for unit in odd.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + odd.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

/// Writes a value and ends the line.
pub(crate) fn write<T: Serialize + ?Sized>(mut out: impl Write, value: &T) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut out, OneLine))?;
    out.write_all(b"\n")
}

/// A list that is made as it is written.
pub(crate) struct Sequence<F>(pub(crate) F);

impl<F, I> Serialize for Sequence<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// Adds a value to `line`.
pub(crate) fn put<T: Serialize + ?Sized>(line: &mut Vec<u8>, value: &T) {
    // Writing to a vector cannot fail, and our values have only string keys.
    let _ = value.serialize(&mut Serializer::with_formatter(line, OneLine));
}

/// Adds a name to `line`, in its quotes.
pub(crate) fn put_name(line: &mut Vec<u8>, name: &[u8]) {
    put(line, String::from_utf8_lossy(name).as_ref());
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_hostile_name_comes_back_from_json_and_contains_no_controls() {
        let name = "q\"\\ \n\u{7f}\u{9b}31m\u{202e}\u{e0041}é";
        let mut line = Vec::new();
        super::put_name(&mut line, name.as_bytes());
        let text = String::from_utf8(line).unwrap();
        assert!(!text.chars().any(super::is_odd), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), name);
    }
}
