//! The snapshot that `heaptap attach --snapshot` has taken before a trace began, beside the trace.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use heaptap_graph::{HeapAnalysis, HolderId, RetainingHolders};
use heaptap_heap::MetaKey;
use heaptap_report::figures::BeforeAttach;
use heaptap_report::figures::heap::titles::Titles;
use heaptap_trace::TraceInfo;

use super::load::{load_graph, too_big};
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::notices::say;
use crate::io::trace_files::{InputFile, expand, shown};

/// What was in the heap before a trace began, if there is one trace, and beside it such a snapshot of the same
/// process. One that cannot be read is named, and left out.
pub(crate) fn before_attach(files: &[PathBuf], info: &TraceInfo) -> Option<BeforeAttach> {
    let expanded = expand(files).ok()?;
    let [InputFile { path, .. }] = &expanded[..] else { return None };
    let snapshot = beside(path);
    if !path.is_file() || !snapshot.is_file() {
        return None;
    }
    let analysis = match load(&snapshot) {
        Ok(analysis) => analysis,
        Err(failure) => {
            let why = failure.message().unwrap_or_default().to_owned();
            say(&format!("what was there before the trace is not shown: {why}"));
            return None;
        }
    };
    let facts = analysis.graph.facts();
    let taken = facts.number(MetaKey::TIME)? / 1000;
    let is_same = facts.number(MetaKey::PID) == Some(info.pid);
    let is_before = facts.number(MetaKey::TRACE_START).is_none() && taken <= info.start_time;
    (is_same && is_before).then(|| figures(&analysis, &shown(&snapshot), info.start_time - taken))
}

fn load(snapshot: &Path) -> Result<HeapAnalysis, Failure> {
    let input = Input::open_snapshot(snapshot)?;
    let analysis = HeapAnalysis::new(load_graph(&input, false)?);
    input.end_progress();
    analysis.ok_or_else(|| too_big(&input))
}

/// The name that such a snapshot has.
fn beside(trace: &Path) -> PathBuf {
    let mut name = OsString::from(trace);
    name.push(".heap");
    PathBuf::from(name)
}

fn figures(analysis: &HeapAnalysis, file: &str, before_us: u64) -> BeforeAttach {
    let (graph, reachable) = (&analysis.graph, analysis.reachable());
    let retaining = RetainingHolders::new(&analysis.dominators);
    let mut sums: HashMap<HolderId, u64> = HashMap::new();
    for block in 0..graph.blocks() as u32 {
        if let Some(holder) = retaining.of(block) {
            *sums.entry(holder).or_default() += graph.bytes(block);
        }
    }
    let titles = Titles::new(analysis);
    // Several holders may have one name.
    let mut by_name: HashMap<String, u64> = HashMap::new();
    for (holder, bytes) in sums {
        *by_name.entry(titles.keeper(holder)).or_default() += bytes;
    }
    let outside = analysis.outside();
    BeforeAttach {
        file: file.to_owned(),
        before_us,
        bytes: reachable.bytes,
        blocks: reachable.blocks,
        garbage_bytes: analysis.all().bytes.saturating_sub(reachable.bytes),
        outside_bytes: outside.allocated,
        held_by: BeforeAttach::parts(by_name.into_iter().collect()),
    }
}
