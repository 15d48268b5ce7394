//! `heaptap check`: whether a trace is sound.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use heaptap_report::figures::units::{bytes, count};
use heaptap_trace::{CutReason, Event, LocationTable, Losses, Mode, TraceReader, TraceTotals};

use crate::analysis::series_boundaries::Boundaries;
use crate::analysis::series_check::check_sidecar;
use crate::exit_status::{Failure, VerbResult, Verdict, help_end};
use crate::io::input::Input;
use crate::io::lifecycle::Lives;
use crate::io::notices;
use crate::io::output::print;
use crate::io::sidecar::read_sidecar;
use crate::io::sidecar_path::sidecar_path;
use crate::io::trace_files::{expand, shown};
use crate::text::terminal::{Layout, wrap_whole};

/// Check whether a trace is sound
///
/// Every packet is decoded and checked against the rules of the format and against
/// the packets before it; every object must be allocated once, then promoted and
/// collected at most once. Prints the first defect with its byte and packet, and
/// what can be read in spite of it.
///
/// Of a directory, all traces in it are checked with their sidecars, and of each series that
/// nothing is counted twice or lost from one file to the next: what one says was alive when
/// it began has to be what the one before it left.
///
/// A file that ends inside a packet is no defect: its program was killed or still
/// runs. With --strict it is one, as is everything else that is unusual.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap check trace.ctf
  heaptap check --strict trace.ctf && upload trace.ctf
  heaptap check traces                       all files of a series, and that they fit together
  heaptap recode damaged.ctf repaired.ctf    what to do about a damaged one"
))]
pub(crate) struct Check {
    /// The trace, a directory of traces, or `-` for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    file: PathBuf,

    /// Stop at the first defect; a cut-off tail, a file that could not be written to its
    /// end, packets of other processes and promotions of external memory are defects too
    #[arg(long)]
    strict: bool,
}

/// What was found in a file.
struct Checked {
    text: String,
    verdict: Verdict,
    totals: TraceTotals,
    bytes: u64,
}

impl Check {
    pub(crate) fn run(&self) -> VerbResult {
        if self.file.is_dir() {
            return self.check_directory();
        }
        let checked = self.check_file(&self.file)?;
        print(checked.text.as_bytes())?;
        Ok(checked.verdict)
    }

    fn check_file(&self, file: &Path) -> Result<Checked, Failure> {
        let input = Input::open(file)?;
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
        let sidecar = check_sidecar(file)?;
        let mut verdict = self.verdict(reader.losses(), &lives);
        if sidecar.as_ref().is_some_and(|sidecar| !sidecar.is_sound(self.strict)) {
            verdict = Verdict::Defective;
        }
        let width = Layout::of_stdout().width;
        let mut text = summary(input.name(), &*reader, &lives, verdict, width);
        if let Some(sidecar) = sidecar {
            _ = writeln!(text, "  {}", wrap_whole(&sidecar.line(), 2, width));
        }
        Ok(Checked { text, verdict, totals: *reader.totals(), bytes: reader.offset() })
    }

    /// Checks every trace of a directory, and then what goes over from file to file. A file
    /// of which there is nothing to say has no line of its own.
    fn check_directory(&self) -> VerbResult {
        let files: Vec<PathBuf> =
            expand(std::slice::from_ref(&self.file))?.into_iter().map(|file| file.path).collect();
        let (mut verdict, mut texts, mut first) = (Verdict::Sound, String::new(), None);
        let (mut totals, mut read) = (TraceTotals::default(), 0);
        for file in &files {
            match self.check_file(file) {
                Ok(checked) => {
                    totals.packets += checked.totals.packets;
                    totals.allocations += checked.totals.allocations;
                    totals.promotions += checked.totals.promotions;
                    totals.collections += checked.totals.collections;
                    totals.locations += checked.totals.locations;
                    read += checked.bytes;
                    verdict = verdict.max(checked.verdict);
                    let is_plain =
                        checked.text.lines().next().is_some_and(|line| line.ends_with(": sound"));
                    if !is_plain {
                        texts.push_str(&checked.text);
                    }
                    if checked.verdict != Verdict::Sound {
                        first.get_or_insert(format!("{}, see below", shown(file)));
                    }
                }
                Err(Failure::Defective(message)) => {
                    verdict = verdict.max(Verdict::Defective);
                    first.get_or_insert(message);
                }
                Err(Failure::Trouble(message)) => {
                    verdict = verdict.max(Verdict::LeftOut);
                    _ = writeln!(texts, "{message}; not checked");
                    first.get_or_insert(message);
                }
                Err(failure) => return Err(failure),
            }
        }
        for file in files.iter().filter(|file| sidecar_path(file).is_file()) {
            let (name, mut probes) = read_sidecar(file)?;
            if let (Some(damage), Verdict::Defective) = probes.finding() {
                verdict = verdict.max(Verdict::Defective);
                first.get_or_insert(format!("{name}: {damage}"));
                _ = writeln!(texts, "{name}: {damage}");
            }
        }
        let boundaries = Boundaries::check(&files)?;
        if !boundaries.defects.is_empty() {
            verdict = verdict.max(Verdict::Defective);
        }
        let state = if verdict == Verdict::Sound { "sound" } else { "defective" };
        let width = Layout::of_stdout().width;
        let mut text =
            format!("{}\n", wrap_whole(&format!("{}: {state}", shown(&self.file)), 0, width));
        let mut add = |line: &str| _ = writeln!(text, "  {}", wrap_whole(line, 2, width));
        if let Some(first) = first.as_ref().or(boundaries.defects.first()) {
            add(&format!("first defect: {first}"));
        }
        let files = count(files.len() as u64, "file", "files");
        add(&format!("read: {files}, {}", counts(&totals, read)));
        for line in
            [&boundaries.series, &boundaries.defects, &boundaries.unknown].into_iter().flatten()
        {
            add(line);
        }
        print((text + &texts).as_bytes())?;
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
        Verdict::Sound if losses.truncated.is_some() => "sound, but cut off at its end",
        Verdict::Sound if losses.cut_short.is_some() => "sound, but cut short",
        Verdict::Sound => "sound",
        _ => "defective",
    };
    let mut text = format!("{}\n", wrap_whole(&format!("{name}: {state}"), 0, width));
    let totals = reader.totals();
    // Writing to a string does not fail.
    let mut add = |line: &str| _ = writeln!(text, "  {}", wrap_whole(line, 2, width));
    add(&format!("read: {}", counts(totals, reader.offset())));
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

/// How much was read.
fn counts(totals: &TraceTotals, read: u64) -> String {
    [
        count(totals.packets, "packet", "packets"),
        count(totals.allocations, "allocation", "allocations"),
        count(totals.promotions, "promotion", "promotions"),
        count(totals.collections, "collection", "collections"),
        count(totals.locations, "location", "locations"),
        bytes(read as f64),
    ]
    .join(", ")
}
