//! The processes that take commands.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use heaptap_client::{AskError, listening};
use heaptap_control::Status;
use heaptap_settings::LISTEN;

use crate::exit_status::{VerbResult, Verdict};
use crate::io::notices::say;
use crate::io::output::print;
use crate::text::escape;
use crate::text::terminal::pad;

/// Prints a line for each process of this user; root sees those of all users.
pub(super) fn run() -> VerbResult {
    let rows: BTreeMap<u32, [String; 4]> =
        listening().iter().map(|(pid, status)| (*pid, row(status))).collect();
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

/// The cells of a process, by what it says of itself.
fn row(status: &Result<Status, AskError>) -> [String; 4] {
    let why_not = |why: String| [String::new(), String::new(), String::new(), why];
    match status {
        Ok(Status { program, runtime, trace, snapshots, .. }) => {
            let cells = [program, OsStr::new(runtime), trace.as_os_str(), OsStr::new(snapshots)];
            cells.map(|text| if text.is_empty() { "-".to_owned() } else { shown(text) })
        }
        Err(AskError::Unanswered(error)) => why_not(format!("does not answer: {error}")),
        Err(error) => why_not(shown(error.to_string().as_ref())),
    }
}

fn shown(text: &OsStr) -> String {
    escape::path(text.as_ref()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_control::words::Words;

    #[test]
    fn a_row_shows_what_the_process_says_and_nothing_that_harms_a_terminal() {
        let words = b"pid=7 program=server%1B[2J runtime=OCaml%204.14 trace= snapshots=yes new=1";
        let row = row(&Ok(Words(words).into()));
        assert_eq!(row[1..], ["OCaml 4.14", "-", "yes"]);
        assert!(row[0].starts_with("server") && !row[0].contains('\x1b'), "{row:?}");
    }
}
