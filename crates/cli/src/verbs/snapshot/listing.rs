//! The processes that take commands.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heaptap_settings::{LISTEN, control};

use super::client::{Answer, Connection, listener};
use crate::exit_status::{VerbResult, Verdict};
use crate::io::notices::say;
use crate::io::output::print;
use crate::text::escape;
use crate::text::terminal::pad;

/// A process that does not say within this time what it is, is listed without it.
const LONGEST_SILENCE: Duration = Duration::from_secs(2);

/// Prints a line for each process of this user; root sees those of all users.
pub(super) fn run() -> VerbResult {
    let rows: BTreeMap<u32, [String; 4]> = sockets().iter().filter_map(|path| ask(path)).collect();
    if rows.is_empty() {
        say(&format!(
            "no process takes commands; start one by `heaptap run`, or with libheaptap.so in \
             LD_PRELOAD and {}=1",
            LISTEN.name
        ));
        return Ok(Verdict::Sound);
    }
    let title = ["PROGRAM", "RUNTIME", "TRACE", "SNAPSHOTS"].map(String::from);
    let pids = rows.keys().map(u32::to_string);
    let pids: Vec<String> = std::iter::once("PID".to_owned()).chain(pids).collect();
    let cells: Vec<&[String; 4]> = std::iter::once(&title).chain(rows.values()).collect();
    let widths: Vec<usize> = (0..4)
        .map(|column| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let pid_width = pids.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for (pid, row) in pids.iter().zip(&cells) {
        let padded: Vec<_> =
            row.iter().zip(&widths).map(|(cell, width)| pad(cell, *width)).collect();
        text += &format!("{pid:>pid_width$}  {}", padded.join("  "));
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    print(text.as_bytes())?;
    Ok(Verdict::Sound)
}

/// Every file that may be a control socket.
fn sockets() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = Vec::new();
    let own = std::env::var_os(control::RUNTIME_DIRECTORY).map(PathBuf::from);
    directories.extend(own.filter(|path| path.is_absolute()));
    let uid = rustix::process::geteuid().as_raw();
    let mut users = vec![PathBuf::from(format!("/run/user/{uid}"))];
    let mut found = vec![control::in_tmp(uid)];
    if uid == 0 {
        users.extend(entries("/run/user"));
        let in_tmp = entries("/tmp").into_iter();
        found.extend(in_tmp.filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("heaptap-"))
        }));
    }
    directories.extend(users);
    found.extend(directories.iter().map(|path| control::in_runtime_directory(path)));
    found.sort();
    found.dedup();
    found.iter().flat_map(entries).filter(|path| is_socket_name(path)).collect()
}

fn entries(directory: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn is_socket_name(path: &Path) -> bool {
    path.file_name().and_then(control::pid_of).is_some()
}

/// The row of the process behind a socket; `None` if nobody listens. A socket that a killed
/// process has left is removed.
fn ask(path: &Path) -> Option<(u32, [String; 4])> {
    let stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) => {
            if error.kind() == io::ErrorKind::ConnectionRefused {
                // Nobody can listen on it again.
                let _ = fs::remove_file(path);
            }
            return None;
        }
    };
    let pid = listener(&stream)?;
    let mut connection = Connection::new(stream, LONGEST_SILENCE).ok()?;
    let row = match connection.ask("status", || {}) {
        Answer::Done(words) => row(&words),
        Answer::Refused(why) => [String::new(), String::new(), String::new(), why],
        Answer::None(error) => {
            let cell = format!("does not answer: {error}");
            [String::new(), String::new(), String::new(), cell]
        }
    };
    Some((pid, row))
}

/// The cells of a process that has answered.
fn row(words: &[u8]) -> [String; 4] {
    let value = |key| control::value(control::words(words), key).unwrap_or_default();
    ["program", "runtime", "trace", "snapshots"].map(|key| {
        let text = value(key);
        let shown = escape::path(Path::new(&text)).to_string();
        if shown.is_empty() { "-".to_owned() } else { shown }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_what_the_process_says_and_nothing_that_harms_a_terminal() {
        let words = b"pid=7 program=server%1B[2J runtime=OCaml%204.14 trace= snapshots=yes new=1";
        let row = row(words);
        assert_eq!(row[1..], ["OCaml 4.14", "-", "yes"]);
        assert!(row[0].starts_with("server") && !row[0].contains('\x1b'), "{row:?}");
    }
}
