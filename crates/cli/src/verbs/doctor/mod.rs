//! `heaptap doctor`: one verdict on a program's memory, from all that can be found out.
//!
//! - `options`: how a program is watched; `folder`: where the files go that are made.
//! - `session`: begins and ends what a running program is asked for; `watch`: follows it, with snapshots; `launch`: starts a
//!   program for it.
//! - `text`: the diagnosis on one screen.

mod folder;
mod launch;
mod options;
mod session;
mod text;
mod watch;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use heaptap_client::Process;
use heaptap_report::diagnosis::{Diagnosis, Evidence, Outcome, diagnose};

use crate::analysis::evidence::{EvidenceFiles, gather};
use crate::analysis::page_diagnosis::add_sources;
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::attaching::interruption::Interruption;
use crate::io::output::{Output, print_figures};
use crate::io::running;
use crate::io::source_files::SourceRoots;
use crate::text::doctor_page;
use folder::Folder;
use options::WatchOptions;
use session::Session;
use watch::{Schedule, Watch};

/// Find out what is wrong with a program's memory
///
/// Of a program that runs, give its number: it is traced for the time of --for, as by `heaptap attach` or
/// `heaptap start`, heap snapshots are taken meanwhile, and everything that was started is stopped again. One that is
/// traced already is only watched. Behind `--`, a program is started for it. Of a run that is over, give its
/// traces and snapshots.
///
/// The diagnosis says what grows, who holds it, and on which line it is allocated; or what else is wrong; or that nothing
/// is; or with which command it can be told. It is one screen long. With -o all files are kept, with a page that
/// shows the evidence.
///
/// A leak that is sure ends the watching early if the program is older than a minute; Ctrl-C ends it with what is known.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap doctor 4711
  heaptap doctor 4711 --for 10m -o diagnosis
  heaptap doctor -- ./server --port 80
  heaptap doctor trace.ctf before.heap after.heap
  heaptap doctor --json diagnosis | jq '.findings[0].holder.name'

Exit status:
  0  nothing wrong was seen
  2  a wrong call, a program that cannot be watched, or files that cannot be read
  3  something is wrong
  4  it cannot be told")]
pub(crate) struct Doctor {
    /// The number of a process, or the name of a program that takes commands; or traces, snapshots, or a directory with both
    #[arg(value_name = "PID|FILE", required_unless_present = "command", value_hint = ValueHint::AnyPath)]
    targets: Vec<PathBuf>,

    /// A program to start, and its arguments
    #[arg(value_name = "PROGRAM", last = true, conflicts_with = "targets", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    #[command(flatten)]
    watch: WatchOptions,

    /// Keep all files in this directory, with a page of the diagnosis, `doctor.html`. Default: they are
    /// kept in a temporary directory if something is wrong
    #[arg(short, long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Where the source files are, for the page; may be given several times [default: the current directory]
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    source_root: Vec<PathBuf>,
}

/// How long a program is watched.
const USUAL_SPAN: Duration = Duration::from_secs(60);

impl Doctor {
    pub(crate) fn run(&self) -> VerbResult {
        self.watch.types.check(false)?;
        if !self.command.is_empty() {
            return self.of_command();
        }
        match self.process()? {
            Some(process) => self.of_process(process),
            None => self.of_files(),
        }
    }

    /// The process that the one argument stands for, unless it is, or is called, a file.
    fn process(&self) -> Result<Option<Process>, Failure> {
        let [one] = &self.targets[..] else { return Ok(None) };
        let is_called_file = one.components().count() > 1
            || one.extension().is_some_and(|end| end == "ctf" || end == "heap");
        if one.exists() || is_called_file {
            return Ok(None);
        }
        running::find(one.as_os_str()).map(Some)
    }

    fn of_files(&self) -> VerbResult {
        let files = EvidenceFiles::of(&self.targets)?;
        let evidence = gather(&files, &self.watch.types)?;
        let folder = self.output.as_deref().map(Folder::named).transpose()?;
        self.conclude(&evidence, folder, &[])
    }

    fn of_process(&self, process: Process) -> VerbResult {
        let interruption = Interruption::begin()?;
        let folder = Folder::new(self.output.as_deref())?;
        folder.give_to(process)?;
        let span = self.watch.span.unwrap_or(USUAL_SPAN);
        let session = Session::begin(&self.watch, process, &folder, span, &interruption)?;
        let watch = Watch::new(&session, &folder, &self.watch, Schedule::Until(span));
        let (watched, ended) = watch.run(&interruption, || session.end());
        drop(watch);
        let mut evidence = watched.evidence(session.trace());
        evidence.remarks.extend(ended);
        self.conclude(&evidence, Some(folder), &watched.closing)
    }

    fn of_command(&self) -> VerbResult {
        let interruption = Interruption::begin()?;
        let folder = Folder::new(self.output.as_deref())?;
        let (evidence, closing) =
            launch::watch(&self.command, &self.watch, &folder, &interruption)?;
        self.conclude(&evidence, Some(folder), &closing)
    }

    /// Prints what the evidence says. `closing`: what became of the program.
    fn conclude(
        &self,
        evidence: &Evidence,
        folder: Option<Folder>,
        closing: &[String],
    ) -> VerbResult {
        let mut diagnosis = diagnose(evidence);
        self.add_sources(&mut diagnosis);
        let outcome = diagnosis.verdict.outcome;
        let is_kept = |folder: &Folder| folder.is_named() || outcome == Outcome::Found;
        let mut kept = None;
        if let Some(folder) = folder.filter(is_kept) {
            write_page(&folder.path().join("doctor.html"), &doctor_page::page(&diagnosis))?;
            kept = Some(folder.keep());
        }
        print_figures(&diagnosis, self.json, |layout| {
            text::text(&diagnosis, closing, kept.as_deref(), layout)
        })?;
        Ok(match outcome {
            Outcome::NothingWrong => Verdict::Sound,
            Outcome::Found => Verdict::Found,
            Outcome::CannotTell => Verdict::Undecided,
        })
    }

    /// Adds the source of the lines that are named, as far as it is found.
    fn add_sources(&self, diagnosis: &mut Diagnosis) {
        let here = [PathBuf::from(".")];
        let roots = if self.source_root.is_empty() { &here[..] } else { &self.source_root };
        let Ok(roots) = SourceRoots::new(roots) else { return };
        add_sources(diagnosis, &roots);
    }
}

fn write_page(file: &Path, page: &str) -> Result<(), Failure> {
    let mut output = Output::create(file)?;
    output.write_all(page.as_bytes()).map_err(|error| Failure::writing(output.name(), &error))?;
    output.complete_export()
}
