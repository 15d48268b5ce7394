//! `heaptap check`: whether a trace is sound.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_report::figures::units::{bytes, count};
use heaptap_trace::{CutReason, Event, LocationTable, Losses, Mode, TraceReader};

use crate::analysis::series_check::check_sidecar;
use crate::exit_status::{Failure, VerbResult, Verdict, help_end};
use crate::io::input::Input;
use crate::io::lifecycle::Lives;
use crate::io::notices;
use crate::io::output::print;
use crate::text::terminal::{Layout, wrap_whole};

/// Check whether a trace is sound
///
/// Every packet is decoded and checked against the rules of the format and against
/// the packets before it; every object must be allocated once, then promoted and
/// collected at most once. Prints the first defect with its byte and packet, and
/// what can be read in spite of it.
///
/// A file that ends inside a packet is no defect: its program was killed or still
/// runs. With --strict it is one, as is everything else that is unusual.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap check trace.ctf
  heaptap check --strict trace.ctf && upload trace.ctf
  heaptap recode damaged.ctf repaired.ctf    what to do about a damaged one"
))]
pub(crate) struct Check {
    /// The trace, or `-` for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Stop at the first defect; a cut-off tail, a file that could not be written to its
    /// end, packets of other processes and promotions of external memory are defects too
    #[arg(long)]
    strict: bool,
}

impl Check {
    pub(crate) fn run(&self) -> VerbResult {
        let input = Input::open(&self.file)?;
        let mode = if self.strict { Mode::Strict } else { Mode::Lenient };
        let mut reader = input.reader(mode)?;
        let mut lives = Lives::new(Lives::MOST_MEMORY);
        let mut first = None;
        let mut take = |event: &Event<'_>, _: &LocationTable| {
            first = lives.event(event).filter(|_| self.strict);
            if first.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        _ = reader.for_each(&mut take).map_err(|error| input.failure(error))?;
        if let Some((offence, id)) = first {
            let (name, packet_end, offence) =
                (input.name(), reader.offset(), offence.description());
            let message = format!("{name}: before byte {packet_end}: object {id} {offence}");
            return Err(Failure::Defective(message));
        }
        // If something is missing, an object's allocation may be, too.
        if reader.losses().is_clean() && reader.losses().cut_short.is_none() {
            lives.find_never_allocated();
        }
        input.end_progress();
        let sidecar = check_sidecar(&self.file)?;
        let mut verdict = self.verdict(reader.losses(), &lives);
        if sidecar.as_ref().is_some_and(|sidecar| !sidecar.is_sound(self.strict)) {
            verdict = Verdict::Defective;
        }
        let width = Layout::of_stdout().width;
        let mut text = summary(input.name(), &*reader, &lives, verdict, width);
        if let Some(sidecar) = sidecar {
            _ = writeln!(text, "  {}", wrap_whole(&sidecar.line(), 2, width));
        }
        print(text.as_bytes())?;
        Ok(verdict)
    }

    fn verdict(&self, losses: &Losses, lives: &Lives) -> Verdict {
        let failed = losses.cut_short.is_some_and(|cut| cut.reason == CutReason::WriteFailed);
        let unusual = self.strict && (losses.foreign_packets > 0 || failed);
        let mut offences = lives.offences();
        let offends = offences.any(|(offence, _)| self.strict || !offence.is_harmless());
        if losses.defect_count > 0 || offends || unusual {
            Verdict::Defective
        } else {
            Verdict::Sound
        }
    }
}

/// The text for standard output.
fn summary(
    name: &str,
    reader: &dyn TraceReader,
    lives: &Lives,
    verdict: Verdict,
    width: usize,
) -> String {
    let losses = reader.losses();
    let state = match verdict {
        Verdict::Defective | Verdict::OverLimit | Verdict::Undecided | Verdict::LeftOut => {
            "defective"
        }
        Verdict::Sound if losses.truncated.is_some() => "sound, but cut off at its end",
        Verdict::Sound if losses.cut_short.is_some() => "sound, but cut short",
        Verdict::Sound => "sound",
    };
    let mut text = format!("{}\n", wrap_whole(&format!("{name}: {state}"), 0, width));
    let totals = reader.totals();
    let read = [
        count(totals.packets, "packet", "packets"),
        count(totals.allocations, "allocation", "allocations"),
        count(totals.promotions, "promotion", "promotions"),
        count(totals.collections, "collection", "collections"),
        count(totals.locations, "location", "locations"),
        bytes(reader.offset() as f64),
    ];
    // Writing to a string does not fail.
    let mut add = |line: &str| _ = writeln!(text, "  {}", wrap_whole(line, 2, width));
    add(&format!("read: {}", read.join(", ")));
    notices::lines(losses).iter().for_each(|line| add(line));
    for (offence, cases) in lives.offences() {
        add(&cases.line(offence, reader.info().start_time));
    }
    if let Some(id) = lives.unchecked() {
        let limit = bytes(Lives::MOST_MEMORY as f64);
        add(&format!(
            "lives of objects not all checked, from object {id} on: over {limit} of memory"
        ));
    }
    text
}
