//! `heaptap heap`: what a heap snapshot holds, and what holds it.
//!
//! - `text`: the tables and findings for people; `csv`: the table for programs.
//! - `sites`: the join with the trace.
//! - `question`: paths to a block, referrers of a kind of block, what two holders share.

mod csv;
mod question;
mod sites;
mod text;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_graph::HeapAnalysis;
use heaptap_report::figures::heap::findings::compare;
use heaptap_report::figures::heap::tables::{HeapFigures, RowSelection};
use heaptap_report::figures::heap::types::TypeFigures;

use crate::analysis::filters::patterns;
use crate::analysis::heap::find_holder::find_holder;
use crate::analysis::heap::load::{load, load_with_types};
use crate::analysis::heap::origin::SnapshotOrigin;
use crate::analysis::heap::row_kind::HeapRowKind;
use crate::analysis::heap::sites::sites as join_sites;
use crate::analysis::ocaml_types::TypeOptions;
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::output::print_figures;

/// Show what holds the memory of a heap snapshot
///
/// Three columns for each row: what is reachable from it, what only it holds and would be freed without
/// it (exclusive), and what it reaches and no row before it does (first reached; these
/// add up to everything). Sizes count headers. Below, what deserves a look: where many like
/// blocks pile up, values that their own finalisers keep alive, chains of ephemerons, memory outside the heap.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap heap before.heap
  heaptap heap after.heap --earlier before.heap
  heaptap heap before.heap --by module --top 0
  heaptap heap before.heap --by block --filter closure
  heaptap heap before.heap --path 0x7f12a4b3c008
  heaptap heap before.heap --path 'closure Cache'
  heaptap heap before.heap --referrers 'string'
  heaptap heap before.heap --shared 'Cache' --shared 'Session'
  heaptap heap before.heap --by type
  heaptap heap before.heap --types _build --types ../library/_build
  heaptap heap before.heap --types none
  heaptap heap before.heap --by site --within 'Cache'
  heaptap heap --json before.heap | jq '.findings[].text'

Exit status:
  0  the snapshot is complete
  1  the snapshot is defective or cut short
  2  a wrong call, or a file that is no snapshot or cannot be read")]
pub(crate) struct Heap {
    /// A heap snapshot; `-` for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// What a row is
    #[arg(long, value_enum, default_value_t = HeapRowKind::Variable)]
    by: HeapRowKind,

    /// How many rows; 0 for all
    #[arg(short = 'n', long, value_name = "ROWS", default_value_t = 20)]
    top: usize,

    /// Only rows whose name matches; given several times, each must match
    #[arg(long, value_name = "REGEX")]
    filter: Vec<String>,

    /// No rows whose name matches
    #[arg(long, value_name = "REGEX")]
    exclude: Vec<String>,

    #[command(flatten)]
    types: TypeOptions,

    #[command(flatten)]
    question: question::Question,

    /// An earlier snapshot: say of what piles up how much it has grown since
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    earlier: Option<PathBuf>,

    /// With --by site: the trace that was being written (default: the one that the snapshot names)
    #[arg(long, value_name = "TRACE", value_hint = ValueHint::FilePath)]
    trace: Option<PathBuf>,

    /// With --by site: only what the holder of this name retains
    #[arg(long, value_name = "REGEX")]
    within: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Print the table as comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

impl Heap {
    pub(crate) fn run(&self) -> VerbResult {
        let (include, exclude) =
            (patterns("--filter", &self.filter)?, patterns("--exclude", &self.exclude)?);
        self.question.check()?;
        if self.by != HeapRowKind::Site && (self.trace.is_some() || self.within.is_some()) {
            return Err(Failure::Trouble("--trace and --within go with --by site".into()));
        }
        self.types.check(self.by == HeapRowKind::Type)?;
        let (analysis, types) = load(&self.file, &self.types, self.question.wants_fields())?;
        types.check(self.by == HeapRowKind::Type)?;
        if self.question.is_asked() {
            self.question.answer(&analysis, self.top, self.json)?;
            return Ok(Verdict::Sound);
        }
        let Some(rows) = self.by.rows() else { return self.show_sites(&analysis) };
        let selection =
            RowSelection { rows, limit: self.top, include: &include, exclude: &exclude };
        let mut figures = HeapFigures::new(&analysis, &selection);
        figures.type_files = types.files;
        let types = types.summary;
        figures.types =
            types.map(|types| TypeFigures::new(&types.coverage(&analysis), types.notes));
        if let Some(earlier) = &self.earlier {
            let (earlier, _) = load_with_types(earlier, &self.types)?;
            compare(&mut figures.findings, &analysis, &earlier);
        }
        print_figures(&figures, self.json, |layout| match self.csv {
            true => csv::table(&figures.table),
            false => text::report(&figures, layout),
        })?;
        Ok(Verdict::Sound)
    }

    /// Joins the trace.
    fn show_sites(&self, analysis: &HeapAnalysis) -> VerbResult {
        let within = self.within.as_deref().map(|name| find_holder(analysis, "within", name));
        let within = within.transpose()?;
        let origin = SnapshotOrigin::of(analysis);
        let trace = origin.find_trace(&self.file, self.trace.as_deref())?;
        let figures = join_sites(analysis, &trace, within, self.top)?;
        print_figures(&figures, self.json, |layout| match self.csv {
            true => sites::csv(&figures),
            false => sites::text(&figures, layout),
        })?;
        Ok(Verdict::Sound)
    }
}
