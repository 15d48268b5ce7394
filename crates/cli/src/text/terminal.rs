//! The layout of text for people: width, colours, names cut to fit.
//!
//! On a terminal, width and colours are those of the terminal. In a file or a pipe
//! there are no colours, and names are whole. `NO_COLOR` and `COLUMNS` are
//! honoured.

use std::env;
use std::ffi::OsString;
use std::io::{IsTerminal, stdout};
use std::iter::repeat_n;
use std::sync::LazyLock;

use terminal_size::{Width, terminal_size};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The width and the colours of the output.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    /// Columns.
    pub(crate) width: usize,
    colour: bool,
}

impl Layout {
    /// The layout of standard output.
    pub(crate) fn of_stdout() -> Layout {
        let terminal = stdout().is_terminal();
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let asked = env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let found = || terminal_size().map(|(Width(width), _)| usize::from(width));
        let width = match asked {
            Some(width) => width,
            None if terminal => found().unwrap_or(80),
            None => usize::MAX,
        };
        Layout { width: width.max(40), colour: terminal && !is_dumb_terminal() && !set("NO_COLOR") }
    }

    /// A layout without colours.
    #[cfg(test)]
    pub(crate) fn plain(width: usize) -> Layout {
        Layout { width, colour: false }
    }

    /// Text that matters most.
    pub(crate) fn strong(&self, text: &str) -> String {
        self.with("1", text)
    }

    /// Text that matters least.
    pub(crate) fn faint(&self, text: &str) -> String {
        self.with("2", text)
    }

    /// Bad news.
    pub(crate) fn bad(&self, text: &str) -> String {
        self.with("31", text)
    }

    /// Good news.
    pub(crate) fn good(&self, text: &str) -> String {
        self.with("32", text)
    }

    fn with(&self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Whether the terminal can only print lines.
pub(crate) fn is_dumb_terminal() -> bool {
    env::var_os("TERM").is_some_and(|value| value == "dumb")
}

/// The number of columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A text in at most `columns` columns. A text that does not fit is cut in its
/// middle, since the ends of a name are more telling.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let head = take(text.chars(), room / 3);
    let tail = take(text.chars().rev(), room - room / 3);
    let tail: String = tail.chars().rev().collect();
    format!("{head}…{tail}")
}

/// The same for a path, of which the end is kept.
pub(crate) fn fit_path(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let tail = take(text.chars().rev(), columns.saturating_sub(1));
    let tail: String = tail.chars().rev().collect();
    // From the first whole name of a directory on, if there is one.
    let from = tail.find('/').unwrap_or(0);
    format!("…{}", &tail[from..])
}

/// The leading characters that fit.
pub(super) fn take(characters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    characters
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= columns
        })
        .collect()
}

/// The text, padded with spaces.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

/// Breaks a text between words, into lines of at most this many columns where words
/// allow it. A number stays together with its unit and its error: `2.5 MiB ± 3 %`.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text) {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(&word) <= columns => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// The same in lines that follow `indent` columns, joined.
pub(crate) fn wrap_indented(text: &str, indent: usize, columns: usize) -> String {
    wrap(text, columns.saturating_sub(indent)).join(&format!("\n{}", " ".repeat(indent)))
}

/// The same where a name is too long for a line: it is broken wherever the line ends, so that
/// all of it is there.
pub(crate) fn wrap_whole(text: &str, indent: usize, columns: usize) -> String {
    let room = columns.saturating_sub(indent).max(1);
    let mut lines = Vec::new();
    for line in wrap(text, room) {
        let mut rest = line.as_str();
        while width(rest) > room {
            let head = take(rest.chars(), room);
            rest = rest.strip_prefix(head.as_str()).unwrap_or("");
            // A character that is wider than the line.
            if head.is_empty() {
                break;
            }
            lines.push(head);
        }
        lines.push(rest.to_owned());
    }
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// The parts of a text that are not broken.
fn words(text: &str) -> Vec<String> {
    // A unit follows a number, and a number the sign of an error.
    let is_open = |words: &str| {
        let last = words.rsplit(' ').next().unwrap_or("").trim_start_matches(['(', '+', '-']);
        last == "±" || last.starts_with(|c: char| c.is_ascii_digit()) && !last.ends_with([',', ':'])
    };
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(last) if word == "±" || is_open(last) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Bars from the lowest to the highest.
pub(crate) static HEIGHTS: LazyLock<[char; 8]> = LazyLock::new(|| match is_ascii_locale() {
    true => ['_', '.', ':', '-', '=', '+', '*', '#'],
    false => ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
});

/// Whether the locale has a name, and that of another character set than UTF-8: `LC_ALL=C`. Without
/// one, as in most containers, terminals show UTF-8 nevertheless.
pub(crate) fn is_ascii_locale() -> bool {
    is_ascii_name(["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(env::var_os))
}

/// The same by the values of the variables, the first of which that is not empty counts.
fn is_ascii_name(mut values: impl Iterator<Item = OsString>) -> bool {
    let name = values.find(|value| !value.is_empty());
    name.is_some_and(|name| {
        let name = name.to_string_lossy().to_ascii_lowercase();
        !name.contains("utf-8") && !name.contains("utf8")
    })
}

/// A text for a terminal that shows ASCII only, of the same width.
pub(crate) fn in_ascii(text: &str) -> String {
    let mut ascii = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let pair = match character {
            '±' => "+-",
            '≥' => ">=",
            '≤' => "<=",
            _ => "",
        };
        match character {
            _ if character.is_ascii() => ascii.push(character),
            // The space behind makes room.
            '±' | '≥' | '≤' if rest.next_if_eq(&' ').is_some() => ascii.push_str(pair),
            '±' => ascii.push('~'),
            'µ' => ascii.push('u'),
            '…' => ascii.push('.'),
            '×' => ascii.push('x'),
            '←' => ascii.push('<'),
            '→' => ascii.push('>'),
            '↑' => ascii.push('^'),
            '↓' => ascii.push('v'),
            '▏' => ascii.push('|'),
            _ => ascii.extend(repeat_n('?', character.width().unwrap_or(0))),
        }
    }
    ascii
}

/// A line of bars, from 0 to the largest value, in at most `columns` columns.
pub(crate) fn sparkline(values: &[f64], columns: usize) -> String {
    let largest = values.iter().fold(0.0_f64, |most, &value| most.max(value));
    let columns = columns.min(values.len()).max(1);
    let mut line = String::new();
    for column in 0..columns {
        let (from, to) = (column * values.len() / columns, (column + 1) * values.len() / columns);
        let most = values.get(from..to).unwrap_or(&[]).iter().fold(0.0_f64, |a, &b| a.max(b));
        let height = if largest > 0.0 { most / largest * 7.0 } else { 0.0 };
        line.push(HEIGHTS[(height.round() as usize).min(7)]);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("indivisible", 4), ["indivisible"]);
        assert_eq!(
            wrap("about 2.5 MiB ± 3.1 % in 20 s", 16),
            ["about", "2.5 MiB ± 3.1 %", "in 20 s"]
        );
        assert_eq!(wrap_indented("one two three", 2, 9), "one two\n  three");
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap_whole("a /long/path", 2, 8), "a\n  /long/\n  path");
        assert_eq!(wrap_whole("日本語", 0, 4), "日本\n語");
        assert_eq!(wrap_whole("日本語", 4, 4), "日本語");
    }

    #[test]
    fn names_are_cut_in_their_middle() {
        assert_eq!(fit("short", 10), "short");
        assert_eq!(fit("Typecore.type_expect_", 12), "Typ…_expect_");
        assert_eq!(width(&fit("日本語日本語日本語", 8)), 7);
        assert_eq!(pad("日本", 6), "日本  ");
        assert_eq!(fit("anything", 0), "…");
        assert_eq!(fit_path("typing/typecore.ml", 12), "…typecore.ml");
        assert_eq!(fit_path("src/typing/typecore.ml", 16), "…/typecore.ml");
    }

    #[test]
    fn a_locale_without_utf_8_has_plain_bars() {
        let is_ascii = |values: &[&str]| is_ascii_name(values.iter().map(OsString::from));
        for values in [&["C"][..], &["POSIX", "de_DE.UTF-8"], &["", "en_US.ISO-8859-1"], &["de_DE"]]
        {
            assert!(is_ascii(values), "{values:?}");
        }
        for values in [&[][..], &["", "", ""], &["C.UTF-8", "C"], &["en_GB.utf8"], &["", "C.utf-8"]]
        {
            assert!(!is_ascii(values), "{values:?}");
        }
    }

    #[test]
    fn ascii_is_as_wide_as_what_it_stands_for() {
        let cases = [
            ("live 2.5 MiB ± 3 %, ≥ 7, ≤ 8", "live 2.5 MiB +-3 %, >=7, <=8"),
            ("      ±", "      ~"),
            ("Typ…_expect ←→ ↑ ↓ 5 µs", "Typ._expect <> ^ v 5 us"),
            ("日本", "????"),
        ];
        for (text, ascii) in cases {
            assert_eq!((in_ascii(text).as_str(), width(text)), (ascii, width(ascii)));
        }
    }

    #[test]
    fn a_plain_layout_has_no_colours() {
        assert_eq!(Layout::plain(80).strong("x"), "x");
        assert_eq!(Layout { width: 80, colour: true }.strong("x"), "\x1b[1mx\x1b[0m");
    }
}
