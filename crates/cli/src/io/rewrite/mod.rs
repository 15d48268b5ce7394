//! A trace written again, as `thin`, `recode` and `anonymise` do.
//!
//! A [`Rewrite`] says from where to where, and what the new trace says about itself. The events take one of
//! two ways: [`copy`] keeps the order and the ids of the file, [`renumber`] takes them in the order of time, may
//! leave objects out, and assigns new ids. Both write through [`writing`], which turns damaged events into
//! ones that can be written and [renames](renaming) frames.

mod copy;
pub(crate) mod renaming;
mod renumber;
mod writing;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_trace::{Allocation, Block, EventSource, TraceFormat, TraceInfo, TraceReader};

use crate::exit_status::{Failure, VerbResult};
use crate::io::input::Input;
use crate::io::lifecycle::{Lives, Offence};
use crate::io::output::Output;
use crate::io::rewrite::renaming::Renaming;
use crate::io::rewrite::writing::Rewriting;

/// The two traces of a verb that writes one again.
#[derive(Args)]
pub(crate) struct InAndOut {
    /// The trace to read, or `-` for standard input
    #[arg(value_name = "IN", value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,

    /// The trace to write, or `-` for standard output; may be IN
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

/// A trace to write again.
pub(crate) struct Rewrite<'a, R> {
    pub(crate) input: &'a Input,
    pub(crate) files: &'a InAndOut,
    /// What the new trace is, and what it says about itself.
    pub(crate) format: TraceFormat,
    pub(crate) info: TraceInfo,
    pub(crate) names: R,
}

/// Chooses the block to write for an allocation, if it is kept.
pub(crate) type Selection<'a> = &'a mut dyn FnMut(&Allocation<'_>) -> Option<Block>;

impl<R: Renaming> Rewrite<'_, R> {
    /// Keeps order and ids. `shift` moves the times.
    pub(crate) fn copy(
        self,
        reader: &mut dyn TraceReader,
        shift: impl Fn(u64) -> u64,
    ) -> VerbResult {
        let (input, format) = (self.input, self.format);
        let mut out = self.begin(reader)?;
        let lives = copy::copy(input, reader, format, shift, &mut out)?;
        input.end_progress();
        out.cover(reader.covered(), reader.locations())?;
        // Else an object whose allocation is not read yet may still have one.
        let surveyed = reader.format().has_one_domain() || input.is_repeatable();
        end(input, out, reader, lives, &|offence| match offence {
            Offence::NeverAllocated if !surveyed => {
                Some("these events are in the copy; read the trace from a file to leave them out")
            }
            _ => Some(LEFT_OUT),
        })
    }

    /// Assigns new ids to all objects, or to those that are selected.
    pub(crate) fn renumber(
        self,
        events: &mut dyn EventSource,
        selection: Option<Selection<'_>>,
    ) -> VerbResult {
        let (input, format) = (self.input, self.format);
        let mut out = self.begin(events)?;
        let lives = renumber::renumber(input, events, format, selection, &mut out)?;
        end(input, out, events, lives, &|_| Some(LEFT_OUT))
    }

    fn begin(self, source: &(impl EventSource + ?Sized)) -> Result<Rewriting<R>, Failure> {
        let output = Output::create(&self.files.output)?;
        Rewriting::begin(output, self.format, &self.info, source.losses(), self.names)
    }
}

/// What becomes of events that an object cannot have.
const LEFT_OUT: &str = "these events are left out of the copy";

/// Completes the file, and says what is wrong with the trace that was read.
fn end<R: Renaming>(
    input: &Input,
    out: Rewriting<R>,
    source: &dyn EventSource,
    mut lives: Lives,
    outcome: &dyn Fn(Offence) -> Option<&'static str>,
) -> VerbResult {
    out.complete(source.locations())?;
    Ok(input.report_with(source, &mut lives, outcome))
}
