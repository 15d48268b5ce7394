//! A trace written again, as `thin`, `recode` and `anonymise` do.
//!
//! A [`Rewrite`] says from where to where, and what the new trace says about itself. The events take one of
//! two ways: [`copy`] keeps the order and the ids of the file, [`renumber`] takes them in the order of time, may
//! leave objects out, and assigns new ids. Both write through [`writing`], which turns damaged events into
//! ones that can be written and [renames](renaming) frames.

mod copy;
pub(crate) mod renaming;
pub(crate) mod renumber;
mod writing;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_trace::{EventSource, TraceFormat, TraceInfo};

use crate::exit_status::{Failure, VerbResult};
use crate::io::input::Input;
use crate::io::lifecycle::{Lives, Offence};
use crate::io::output::Output;
use crate::io::rewrite::renaming::Renaming;
use crate::io::rewrite::writing::Rewriting;

/// The two traces of a verb that writes one again.
#[derive(Args)]
pub(crate) struct InAndOut {
    /// The trace to read, a directory of traces that become one, or `-` for standard input
    #[arg(value_name = "IN", value_hint = ValueHint::AnyPath)]
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

impl<R: Renaming> Rewrite<'_, R> {
    /// Creates the file.
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
