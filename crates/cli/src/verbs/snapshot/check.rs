//! Checks a snapshot, and finds what is reachable in it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use heaptap_graph::{CheckReport, GraphError, HeapGraph, LoadOptions, Reach, Reachability, check};
use heaptap_heap::Completion;
use heaptap_report::figures::units::{bytes, count, percent};

use crate::analysis::heap::load::MOST_MEMORY;
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::input::Input;
use crate::io::output::print;

/// What is checked.
#[derive(Args)]
pub(super) struct CheckOptions {
    /// Check whether a snapshot is sound: every chunk is decoded, blocks must lie in their segments
    /// and not overlap, roots and the pointers of what they reach must lead to blocks, and totals must agree. `-` is
    /// standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "pid")]
    check: Option<PathBuf>,

    /// Also find what is reachable, in all and by kind of root. Takes some 25 bytes of memory
    /// for each block
    #[arg(long, requires = "check")]
    reachable: bool,
}

impl CheckOptions {
    /// The snapshot to check, if one was named.
    pub(super) fn file(&self) -> Option<&Path> {
        self.check.as_deref()
    }

    pub(super) fn run(&self, file: &Path) -> VerbResult {
        let input = Input::open_snapshot(file)?;
        input.make_repeatable()?;
        let report = check(input.snapshot_bytes(), MOST_MEMORY);
        let report = report.map_err(|error| input.snapshot_failure(&error))?;
        let mut text = summary(input.name(), &report);
        if self.reachable && report.error.is_none() {
            match HeapGraph::load(
                input.snapshot_bytes(),
                LoadOptions { memory: MOST_MEMORY, fields: false },
            ) {
                Ok(graph) => write_reachable(&mut text, &graph.reachable()),
                Err(GraphError::Read(error)) => return Err(input.snapshot_failure(&error)),
                Err(error @ GraphError::CutShort) => _ = writeln!(text, "  {error}"),
                Err(error) => return Err(Failure::Trouble(format!("{}: {error}", input.name()))),
            }
        }
        input.end_progress();
        print(text.as_bytes())?;
        Ok(if report.is_sound() { Verdict::Sound } else { Verdict::Defective })
    }
}

fn summary(name: &str, report: &CheckReport) -> String {
    let is_cut = matches!(report.completion, Completion::CutShort { .. });
    let state = match (report.is_sound(), is_cut) {
        (false, _) => "defective",
        (true, true) => "sound, but cut short",
        (true, false) => "sound",
    };
    let mut text = format!("{name}: {state}\n");
    let counted = &report.counted;
    let read = [
        count(counted.blocks, "block", "blocks"),
        size(counted.words),
        count(counted.pointers, "pointer", "pointers"),
        count(counted.roots, "root", "roots"),
        count(counted.segments, "segment", "segments"),
    ];
    // Writing to a string does not fail.
    let _ = writeln!(text, "  read: {}", read.join(", "));
    if let Some(error) = &report.error {
        let _ = writeln!(text, "  {error}; take the snapshot again, or copy the file again");
    }
    if let Completion::CutShort { valid } = report.completion {
        let _ = writeln!(
            text,
            "  valid up to byte {valid}: its writer was killed or is not done yet; \
             pointers were not followed"
        );
    }
    for finding in &report.findings {
        let _ = writeln!(text, "  {finding}");
    }
    let more = report.finding_count - report.findings.len() as u64;
    if more > 0 {
        let _ = writeln!(text, "  … {} more", count(more, "finding", "findings"));
    }
    if report.lost_by_garbage > 0 {
        let lost = count(report.lost_by_garbage, "pointer leads", "pointers lead");
        let _ = writeln!(
            text,
            "  garbage: {lost} to no block, which is no defect: the runtime has freed what was there"
        );
    }
    if report.skipped_chunks > 0 {
        let chunks = count(report.skipped_chunks, "chunk", "chunks");
        let _ =
            writeln!(text, "  {chunks} of a later version left out; a newer heaptap reads them");
    }
    text
}

fn size(words: u64) -> String {
    format!("{} ({})", count(words, "word", "words"), bytes(words as f64 * 8.0))
}

/// Columns: by kind, what its roots reach, and what no kind before reaches.
fn write_reachable(text: &mut String, found: &Reachability) {
    let share = |reach: Reach| match found.all.words {
        0 => percent(0.0),
        all => percent(reach.words as f64 / all as f64),
    };
    let line = |reach: Reach| {
        let blocks = count(reach.blocks, "block", "blocks");
        format!("{blocks}, {} ({})", count(reach.words, "word", "words"), share(reach))
    };
    let garbage = found.all.minus(found.reachable);
    let _ = writeln!(text, "  reachable: {}", line(found.reachable));
    let _ = writeln!(text, "  not reachable: {}", line(garbage));
    for kind in &found.kinds {
        let roots = count(kind.roots, "root", "roots");
        let _ = writeln!(
            text,
            "  from {} ({roots}): {}; not from the kinds above: {}",
            kind.kind.name(),
            line(kind.reachable),
            line(kind.first_reached)
        );
    }
}
