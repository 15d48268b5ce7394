//! `heaptap info`: what a trace or a heap snapshot is about.
//!
//! - `facts` and `text`: of a trace; `series` and `series_text`: of a directory of them; `snapshot` and `snapshot_text`: of a heap snapshot.

mod facts;
mod series;
mod series_text;
mod snapshot;
mod snapshot_text;
mod text;

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use heaptap_trace::{FileKind, Mode};

use crate::exit_status::{VerbResult, help_end};
use crate::io::input::Input;
use crate::io::lifecycle::Lives;
use crate::io::newest::one_or_newest;
use crate::io::notices::say;
use crate::io::output::print_figures;
use crate::io::sidecar::sidecar_end;
use crate::io::trace_files::expand;

use facts::Facts;
use series::SeriesFacts;
use snapshot::SnapshotFacts;

/// Show what a trace or a heap snapshot is about: program, times, counts
///
/// Of a trace, also where its bytes go; of a directory, such as that of a series, all its traces
/// as one, with the times at which each sampling rate held; of a heap snapshot, its blocks, roots and segments.
///
/// Reads the file once from begin to end, in bounded memory, so any size will do.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap info trace.ctf
  heaptap info --json trace.ctf | jq .words.bytes
  heaptap info traces                          all files of a series as one
  heaptap info program-4711-1.heap
  heaptap info trace.ctf.gz                    gzip and zstd files are read as they are"
))]
pub(crate) struct Info {
    /// The trace, directory of traces or heap snapshot, or `-` for standard input [default: the newest trace in this
    /// directory]
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    file: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(crate) fn run(&self) -> VerbResult {
        let file = one_or_newest(self.file.as_deref())?;
        if file.is_dir() {
            return self.run_directory(&file);
        }
        let input = Input::open(&file)?;
        if input.kind() == Some(FileKind::HeapSnapshot) {
            return self.run_snapshot(&input);
        }
        let mut reader = input.reader(Mode::Lenient)?;
        let mut lives = Lives::new(Lives::MEMORY);
        let sidecar_end = |start| sidecar_end(&file, start);
        let facts = Facts::gather(&input, &mut *reader, &mut lives, sidecar_end)?;
        input.end_progress();
        print_figures(&facts, self.json, |layout| text::report(&facts, layout))?;
        Ok(input.report(&*reader, &mut lives))
    }

    fn run_directory(&self, directory: &Path) -> VerbResult {
        let files = expand(&[directory.to_owned()])?;
        let (facts, findings) = SeriesFacts::gather(directory, &files)?;
        print_figures(&facts, self.json, |layout| series_text::report(&facts, layout))?;
        Ok(findings.report())
    }

    fn run_snapshot(&self, input: &Input) -> VerbResult {
        let (facts, verdict) = SnapshotFacts::gather(input)?;
        input.end_progress();
        print_figures(&facts, self.json, |layout| snapshot_text::report(&facts, layout))?;
        for line in facts.notices() {
            say(&format!("{}: {line}", input.name()));
        }
        Ok(verdict)
    }
}
