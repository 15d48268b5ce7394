//! `heaptap recode`: rewrites a trace, in another version of the format or repaired.

use std::io::{self, Read as _};
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use heaptap_report::figures::units::count;
use heaptap_trace::{Allocation, Block, Format, Mode, TraceInfo, Version};

use crate::exit_status::{Failure, VerbResult, Verdict, help_end};
use crate::io::copy::{copy, outcome};
use crate::io::input::Input;
use crate::io::lifecycle::Lives;
use crate::io::notices::say;
use crate::io::output::Output;
use crate::io::renaming::SameNames;
use crate::io::renumber::{Selection, SkippedEvents, renumber};
use crate::io::rewrite::{LEFT_OUT, Rewriting, same_format};

/// Write a trace again, in another version of the format or repaired
///
/// A sound trace that already has the version is copied to the byte, if it is in a file.
/// Otherwise the events are written as the original writer would have written them, one
/// of a pipe too. A damaged trace becomes a sound
/// one with everything that could be read: unknown frames become `<lost>`, and
/// promotions and collections of lost objects are left out, and so are those that an
/// object cannot have: a second collection, or a promotion of external memory.
/// Messages on standard error say what was left out.
///
/// Ids are kept, except where domains are joined (version 3 to version 2) and
/// after damage: then objects are numbered in the order of their allocation.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap recode old.ctf new.ctf              version 1 becomes 2, others stay
  heaptap recode --format 2 par.ctf flat.ctf  for tools that know one domain only
  heaptap recode damaged.ctf repaired.ctf     keep what is left of a damaged trace
  zcat trace.ctf.gz | heaptap recode - new.ctf"
))]
pub(crate) struct Recode {
    /// The trace to read, or `-` for standard input
    #[arg(value_name = "IN", value_hint = ValueHint::FilePath)]
    input: PathBuf,

    /// The trace to write, or `-` for standard output; may be IN
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    /// Version of the format to write; by default 3 for version 3, else 2
    #[arg(long, value_name = "VERSION")]
    format: Option<TargetFormat>,
}

/// The versions that can be written.
#[derive(Clone, Copy, ValueEnum)]
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
        let input = Input::open(&self.input)?;
        if let Some(TargetFormat::V2) = self.format {
            // Other traces are read only once.
            input.make_repeatable()?;
        }
        let mut reader = input.memtrace_reader(Mode::Lenient)?;
        let format = match self.format {
            None => same_format(reader.version()),
            Some(TargetFormat::V2) => Format::V2,
            Some(TargetFormat::V3) => Format::V3,
        };
        if reader.version() == Version::V3 && format == Format::V2 {
            return self.flatten(&input);
        }
        if is_of(reader.version(), format)
            && input.is_repeatable()
            && let Some((length, verdict)) = sound_length(&input)?
        {
            self.copy_bytes(&input, length)?;
            return Ok(verdict);
        }
        let output = Output::create(&self.output)?.cut_short_as(reader.losses());
        let mut out = Rewriting::begin(output, format, reader.info(), SameNames::default())?;
        let mut lives = copy(&input, &mut reader, format, |time| time, &mut out)?;
        input.end_progress();
        out.cover(reader.covered(), reader.locations())?;
        out.complete(reader.locations())?;
        Ok(input.report_with(&reader, &mut lives, &outcome(&input, &reader)))
    }

    /// Copies the first bytes of the file.
    fn copy_bytes(&self, input: &Input, length: u64) -> Result<(), Failure> {
        let mut output = Output::create(&self.output)?;
        let copied = io::copy(&mut input.bytes_again().take(length), &mut output);
        input.end_progress();
        copied.map_err(|error| Failure::writing(output.name(), &error))?;
        output.complete()
    }

    /// Joins all domains into one.
    fn flatten(&self, input: &Input) -> VerbResult {
        let mut events = input.in_time_order()?;
        let info = TraceInfo { domain: 0, ..events.info().clone() };
        let output = Output::create(&self.output)?.cut_short_as(events.losses());
        let mut out = Rewriting::begin(output, Format::V2, &info, SameNames::default())?;
        let SkippedEvents { orphans, mut lives } =
            renumber(input, &mut *events, &mut Everything, &mut out)?;
        input.end_progress();
        if orphans > 0 {
            let events = count(orphans, "event", "events");
            say(&format!("{}: {events} of objects not allocated before left out", input.name()));
        }
        out.complete(events.locations())?;
        Ok(input.report_with(&*events, &mut lives, &|_| Some(LEFT_OUT)))
    }
}

/// Whether a trace of this version is in this format.
fn is_of(version: Version, format: Format) -> bool {
    matches!((version, format), (Version::V2, Format::V2) | (Version::V3, Format::V3))
}

/// The length of a trace of which nothing needs to be changed, with what it says of itself; `None` of
/// others. One that was cut short between two packets, and says so, is such a trace.
fn sound_length(input: &Input) -> Result<Option<(u64, Verdict)>, Failure> {
    let mut reader = input.memtrace_reader(Mode::Lenient)?;
    let mut lives = Lives::new(Lives::MEMORY);
    while let Some(event) = reader.next_event().map_err(|error| input.failure(error))? {
        if lives.event(&event).is_some() {
            return Ok(None);
        }
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
    let verdict = input.report_with(&reader, &mut lives, &|_| None);
    Ok(Some((reader.offset(), verdict)))
}

/// Selects all objects, for one domain.
struct Everything;

impl Selection for Everything {
    fn block(&mut self, allocation: &Allocation<'_>) -> Option<Block> {
        Some(allocation.block())
    }

    fn domain(&self, _domain: u16) -> u16 {
        0
    }
}
