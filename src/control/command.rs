//! The lines of the protocol: `docs/control.md` describes it.
//!
//! A command is a line of words, separated by spaces. [`control::encode`] makes any
//! bytes a word. The answer is a line that begins with `ok` or `error`; before it there may be lines that
//! begin with another word.

use std::path::PathBuf;
use std::time::Duration;

use heaptap_settings::control;

use crate::snapshot::{Method, Order, Reason};

/// What a client asks for.
#[derive(Debug)]
pub(super) enum Command {
    /// `snapshot FILE [sync] [strings=N] [wait=SECONDS]`
    Snapshot(Order),
    /// `status`
    Status,
    /// `flush`
    Flush,
}

/// For the answer to an unknown command.
const KNOWN: &str = "snapshot FILE [sync] [strings=N] [wait=SECONDS], status, flush";

/// The command in a line, or why there is none.
pub(super) fn parse(line: &[u8]) -> Result<Command, String> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut words = control::words(line);
    let name = words.next().unwrap_or_default();
    let command = match name {
        b"snapshot" => return snapshot(words).map(Command::Snapshot),
        b"status" => Command::Status,
        b"flush" => Command::Flush,
        _ => {
            let name = control::encode(name.get(..40).unwrap_or(name));
            return Err(format!("unknown command `{name}`; known are: {KNOWN}"));
        }
    };
    match words.next() {
        None => Ok(command),
        Some(_) => Err(format!("{} takes no arguments", control::encode(name))),
    }
}

fn snapshot<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Result<Order, String> {
    let file = words.next().ok_or("snapshot needs the name of a file")?;
    let file =
        control::decode(file).ok_or("in the name of the file, `%` needs two hexadecimal digits")?;
    let path = PathBuf::from(file);
    if !path.is_absolute() || path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err("the name of the file must be absolute".into());
    }
    let mut order = Order::new(path, Reason::Request);
    for word in words {
        if word == b"sync" {
            order.method = Method::Synchronous;
        } else if let Some(bytes) = number(word, "strings=", u64::from(control::MAX_STRING_BYTES)) {
            order.string_bytes = bytes as u32;
        } else if let Some(patience) = seconds(word, "wait=") {
            order.patience = patience;
        } else {
            return Err(format!(
                "`{}` is not an option of snapshot: sync, strings=N (up to {} bytes) or \
                 wait=SECONDS (up to {}, also 0.5)",
                control::encode(word.get(..40).unwrap_or(word)),
                control::MAX_STRING_BYTES,
                control::MAX_WAIT_SECONDS
            ));
        }
    }
    Ok(order)
}

/// The time behind a key.
fn seconds(word: &[u8], key: &str) -> Option<Duration> {
    let text = word.strip_prefix(key.as_bytes())?;
    control::seconds(std::str::from_utf8(text).ok()?)
}

/// The number behind a key, if it is in range.
fn number(word: &[u8], key: &str, max: u64) -> Option<u64> {
    let digits = word.strip_prefix(key.as_bytes())?;
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()?;
    (number <= max).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn order(line: &str) -> Order {
        match parse(line.as_bytes()) {
            Ok(Command::Snapshot(order)) => order,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_snapshot_has_a_file_and_options() {
        let plain = order("snapshot /tmp/a%20b%25.heap");
        assert_eq!(plain.path, Path::new("/tmp/a b%.heap"));
        assert_eq!((plain.method, plain.string_bytes), (Method::CopyOnWrite, 0));
        assert_eq!((plain.reason, plain.patience), (Reason::Request, Order::PATIENCE));
        let all = order("snapshot  /x wait=60 strings=4096 sync \r");
        assert_eq!((all.method, all.string_bytes), (Method::Synchronous, 4096));
        assert_eq!(all.patience, Duration::from_secs(60));
        assert_eq!(order("snapshot /x wait=0.6").patience, Duration::from_millis(600));
    }

    #[test]
    fn the_other_commands_are_single_words() {
        assert!(matches!(parse(b"status"), Ok(Command::Status)));
        assert!(matches!(parse(b" flush \r"), Ok(Command::Flush)));
        assert!(parse(b"status now").unwrap_err().contains("no arguments"));
    }

    #[test]
    fn wrong_lines_are_answered_with_what_is_right() {
        for (line, part) in [
            (&b""[..], "known are: snapshot FILE"),
            (b"start /x 1", "unknown command `start`"),
            (b"SNAPSHOT /x", "known are"),
            (b"\xff\0\x1b[2J", "`%FF%00%1B[2J`"),
            (b"snapshot", "needs the name of a file"),
            (b"snapshot relative", "absolute"),
            (b"snapshot %2", "hexadecimal"),
            (b"snapshot /a%00b", "absolute"),
            (b"snapshot /x soon", "`soon` is not an option"),
            (b"snapshot /x strings=4097", "up to 4096"),
            (b"snapshot /x strings=", "strings=N"),
            (b"snapshot /x strings=-1", "strings=N"),
            (b"snapshot /x wait=3601", "up to 3600"),
            (b"snapshot /x wait=99999999999999999999", "wait=SECONDS"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(part), "{error}");
            assert!(error.is_ascii() && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn no_line_is_echoed_at_length() {
        let long = vec![b'x'; control::MAX_LINE];
        assert!(parse(&long).unwrap_err().len() < 300);
        let long = [b"snapshot /x ", &long[..]].concat();
        assert!(parse(&long).unwrap_err().len() < 300);
    }
}
