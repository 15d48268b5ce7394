//! `--to parquet`: a data set in a directory, to which each trace adds its files.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use heaptap_export::parquet::{
    BlockTables, Partition, SIDECAR_TABLES, TABLES, TraceFacts, write_sidecar,
};
use heaptap_report::figures::units::{count, utc};
use heaptap_report::{BlockLives, BlockRowsError, Options};
use heaptap_trace::{Event, LocationTable, TraceInfo};

use crate::analysis::aggregate::lifespans_of;
use crate::analysis::several::Findings;
use crate::analysis::time_order::in_time_order;
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::input::{Input, outcome_in_reports};
use crate::io::lifecycle::Lives;
use crate::io::notices::say;
use crate::io::output::Output;
use crate::io::trace_files::expand;
use crate::text::escape;

use super::sidecar::FoundSidecar;

/// Frames of a stack, unless `--frames` gives another number.
const MOST_FRAMES: usize = 1024;

/// Traces, and the data set that they are added to.
pub(super) struct ParquetExport<'a> {
    pub(super) files: &'a [PathBuf],
    pub(super) options: Options,
    pub(super) frames: Option<u32>,
    pub(super) directory: &'a Path,
}

/// Why a trace was not added.
enum AddError {
    /// The others still can be.
    Trace(Failure),
    Output(Failure),
}

impl ParquetExport<'_> {
    pub(super) fn run(&self) -> VerbResult {
        let files = expand(self.files)?;
        make_directory(self.directory, false)?;
        let mut findings = Findings::default();
        let mut added = 0_u64;
        for file in &files {
            match self.add(&file.path, &mut findings) {
                Ok(()) => added += 1,
                Err(AddError::Trace(Failure::Trouble(message) | Failure::Defective(message)))
                    if files.len() > 1 =>
                {
                    findings.add(vec![format!("{message}; left out")], Verdict::LeftOut);
                }
                Err(AddError::Trace(failure) | AddError::Output(failure)) => return Err(failure),
            }
        }
        let traces = count(added, "trace", "traces");
        say(&format!("{}: {traces} written", escape::path(self.directory)));
        Ok(findings.report())
    }

    fn add(&self, path: &Path, findings: &mut Findings) -> Result<(), AddError> {
        let input = Input::open(path).map_err(AddError::Trace)?;
        input.make_repeatable().map_err(AddError::Trace)?;
        let mut options = self.options.clone();
        options.lifespans =
            lifespans_of(&input, options.selection.lifetime).map_err(AddError::Trace)?;
        let info = input.in_file_order().map_err(AddError::Trace)?.info().clone();
        let fresh = || TraceTables::new(self, &info, &options);
        let mut state = fresh();
        let read = in_time_order(&input, fresh, &mut state, TraceTables::event);
        let reader = read.map_err(AddError::Trace)?;
        input.end_progress();
        let (lines, verdict) = input.findings(&*reader, &mut state.lives, &outcome_in_reports);
        let complete = verdict == Verdict::Sound && reader.losses().cut_short.is_none();
        state.finish(&input, reader.locations(), complete)?;
        findings.add(lines, verdict);
        self.add_sidecar(path, &info, findings)
    }

    /// Adds the time line and the probes, if the trace has them.
    fn add_sidecar(
        &self,
        path: &Path,
        info: &TraceInfo,
        findings: &mut Findings,
    ) -> Result<(), AddError> {
        let FoundSidecar { history, lines, verdict } = FoundSidecar::of(path, info);
        findings.add(lines, verdict);
        let Some(history) = history else { return Ok(()) };
        let outputs = self.outputs(info, SIDECAR_TABLES).map_err(AddError::Output)?;
        let written = write_sidecar(outputs, info, &history).map_err(|error| {
            AddError::Output(Failure::writing(&escape::path(self.directory).to_string(), &error))
        })?;
        written.into_iter().try_for_each(Output::complete_export).map_err(AddError::Output)
    }

    /// The files of a trace in these tables.
    fn outputs(&self, info: &TraceInfo, tables: [&str; 3]) -> Result<[Output; 3], Failure> {
        let date = utc(info.start_time);
        let partition = Partition::of(info, date.split(' ').next().unwrap_or_default());
        let create = |table: &str| {
            let directory = self.directory.join(table).join(&partition.host).join(&partition.day);
            make_directory(&directory, true)?;
            Output::create(&directory.join(&partition.file))
        };
        let [one, two, three] = tables.map(create);
        Ok([one?, two?, three?])
    }
}

/// Makes a directory that only its owner can read, unless it is there.
fn make_directory(path: &Path, with_parents: bool) -> Result<(), Failure> {
    if fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        return Ok(());
    }
    DirBuilder::new().mode(0o700).recursive(with_parents).create(path).map_err(|error| {
        Failure::Trouble(format!(
            "{}: the directory cannot be made: {error}; name another place with -o",
            escape::path(path)
        ))
    })
}

/// The tables of a trace that is being read.
struct TraceTables {
    tables: Result<BlockTables<Output>, AddError>,
    blocks: BlockLives,
    lives: Lives,
    ended: u64,
    name: String,
}

impl TraceTables {
    fn new(export: &ParquetExport<'_>, info: &TraceInfo, options: &Options) -> Self {
        let frames = export.frames.map_or(MOST_FRAMES, |frames| frames as usize);
        let name = escape::path(export.directory).to_string();
        let tables = export.outputs(info, TABLES).and_then(|outputs| {
            let tables = BlockTables::new(outputs, info, frames);
            tables.map_err(|error| Failure::writing(&name, &error))
        });
        TraceTables {
            tables: tables.map_err(AddError::Output),
            blocks: BlockLives::new(info, options.clone()),
            lives: Lives::new(Lives::MEMORY),
            ended: info.start_time,
            name,
        }
    }

    fn event(&mut self, event: &Event<'_>, table: &LocationTable) {
        self.lives.event(event);
        self.ended = self.ended.max(event.time);
        let Ok(tables) = &mut self.tables else { return };
        if let Err(error) = self.blocks.event(event, table, tables) {
            self.tables = Err(failure(error, &self.name));
        }
    }

    /// After the last event.
    fn finish(
        self,
        input: &Input,
        locations: &LocationTable,
        complete: bool,
    ) -> Result<(), AddError> {
        let TraceTables { tables, blocks, ended, name, .. } = self;
        let with_name = |error| match error {
            AddError::Trace(Failure::Trouble(message)) => {
                AddError::Trace(Failure::Trouble(format!("{}: {message}", input.name())))
            }
            other => other,
        };
        let mut tables = tables.map_err(with_name)?;
        blocks.finish(locations, &mut tables).map_err(|error| failure(error, &name))?;
        let outputs = tables.finish(&TraceFacts { ended, complete });
        let written = |error| AddError::Output(Failure::writing(&name, &error));
        // Blocks come last: whoever sees them finds their stacks.
        let mut outputs = outputs.map_err(written)?.into_iter().rev();
        outputs.try_for_each(Output::complete_export).map_err(AddError::Output)
    }
}

fn failure(error: BlockRowsError<std::io::Error>, name: &str) -> AddError {
    match error {
        BlockRowsError::Sink(error) => AddError::Output(Failure::writing(name, &error)),
        BlockRowsError::TooManyAlive => AddError::Trace(Failure::Trouble(
            "too many blocks are alive at once to list each; make a smaller trace first: \
             heaptap thin FILE small.ctf --rate …"
                .to_owned(),
        )),
    }
}
