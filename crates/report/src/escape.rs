//! Escapes text from traces and file names, so that it is safe on a terminal and
//! stays on one line.
//!
//! A name in a trace can be any bytes. Printed raw, they could move the cursor,
//! change the terminal's title or fake another line. A backslash always begins an
//! escape, so the result is unambiguous: `\\`, `\xNN` for a byte, `\u{N}` for a
//! character.

use std::fmt::{self, Write as _};

/// Whether a character is unsafe to print: a control or an invisible one.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Appends `text` to `line`, escaped. ASCII characters for which `special` is true
/// are escaped too: those that have a meaning in the line.
pub fn put(line: &mut Vec<u8>, text: &[u8], special: fn(u8) -> bool) {
    let plain = |&byte: &u8| matches!(byte, b' '..=b'~') && byte != b'\\' && !special(byte);
    if text.iter().all(plain) {
        line.extend_from_slice(text);
        return;
    }
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            put_char(line, c, special);
        }
        for byte in chunk.invalid() {
            put_byte(line, *byte);
        }
    }
}

fn put_char(line: &mut Vec<u8>, c: char, special: fn(u8) -> bool) {
    match u8::try_from(c) {
        Ok(b'\\') => line.extend_from_slice(b"\\\\"),
        Ok(byte) if byte < 0x80 && (is_unprintable(c) || special(byte)) => put_byte(line, byte),
        _ if is_unprintable(c) => {
            line.extend_from_slice(format!("\\u{{{:x}}}", c as u32).as_bytes());
        }
        _ => line.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn put_byte(line: &mut Vec<u8>, byte: u8) {
    line.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
}

/// Displays bytes escaped, with spaces as they are.
pub struct Escaped<'a>(
    /// The bytes.
    pub &'a [u8],
);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = Vec::new();
        put(&mut line, self.0, |_| false);
        // `put` appends UTF-8 only, so nothing is lost here.
        for c in String::from_utf8_lossy(&line).chars() {
            f.write_char(c)?;
        }
        Ok(())
    }
}

/// Displays a path escaped.
pub fn path(path: &std::path::Path) -> Escaped<'_> {
    // On Unix a path's bytes as they are; the page has no paths.
    Escaped(path.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &[u8]) -> String {
        let mut line = Vec::new();
        put(&mut line, text, |byte| byte == b' ' || byte == b'@');
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        assert_eq!(line(b"Stdlib__list.iter"), "Stdlib__list.iter");
        assert_eq!(line("süß/日本.ml".as_bytes()), "süß/日本.ml");
        assert_eq!(Escaped(b"two words").to_string(), "two words");
    }

    #[test]
    fn what_would_break_a_line_or_a_terminal_is_escaped() {
        assert_eq!(line(b"a b@c"), "a\\x20b\\x40c");
        assert_eq!(line(b"\x1b[31m\n\x7f"), "\\x1b[31m\\x0a\\x7f");
        assert_eq!(line(b"back\\slash"), "back\\\\slash");
        assert_eq!(line(b"\xff\xfe"), "\\xff\\xfe");
        assert_eq!(line("\u{9b}31m".as_bytes()), "\\u{9b}31m");
        assert_eq!(line("\u{202e}txt\u{2028}".as_bytes()), "\\u{202e}txt\\u{2028}");
    }
}
