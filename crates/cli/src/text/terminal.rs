//! The page that a person reads: its width, its colours, names that fit it.
//!
//! Colours and widths are those of the terminal. In a file or a pipe there are
//! no colours and names are whole. `NO_COLOR` and `COLUMNS` are honoured.

use std::env;
use std::io::{IsTerminal, stdout};

use terminal_size::{Width, terminal_size};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// How to lay text out.
#[derive(Clone, Copy)]
pub(crate) struct Page {
    /// Columns.
    pub(crate) width: usize,
    colour: bool,
}

impl Page {
    /// That of standard output.
    pub(crate) fn of_stdout() -> Page {
        let terminal = stdout().is_terminal();
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
        let asked = env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let found = || terminal_size().map(|(Width(width), _)| usize::from(width));
        let width = match asked {
            Some(width) => width,
            None if terminal => found().unwrap_or(80),
            None => usize::MAX,
        };
        Page { width: width.max(40), colour: terminal && !dumb && !set("NO_COLOR") }
    }

    /// A page without colours.
    #[cfg(test)]
    pub(crate) fn plain(width: usize) -> Page {
        Page { width, colour: false }
    }

    /// What matters most.
    pub(crate) fn strong(&self, text: &str) -> String {
        self.with("1", text)
    }

    /// What matters least.
    pub(crate) fn faint(&self, text: &str) -> String {
        self.with("2", text)
    }

    /// What is bad.
    pub(crate) fn bad(&self, text: &str) -> String {
        self.with("31", text)
    }

    /// What is good.
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

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A text in at most so many columns: what does not fit goes from its middle,
/// since both ends of a name tell more.
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

/// The same for a path, whose end tells most.
pub(crate) fn fit_path(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let tail = take(text.chars().rev(), columns.saturating_sub(1));
    let tail: String = tail.chars().rev().collect();
    // Whole names of directories, if one is left.
    let from = tail.find('/').unwrap_or(0);
    format!("…{}", &tail[from..])
}

/// As many characters as fit.
fn take(characters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut used = 0;
    characters
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= columns
        })
        .collect()
}

/// The text, filled up with spaces.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_plain_page_has_no_colours() {
        assert_eq!(Page::plain(80).strong("x"), "x");
        assert_eq!(Page { width: 80, colour: true }.strong("x"), "\x1b[1mx\x1b[0m");
    }
}
