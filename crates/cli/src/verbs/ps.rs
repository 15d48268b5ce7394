//! `heaptap ps`: the processes that take commands.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use clap::Args;
use heaptap_client::{AskError, listening};
use heaptap_control::Status;
use heaptap_report::figures::units::bytes;
use heaptap_settings::LISTEN;
use serde_json::{Value, json};

use crate::exit_status::{VerbResult, Verdict};
use crate::io::notices::say;
use crate::io::output::print;
use crate::text::escape;
use crate::text::terminal::pad;

/// List the processes that take commands
///
/// Those of this user; root sees those of all users. A process takes commands if it was started by
/// `heaptap run`, or with the library loaded and `HEAPTAP_LISTEN=1` in its environment. One that is idle is
/// not traced, and nothing in it is changed until it is asked.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap ps
  heaptap ps --json

Exit status:
  0  the processes are listed, even if there are none
  2  a wrong call")]
pub(crate) struct Ps {
    /// Print an array of objects: pid, program, version, runtime, state, rate, budget, cost, file, bytes,
    /// samples, lost, covered (the seconds that a recorder has in memory), snapshots, sessions; or pid
    /// and error
    #[arg(long)]
    json: bool,
}

/// What each process says of itself.
type Listed = BTreeMap<u32, Result<Status, AskError>>;

impl Ps {
    pub(crate) fn run(&self) -> VerbResult {
        let listed = listening();
        if self.json {
            print(format!("{:#}\n", as_json(&listed)).as_bytes())?;
        } else if listed.is_empty() {
            say(&format!(
                "no process takes commands; start one by `heaptap run`, or with libheaptap.so in \
                 LD_PRELOAD and {}=1",
                LISTEN.name
            ));
        } else {
            print(table(&listed).as_bytes())?;
        }
        Ok(Verdict::Sound)
    }
}

const TITLES: [&str; 11] = [
    "PID", "PROGRAM", "RUNTIME", "STATE", "RATE", "BUDGET", "COST", "SIZE", "SAMPLES", "LOST",
    "TRACE",
];

fn table(listed: &Listed) -> String {
    let rows: Vec<[String; 11]> = std::iter::once(TITLES.map(String::from))
        .chain(listed.iter().map(|(pid, status)| row(*pid, status)))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 11] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                0 | 4..=9 => format!("{cell:>width$}"),
                _ => pad(cell, width),
            })
            .collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// The cells of a process, by what it says of itself.
fn row(pid: u32, status: &Result<Status, AskError>) -> [String; 11] {
    let shown = |text: &OsStr| match escape::path(text.as_ref()).to_string() {
        text if text.is_empty() => "-".to_owned(),
        text => text,
    };
    let pid = pid.to_string();
    match status {
        Ok(status) => {
            let Status { program, runtime, state, trace, .. } = status;
            let (program, runtime) = (shown(program), shown(OsStr::new(runtime)));
            let state = match (&**state, status.covered) {
                ("recording", covered) => format!("recording {covered:.0} s"),
                (state, _) => shown(OsStr::new(state)),
            };
            let none = || "-".to_owned();
            let [rate, budget, cost, size, samples, lost] = if trace.as_os_str().is_empty() {
                ["-"; 6].map(String::from)
            } else {
                let Status { rate, budget, cost, bytes: size, samples, lost, .. } = status;
                let budget = if *budget == 0.0 { none() } else { percent(*budget) };
                let (size, cost) = (bytes(*size as f64), percent(*cost));
                [short(*rate), budget, cost, size, samples.to_string(), lost.to_string()]
            };
            let trace = shown(trace.as_os_str());
            [pid, program, runtime, state, rate, budget, cost, size, samples, lost, trace]
        }
        Err(error) => {
            let [program, runtime, rate, budget, cost, size, samples, lost] =
                ["-"; 8].map(String::from);
            let state = "?".to_owned();
            let why = shown(error.to_string().as_ref());
            [pid, program, runtime, state, rate, budget, cost, size, samples, lost, why]
        }
    }
}

fn percent(share: f64) -> String {
    format!("{}%", (share * 1e6).round() / 1e4)
}

/// A rate in few digits: those under a budget are no round numbers.
fn short(rate: f64) -> String {
    let exact = rate.to_string();
    if exact.len() <= 7 { exact } else { format!("{rate:.2e}") }
}

fn as_json(listed: &Listed) -> Value {
    let entries = listed.iter().map(|(pid, status)| match status {
        Ok(status) => json!({
            "pid": pid,
            "program": status.program.to_string_lossy(),
            "version": status.version,
            "runtime": status.runtime,
            "state": status.state,
            "rate": status.rate,
            "budget": status.budget,
            "cost": status.cost,
            "file": status.trace.to_string_lossy(),
            "bytes": status.bytes,
            "samples": status.samples,
            "lost": status.lost,
            "covered": status.covered,
            "snapshots": status.snapshots,
            "sessions": status.sessions,
        }),
        Err(error) => json!({ "pid": pid, "error": error.to_string() }),
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_control::words::Words;

    fn listed() -> Listed {
        let tracing =
            b"pid=7 program=server%1B[2J runtime=OCaml%204.14 trace=/t/a.ctf state=tracing \
                        rate=0.001 bytes=2048 samples=12 lost=1 snapshots=yes new=1";
        let idle = b"pid=900 program=idle runtime=OCaml%205.3.0%20native trace= state=idle rate=0";
        let silent = AskError::Unanswered(std::io::ErrorKind::TimedOut.into());
        let statuses = [(7, Ok(Words(tracing).into())), (900, Ok(Words(idle).into()))];
        statuses.into_iter().chain([(8, Err(silent))]).collect()
    }

    #[test]
    fn the_table_has_what_each_process_says_and_nothing_that_harms_a_terminal() {
        let table = table(&listed());
        let lines: Vec<Vec<&str>> =
            table.lines().map(|line| line.split("  ").map(str::trim).collect()).collect();
        let cells = |line: &Vec<&str>| line.iter().filter(|cell| !cell.is_empty()).count();
        assert_eq!(
            lines[0].iter().filter(|cell| !cell.is_empty()).copied().collect::<Vec<_>>(),
            TITLES
        );
        assert!(lines.iter().take(2).all(|line| cells(line) == 11), "{table}");
        assert!(!table.contains('\x1b') && table.contains("does not answer"), "{table}");
        assert!(lines[1].contains(&"2.0 KiB") && lines[1].contains(&"tracing"), "{table}");
        assert!(lines[3].contains(&"idle") && lines[3].contains(&"-"), "{table}");
    }

    #[test]
    fn json_has_a_member_for_each_figure() {
        let json = as_json(&listed());
        assert_eq!((&json[0]["rate"], &json[0]["bytes"]), (&json!(0.001), &json!(2048)));
        assert_eq!((&json[2]["state"], &json[2]["file"]), (&json!("idle"), &json!("")));
        assert_eq!(json[1]["error"], "it does not answer");
    }
}
