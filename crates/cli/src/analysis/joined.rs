//! The traces of a directory, such as the parts of a series, written as one trace.
//!
//! What was alive when the first of them began was not allocated in the time that is covered, and a
//! trace has no other way to say that a block is there: those blocks are left out, and counted.

use std::path::PathBuf;

use heaptap_report::figures::units::count;
use heaptap_trace::{
    Allocation, Block, Code, EventKind, EventSource as _, Location, LocationList, LocationTable,
    Losses, Mode, NamedLocation, TraceFormat, TraceInfo,
};

use crate::analysis::several::TraceSet;
use crate::exit_status::{Failure, VerbResult};
use crate::io::input::Input;
use crate::io::lifecycle::Lives;
use crate::io::notices::say;
use crate::io::rewrite::InAndOut;
use crate::io::rewrite::renaming::{Renaming, SameNames};
use crate::io::rewrite::renumber::Renumbering;
use crate::io::trace_files::{expand, shown};

/// Codes that stand for lists of locations in a merge are too large for a trace: they are written as
/// this and their number, which is no address.
const WRITTEN: Code = 1 << 61;

/// The first such code.
const MERGED: Code = 1 << 62;

/// Keeps names, and codes that are no code of a merge.
#[derive(Default)]
pub(crate) struct MergedNames(SameNames);

impl Renaming for MergedNames {
    fn code(&mut self, read: Code, table: &LocationTable) -> Result<Code, Failure> {
        if read >> 61 == MERGED >> 61 && table.get(read).is_some() {
            return Ok(read - MERGED + WRITTEN);
        }
        self.0.code(read, table)
    }

    fn origin(&self, written: Code) -> Option<Code> {
        if written >> 61 == WRITTEN >> 61 && written != SameNames::STAND_IN {
            return Some(written - WRITTEN + MERGED);
        }
        self.0.origin(written)
    }

    fn rename(&mut self, location: Location<'_>, ids: &NamedLocation, list: &mut LocationList) {
        self.0.rename(location, ids, list);
    }
}

/// Traces to be written as one.
pub(crate) struct Joined {
    traces: TraceSet,
    directory: PathBuf,
    /// The one that has room for all of them.
    pub(crate) format: TraceFormat,
    /// What they say of themselves, together.
    pub(crate) info: TraceInfo,
}

impl Joined {
    /// Reads what is needed before the events.
    pub(crate) fn survey(files: &InAndOut) -> Result<Joined, Failure> {
        let traces = TraceSet::survey(&expand(std::slice::from_ref(&files.input))?)?;
        let mut info = traces.info().clone();
        let mut format = TraceFormat::Memtrace2;
        let parts = traces.parts();
        for part in &parts {
            let reader = Input::open(&part.path)?.quietly().reader(Mode::Lenient)?;
            if !reader.format().has_one_domain() {
                format = reader.format().of_copy();
            }
        }
        if let Some(first) = parts.first()
            && parts.iter().all(|part| part.info.executable == first.info.executable)
        {
            info.executable.clone_from(&first.info.executable);
        }
        Ok(Joined { traces, directory: files.input.clone(), format, info })
    }

    /// Refuses traces of several rates, of which a copy could have only one.
    pub(crate) fn has_one_rate(&self) -> Result<(), Failure> {
        if !self.traces.rates().are_several() {
            return Ok(());
        }
        let rates: Vec<String> =
            self.traces.rates().all().iter().map(ToString::to_string).collect();
        Err(Failure::Trouble(format!(
            "{}: its blocks were sampled at several rates ({}), and a trace has one; `heaptap thin \
             --rate {} {} OUT` brings all to that",
            shown(&self.directory),
            rates.join(", "),
            self.info.sample_rate,
            shown(&self.directory),
        )))
    }

    /// Writes them. `info`: what the new trace says of itself; `select`: what is kept of a block that
    /// was sampled at this rate; `shift` moves the times.
    pub(crate) fn write(
        self,
        files: &InAndOut,
        info: &TraceInfo,
        names: impl Renaming,
        mut select: impl FnMut(&Allocation<'_>, f64) -> Option<Block>,
        shift: impl Fn(u64) -> u64,
    ) -> VerbResult {
        let losses = Losses { cut_short: self.traces.last_cut_short(), ..Losses::default() };
        let mut out = Renumbering::begin(&files.output, self.format, info, &losses, names)?;
        let (start, mut before) = (self.info.start_time, 0);
        let mut lives = Lives::new(Lives::MEMORY);
        let merged = self.traces.each_event(|event, table, rate| {
            if lives.event(event).is_some() {
                return Ok(());
            }
            let block = match &event.kind {
                EventKind::Alloc(_) if event.time < start => {
                    before += 1;
                    None
                }
                EventKind::Alloc(allocation) => select(allocation, rate),
                _ => None,
            };
            out.event(event, shift(event.time), table, block)
        })?;
        out.complete(merged.locations())?;
        if before > 0 {
            say(&format!(
                "{}: {} alive when the first trace begins left out: they were not allocated in the time \
                 that is covered; `heaptap report` of the directory has them",
                shown(&self.directory),
                count(before, "sampled block", "sampled blocks"),
            ));
        }
        Ok(self.traces.into_findings().report())
    }
}
