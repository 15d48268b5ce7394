//! `heaptap probes`: what a program says of itself.

mod csv;
mod tail;
mod text;

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use heaptap_report::Regex;
use heaptap_report::figures::probes::figures::ProbeFigures;

use crate::analysis::filters::parse_time;
use crate::exit_status::{Failure, VerbResult, Verdict, help_end};
use crate::io::newest::named_or_newest;
use crate::io::notices::say;
use crate::io::output::{print, print_json};
use crate::io::sidecar::read_sidecar;
use crate::text::terminal::Layout;

/// Show a program's own probes and its log
///
/// A traced program may count, time and measure what it does, tag values whose number and
/// size are of interest, and write a log. All of that is in FILE.probes, beside its trace
/// FILE. A rate is that of the last second, then that since the probe was opened, or since FILE
/// began, if the program wrote another file before. Totals include what was before. Sizes of
/// tagged values are those of all they reach; ≥ where measuring them was cut short.
///
/// The time line of the collector, in the same file, is shown by `heaptap report --timeline`.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap probes trace.ctf
  heaptap probes trace.ctf --name '^parser/' --at 90s
  heaptap probes trace.ctf --log --name error
  heaptap probes trace.ctf --follow
  heaptap probes trace.ctf --csv > probes.csv"
))]
pub(crate) struct Probes {
    /// Traces or their sidecars; `-` for a sidecar on standard input [default: the newest trace
    /// in this directory]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,

    /// Only probes whose names match, and lines of the log that do
    #[arg(long, value_name = "REGEX")]
    name: Option<String>,

    /// The state at this time, counted from the start: 90s, 1.5min
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<u64>,

    /// Print the log only
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    log: bool,

    /// Print the log as it is written, until the program ends
    #[arg(long, conflicts_with_all = ["json", "csv", "at"])]
    follow: bool,

    /// Print one JSON object for each file
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print all states of all probes and the log as comma-separated values
    #[arg(long, conflicts_with = "at")]
    csv: bool,
}

impl Probes {
    pub(crate) fn run(&self) -> VerbResult {
        let pattern = self.name.as_deref().map(Regex::new).transpose();
        let pattern = pattern.map_err(|error| {
            Failure::Trouble(format!(
                "--name {}: {error}",
                self.name.as_deref().unwrap_or_default()
            ))
        })?;
        let wanted =
            |name: &str| pattern.as_ref().is_none_or(|pattern| pattern.is_match(name.as_bytes()));
        let files = named_or_newest(&self.files)?;
        if self.follow {
            return match &files[..] {
                [file] => tail::log(file, &wanted),
                _ => Err(Failure::Trouble("--follow takes one file".to_owned())),
            };
        }
        if self.csv {
            print(csv::heading(self.files.len() > 1).as_bytes())?;
        }
        let mut verdict = Verdict::Sound;
        for (number, file) in files.iter().enumerate() {
            match self.show(file, number > 0, &wanted) {
                Ok(found) => verdict = verdict.max(found),
                // Of several files, those that cannot be read are left out.
                Err(Failure::Trouble(message)) if self.files.len() > 1 => {
                    say(&message);
                    verdict = Verdict::LeftOut;
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(verdict)
    }

    fn show(&self, file: &Path, follows: bool, wanted: &dyn Fn(&str) -> bool) -> VerbResult {
        let (name, mut read) = read_sidecar(file)?;
        let (finding, verdict) = read.finding();
        if self.csv {
            let name = (self.files.len() > 1).then_some(name.as_str());
            csv::print_all(name, &read.history, wanted)?;
        } else {
            let mut figures = ProbeFigures::of(&name, &read.history, self.at, wanted);
            figures.damage = read.damage();
            figures.log.retain(|line| !self.log || wanted(&line.text));
            let layout = Layout::of_stdout();
            match (self.json, self.log) {
                (true, _) => print_json(&figures)?,
                (_, true) => print(text::log(&figures).as_bytes())?,
                _ => {
                    let gap = if follows { "\n" } else { "" };
                    print(format!("{gap}{}", text::report(&figures, layout)).as_bytes())?;
                }
            }
        }
        finding.iter().for_each(|finding| say(&format!("{name}: {finding}")));
        Ok(verdict)
    }
}
