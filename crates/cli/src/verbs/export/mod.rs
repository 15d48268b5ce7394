//! `heaptap export`: the call paths of a trace, or a heap snapshot, for other tools, or a web page.
//!
//! The formats are those of [`heaptap_export::FORMATS`], [`heaptap_export::SNAPSHOT_FORMATS`] and
//! [`html`], and the data set of [`parquet`]; here are only the options and the output. `target` finds out which of them is meant,
//! `sidecar` what is beside a trace, and `snapshot` exports a snapshot.

mod html;
#[cfg(feature = "parquet")]
mod parquet;
mod sidecar;
mod snapshot;
mod target;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use heaptap_export::{ExportInput, Format};
use heaptap_report::figures::units::count;
use heaptap_report::{Metric, Options, StackShape};

use crate::analysis::aggregate::AggregatedTrace;
use crate::analysis::archive::PageSize;
use crate::analysis::filters::Filters;
use crate::analysis::heap::page_snapshots::PageFiles;
use crate::analysis::ocaml_types::TypeOptions;
use crate::analysis::recursion::{Recursion, say_omitted};
use crate::analysis::several::TracePart;
use crate::analysis::view::metric;
use crate::exit_status::{Failure, VerbResult, help_end};
use crate::io::newest::named_or_newest;
use crate::io::notices::say;
use crate::io::output::Output;
use crate::io::source_files::SourceRoots;
use crate::io::trace_files::expand;

use html::HtmlExport;
#[cfg(feature = "parquet")]
use parquet::ParquetExport;
use sidecar::FoundSidecars;
use snapshot::SnapshotExport;
use target::{Source, Target, TraceTarget, formats};

/// Write a trace or a heap snapshot in the format of another tool, or a web page
///
/// With `--to html`, the page of `heaptap serve` with the trace in it: one file that needs
/// no server and makes no request. Given several traces, it compares them; given heap snapshots, it
/// shows what holds the memory, beside the trace if there is one. It has a row
/// for each block, or, beyond a million, for one in two, four and so on; a message says
/// so. It contains no source text, unless --with-source asks for it.
///
/// Sizes are estimates in bytes, headers of blocks included.
///
/// Recursion is folded: a cycle of up to 32 functions that repeats is written once,
/// its innermost iteration, below a frame "(repeated up to ×N)" or "(2 frames
/// repeated up to ×N)". N is the most iterations among all stacks that have this
/// frame, so that stacks of different depths are one. With --frames, "(frames left
/// out)" is in place of the middle of a stack. No bytes are left out, and messages
/// on standard error give the number of folded and cut call paths.
///
/// Takes less than 500 MB of memory, whatever the trace. At most 250,000 call
/// paths are written. If there are more, the lightest are joined by their
/// innermost function under "(light call paths)", without their callers, and a message
/// says how many samples each of them has at most.
///
/// With `--to parquet`, OUT is a directory: a data set of tables to which each trace adds its own
/// files, partitioned by host and day, and where it replaces those that it added before. Every block
/// has a row, with its times, its size and its stack. Stacks are not folded; --frames is 1024 if not
/// given. See docs/exports.md for the columns, and for queries.
///
/// FILE can also be a heap snapshot, which `heaptap snapshot` takes. What holds its blocks becomes
/// part of the graph: modules and their variables, threads and their frames. In folded and pprof,
/// the frames of a stack are what holds a block, so that the sum below a frame is what it retains.
/// Blocks that nothing holds are left out. See docs/snapshots.md for each format. A snapshot takes some 60 bytes of memory for each block.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap export trace.ctf --to folded | flamegraph.pl > flames.svg
  heaptap export trace.ctf --to pprof -o trace.pb && go tool pprof -http : trace.pb
  heaptap export trace.ctf --to speedscope -o trace.speedscope.json
  heaptap export trace.ctf --to html -o trace.html
  heaptap export before.ctf after.ctf --to html -o compared.html
  heaptap export trace.ctf early.heap late.heap --to html -o memory.html
  heaptap export traces/ --to parquet -o fleet
  heaptap export trace.ctf --to html --with-source --source-root ~/src -o trace.html
  heaptap export server.heap --to heapsnapshot -o server.heapsnapshot
  heaptap export server.heap --to hprof -o server.hprof
  heaptap export server.heap --to pprof -o held.pb && go tool pprof -http : held.pb
  heaptap export server.heap --to dot | dot -Tsvg > held.svg"
))]
pub(crate) struct Export {
    /// Traces, which are merged by time, but stay apart in a page; a directory stands for
    /// the traces in it, which are merged in a page too, `-` for standard input. Or one heap
    /// snapshot; a page takes several, and traces beside them [default: the newest trace in
    /// this directory]
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    files: Vec<PathBuf>,

    /// The format
    #[arg(long, value_parser = formats())]
    to: Target,

    /// Where to write it; standard output if not given
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// What `folded`, which has one number for each stack, measures in a trace; `allocated` if
    /// not given
    #[arg(long, value_parser = metric())]
    metric: Option<Metric>,

    #[command(flatten)]
    recursion: Recursion,

    /// The most frames of a stack; of longer ones the middle is left out
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(2..))]
    frames: Option<u32>,

    /// The most nodes of a heap snapshot; where there are more, blocks that are alike and held
    /// alike are joined. If not given, 10,000,000 for heapsnapshot, 250,000 for folded and pprof,
    /// 40 for dot
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=700_000_000))]
    nodes: Option<u32>,

    #[command(flatten)]
    types: TypeOptions,

    #[command(flatten)]
    page_size: PageSize,

    /// Put the source files that the traces name into the page, those that are under
    /// --source-root
    #[arg(long, requires = "source_root")]
    with_source: bool,

    /// Where the source files are
    #[arg(long, value_name = "DIR", requires = "with_source", value_hint = ValueHint::DirPath)]
    source_root: Vec<PathBuf>,

    #[command(flatten)]
    filters: Filters,
}

impl Export {
    pub(crate) fn run(&self) -> VerbResult {
        let files = named_or_newest(&self.files)?;
        match self.to.source(&files)? {
            Source::Snapshot(input, format) => {
                self.refuse_trace_options(input.name())?;
                let nodes = self.nodes.map(|nodes| nodes as usize);
                SnapshotExport { input, format, nodes, output: self.output.as_deref() }.run()
            }
            Source::Traces(_) if self.nodes.is_some() => Err(Failure::Trouble(
                "--nodes is for heap snapshots; leave it out for a trace".to_owned(),
            )),
            Source::Traces(TraceTarget::Stacks(_) | TraceTarget::DataSet)
                if self.types.is_given() =>
            {
                Err(Failure::Trouble(
                    "--types is for heap snapshots with --to html; leave it out".to_owned(),
                ))
            }
            Source::Traces(TraceTarget::Stacks(format)) => self.write_stacks(&files, format),
            Source::Traces(TraceTarget::Page) => self.write_page(&files),
            Source::Traces(TraceTarget::DataSet) => self.write_data_set(&files),
        }
    }

    fn refuse_trace_options(&self, name: &str) -> Result<(), Failure> {
        let has_any = self.metric.is_some()
            || !self.recursion.fold()
            || self.frames.is_some()
            || self.page_size.is_restricted()
            || self.with_source
            || self.types.is_given()
            || !self.filters.is_all();
        if !has_any {
            return Ok(());
        }
        Err(Failure::Trouble(format!(
            "{name}: a heap snapshot; only --to, --nodes and -o apply to it, \
             the other options are for traces: leave them out"
        )))
    }

    fn write_page(&self, files: &[PathBuf]) -> VerbResult {
        if self.frames.is_some() || !self.recursion.fold() {
            return Err(Failure::Trouble(
                "--frames and --no-fold do not apply to a page, which has whole stacks \
                 and folds recursion when it shows them; leave them out"
                    .to_owned(),
            ));
        }
        let Export { filters, output, page_size, types, .. } = self;
        let most_blocks = page_size.most_blocks();
        let files = PageFiles::new(files);
        // Empty unless the text is wanted.
        let sources = SourceRoots::new(&self.source_root)?;
        let output = output.as_deref();
        HtmlExport { files, types, filters, most_blocks, sources, output }.run()
    }

    /// Where the sidecars of the traces that were read may be.
    fn sidecars(files: &[PathBuf], trace: &AggregatedTrace) -> Result<FoundSidecars, Failure> {
        let (traces, are_named) = match &expand(files)?[..] {
            [file] => {
                (vec![TracePart { path: file.path.clone(), info: trace.info().clone() }], false)
            }
            _ => (trace.parts().to_vec(), true),
        };
        Ok(FoundSidecars { traces, are_named, findings: RefCell::default() })
    }

    #[cfg(not(feature = "parquet"))]
    #[expect(clippy::unused_self, reason = "it is the other one's twin")]
    fn write_data_set(&self, _files: &[PathBuf]) -> VerbResult {
        Err(Failure::Trouble(
            "this program was built without parquet; build it with its default features, as \
             `make install` and `cargo build --release -p heaptap-cli` do"
                .to_owned(),
        ))
    }

    #[cfg(feature = "parquet")]
    fn write_data_set(&self, files: &[PathBuf]) -> VerbResult {
        let Some(directory) = &self.output else {
            return Err(Failure::Trouble(
                "parquet is a directory of files; name it with -o".to_owned(),
            ));
        };
        if self.metric.is_some()
            || !self.recursion.fold()
            || self.page_size.is_restricted()
            || self.with_source
        {
            return Err(Failure::Trouble(
                "--metric, --no-fold, --blocks and --with-source do not apply to parquet, which has \
                 every block and whole stacks; leave them out"
                    .to_owned(),
            ));
        }
        let options = Options { selection: self.filters.selection()?, ..Options::default() };
        ParquetExport { files, options, frames: self.frames, directory }.run()
    }

    fn write_stacks(&self, files: &[PathBuf], format: &Format) -> VerbResult {
        if self.page_size.is_restricted() || self.with_source {
            return Err(Failure::Trouble(format!(
                "--blocks and --with-source are for --to html; leave them out for {}",
                format.name
            )));
        }
        let options = Options { selection: self.filters.selection()?, ..heaptap_export::options() };
        let out = output(self.output.as_deref(), format.name, format.is_binary)?;
        let trace = AggregatedTrace::read(files, options)?;
        let sidecars = Self::sidecars(files, &trace)?;
        let export = ExportInput {
            aggregate: &trace.aggregate,
            info: trace.info(),
            locations: trace.locations(),
            metric: self.metric.unwrap_or_default(),
            shape: StackShape {
                fold: self.recursion.fold(),
                frames: self.frames.map(|frames| frames as usize),
            },
            sidecars: format.takes_sidecar.then_some(&sidecars),
        };
        let omitted = out.write_export(|out| format.write(&export, out))?;
        say_omitted(trace.name(), &omitted);
        if let missing @ 1.. = trace.aggregate.missing_from_paths() {
            say(&format!(
                "{}: too many call paths to keep all: the rarest, each of {} at most, are under \
                 (light call paths), without their callers",
                trace.name(),
                count(missing, "sample", "samples")
            ));
        }
        Ok(trace.verdict().max(sidecars.findings.borrow().report()))
    }
}

/// Where a file of this format goes.
fn output(path: Option<&Path>, format: &str, is_binary: bool) -> Result<Output, Failure> {
    let binary = is_binary.then(|| format!("{format} is binary; name a file with -o"));
    Output::of_export(path, binary.as_deref())
}
