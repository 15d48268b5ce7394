//! JSON on one line, safe to print on a terminal.
//!
//! `serde_json` writes DEL, the C1 controls and the invisible characters of
//! Unicode as they are, and a terminal might obey them; here they become
//! `\uNNNN`. In names, bytes that are not UTF-8 become U+FFFD.

use std::io::{self, Write};

use heaptap_report::escape::is_unprintable;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Compact, with unprintable characters escaped.
struct OneLine;

impl Formatter for OneLine {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, unprintable)) = rest.char_indices().find(|&(_, c)| is_unprintable(c)) {
            out.write_all(&rest.as_bytes()[..at])?;
            for unit in unprintable.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + unprintable.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

/// Writes a value and ends the line.
pub fn write<T: Serialize + ?Sized>(mut out: impl Write, value: &T) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut out, OneLine))?;
    out.write_all(b"\n")
}

/// A list that is produced while it is written, by the iterator that the function
/// returns.
pub struct Sequence<F>(
    /// Called once for each time that the list is written.
    pub F,
);

impl<F, I> Serialize for Sequence<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// Appends a value to `line`.
pub fn put<T: Serialize + ?Sized>(line: &mut Vec<u8>, value: &T) {
    // Writing to a vector cannot fail, and the keys of our values are strings.
    let _ = value.serialize(&mut Serializer::with_formatter(line, OneLine));
}

/// Appends a name to `line`, in quotes.
pub fn put_name(line: &mut Vec<u8>, name: &[u8]) {
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
        assert!(!text.chars().any(super::is_unprintable), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), name);
    }
}
