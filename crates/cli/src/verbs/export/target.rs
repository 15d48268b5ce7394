//! The values of `--to`, and which of them a file takes.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use heaptap_export::{FORMATS, Format, SNAPSHOT_FORMATS, SnapshotFormat};
use heaptap_trace::FileKind;

use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::text::escape;

/// The web page.
const PAGE: &str = "html";

/// The data set.
const DATA_SET: &str = "parquet";

/// A value of `--to`: what it means for a trace, and for a heap snapshot.
#[derive(Clone, Copy)]
pub(super) struct Target {
    trace: Option<TraceTarget>,
    snapshot: Option<&'static SnapshotFormat>,
}

/// What is written of a trace.
#[derive(Clone, Copy)]
pub(super) enum TraceTarget {
    Stacks(&'static Format),
    Page,
    DataSet,
}

/// What to export.
pub(super) enum Source {
    Traces(TraceTarget),
    Snapshot(Input, &'static SnapshotFormat),
}

/// The values of `--to`.
pub(super) fn formats() -> impl TypedValueParser<Value = Target> {
    let stacks = FORMATS.map(|format| PossibleValue::new(format.name).help(format.help));
    let page = PossibleValue::new(PAGE)
        .help("a web page that shows traces and heap snapshots, in one file");
    let data_set = PossibleValue::new(DATA_SET)
        .help("a directory of tables with all blocks, for DuckDB, Spark and others");
    // Those that traces have too are listed once.
    let snapshots =
        SNAPSHOT_FORMATS.into_iter().filter(|format| Format::named(format.name).is_none());
    let snapshots = snapshots.map(|format| PossibleValue::new(format.name).help(format.help));
    let values = stacks.into_iter().chain([page, data_set]).chain(snapshots);
    PossibleValuesParser::new(values).map(|name| Target {
        trace: match name.as_str() {
            PAGE => Some(TraceTarget::Page),
            DATA_SET => Some(TraceTarget::DataSet),
            name => Format::named(name).map(TraceTarget::Stacks),
        },
        snapshot: SnapshotFormat::named(&name),
    })
}

impl Target {
    /// Finds out what the files are. A snapshot is exported by itself, but for a page.
    pub(super) fn source(self, files: &[PathBuf]) -> Result<Source, Failure> {
        if let Some(page @ TraceTarget::Page) = self.trace {
            return Ok(Source::Traces(page));
        }
        for file in files {
            let Some(input) = self.open_snapshot(file)? else { continue };
            if files.len() > 1 {
                return Err(Failure::Trouble(format!(
                    "{}: a heap snapshot, which is exported by itself; name one file",
                    input.name()
                )));
            }
            let format = self.snapshot.ok_or_else(|| {
                let names = SNAPSHOT_FORMATS.iter().map(|format| format.name).chain([PAGE]);
                Failure::Trouble(format!(
                    "{}: a heap snapshot, which has no call paths; it can be exported --to {}",
                    input.name(),
                    or_list(&names.collect::<Vec<_>>())
                ))
            })?;
            return Ok(Source::Snapshot(input, format));
        }
        self.trace.map(Source::Traces).ok_or_else(|| {
            let names = FORMATS.iter().map(|format| format.name).chain([PAGE, DATA_SET]);
            let names: Vec<_> = names.collect();
            let file = files.first().map_or(Path::new(""), PathBuf::as_path);
            Failure::Trouble(format!(
                "{}: not a heap snapshot, which this format is for; a trace can be exported --to {}",
                escape::path(file),
                or_list(&names)
            ))
        })
    }

    /// Opens a file if it is a snapshot. A pipe cannot be looked into without taking from it: it
    /// is one if the format is for nothing else.
    fn open_snapshot(self, file: &Path) -> Result<Option<Input>, Failure> {
        let is_pipe = file.as_os_str() != "-" && !file.is_file();
        if file.is_dir() || (is_pipe && self.trace.is_some()) {
            return Ok(None);
        }
        // A file that cannot be opened is reported where it is read.
        let Ok(input) = Input::open(file) else { return Ok(None) };
        if !input.is_repeatable() && self.trace.is_some() {
            return Ok(None);
        }
        input.make_repeatable()?;
        let is_snapshot = input.kind() == Some(FileKind::HeapSnapshot);
        Ok(is_snapshot.then_some(input))
    }
}

/// `a, b or c`.
fn or_list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => (*name).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
