//! `heaptap recode`: rewrites a trace, in another version of the format or repaired.

use std::io::{self, Read as _};
use std::ops::ControlFlow;

use clap::{Args, ValueEnum};
use heaptap_trace::{Allocation, Event, LocationTable, Mode, TraceFormat, TraceInfo};

use crate::analysis::joined::{Joined, MergedNames};
use crate::exit_status::{Failure, VerbResult, Verdict, help_end};
use crate::io::input::Input;
use crate::io::lifecycle::Lives;
use crate::io::output::Output;
use crate::io::rewrite::renaming::SameNames;
use crate::io::rewrite::{InAndOut, Rewrite};

/// Write a trace again, in another version of the format or repaired
///
/// A sound trace that already has the version is copied to the byte, if it is in a file,
/// compressed or not.
/// Otherwise the events are written as the original writer would have written them, one
/// of a pipe too. A damaged trace becomes a sound
/// one with everything that could be read: unknown frames become `<lost>`, and
/// promotions and collections of lost objects are left out, and so are those that an
/// object cannot have: a second collection, or a promotion of external memory.
/// Messages on standard error say what was left out.
///
/// The traces of a directory, such as the files of a series, become one trace, if all have
/// one sampling rate. What was alive when the first of them began is not in it.
///
/// Ids are kept, except where traces are joined, where domains are joined (version 3 to version 2) and
/// after damage: then objects are numbered in the order of their allocation.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap recode old.ctf new.ctf              version 1 becomes 2, others stay
  heaptap recode --format 2 par.ctf flat.ctf  for tools that know one domain only
  heaptap recode traces one.ctf               the files of a series become one
  heaptap recode damaged.ctf repaired.ctf     keep what is left of a damaged trace
  heaptap recode trace.ctf.gz trace.ctf       gzip and zstd files are read as they are"
))]
pub(crate) struct Recode {
    #[command(flatten)]
    files: InAndOut,

    /// Version of the format to write; by default 3 for version 3, else 2
    #[arg(long, value_name = "VERSION")]
    format: Option<TargetFormat>,
}

/// The versions that can be written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TargetFormat {
    /// One domain; every reader opens it
    #[value(name = "2")]
    V2,
    /// Any number of domains; newer readers only
    #[value(name = "3")]
    V3,
}

impl Recode {
    pub(crate) fn run(&self) -> VerbResult {
        if self.files.input.is_dir() {
            return self.join();
        }
        let input = Input::open(&self.files.input)?;
        // Other traces are read only once.
        if self.format == Some(TargetFormat::V2) || input.is_compressed() {
            input.make_repeatable()?;
        }
        let mut reader = input.reader(Mode::Lenient)?;
        let format = match self.format {
            None => reader.format().of_copy(),
            Some(TargetFormat::V2) => TraceFormat::Memtrace2,
            Some(TargetFormat::V3) => TraceFormat::Memtrace3,
        };
        if format.has_one_domain() && !reader.format().has_one_domain() {
            return self.flatten(&input, format);
        }
        if reader.format() == format
            && input.is_repeatable()
            && let Some((length, verdict)) = sound_length(&input)?
        {
            self.copy_bytes(&input, length)?;
            return Ok(verdict);
        }
        let info = reader.info().clone();
        self.rewrite(&input, format, info).copy(&mut *reader, |time| time)
    }

    /// Makes one trace of those of a directory.
    fn join(&self) -> VerbResult {
        let mut traces = Joined::survey(&self.files)?;
        traces.has_one_rate()?;
        match self.format {
            None => {}
            Some(TargetFormat::V2) => traces.format = TraceFormat::Memtrace2,
            Some(TargetFormat::V3) => traces.format = TraceFormat::Memtrace3,
        }
        let info = traces.info.clone();
        let all = |allocation: &Allocation<'_>, _| Some(allocation.block());
        traces.write(&self.files, &info, MergedNames::default(), all, |time| time)
    }

    /// Copies the first bytes of the file.
    fn copy_bytes(&self, input: &Input, length: u64) -> Result<(), Failure> {
        let mut output = Output::create(&self.files.output)?;
        let copied = io::copy(&mut input.bytes_again().take(length), &mut output);
        input.end_progress();
        copied.map_err(|error| Failure::writing(output.name(), &error))?;
        output.complete()
    }

    /// Joins all domains into one.
    fn flatten(&self, input: &Input, format: TraceFormat) -> VerbResult {
        let mut events = input.in_time_order()?;
        let info = TraceInfo { domain: 0, ..events.info().clone() };
        self.rewrite(input, format, info).renumber(&mut *events, None)
    }

    fn rewrite<'a>(
        &'a self,
        input: &'a Input,
        format: TraceFormat,
        info: TraceInfo,
    ) -> Rewrite<'a, SameNames> {
        Rewrite { input, files: &self.files, format, info, names: SameNames::default() }
    }
}

/// The length of a trace of which nothing needs to be changed, with what it says of itself; `None` of
/// others. One that was cut short between two packets, and says so, is such a trace.
fn sound_length(input: &Input) -> Result<Option<(u64, Verdict)>, Failure> {
    let mut reader = input.reader(Mode::Lenient)?;
    let mut lives = Lives::new(Lives::MEMORY);
    let mut check = |event: &Event<'_>, _: &LocationTable| match lives.event(event) {
        Some(_) => ControlFlow::Break(()),
        None => ControlFlow::Continue(()),
    };
    if reader.for_each(&mut check).map_err(|error| input.failure(error))?.is_break() {
        return Ok(None);
    }
    lives.find_never_allocated();
    let losses = reader.losses();
    let is_sound = losses.is_clean()
        && losses.foreign_packets == 0
        && lives.offences().next().is_none()
        && lives.unchecked().is_none();
    if !is_sound {
        return Ok(None);
    }
    let verdict = input.report_with(&*reader, &mut lives, &|_| None);
    Ok(Some((reader.offset(), verdict)))
}
