//! Reads heap snapshots for the web page.

use std::path::{Path, PathBuf};

use heaptap_graph::HeapAnalysis;
use heaptap_heap::{Item, MetaKey, Reader};
use heaptap_report::figures::GARBAGE;
use heaptap_report::figures::heap::page::{
    HeldSite, PageSnapshot, PageSnapshots, ROWS, SnapshotPages,
};
use heaptap_report::rows::{By, Grouping};
use heaptap_report::{ALL_SITE_FRAMES, Options, SiteFrame};
use heaptap_trace::TraceInfo;

use super::load::{load, say_types};
use super::sites::sites_of;
use super::snapshot_holders::holders;
use super::tracked::{TrackedBlocks, TrackedList};
use crate::analysis::archive::{Compression, compressed};
use crate::analysis::ocaml_types::TypeOptions;
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::trace_files::{is_snapshot, page_names};
use crate::text::json;

/// The files of a page: traces and snapshots.
pub(crate) struct PageFiles {
    pub(crate) traces: Vec<PathBuf>,
    pub(crate) snapshots: Vec<PathBuf>,
}

impl PageFiles {
    pub(crate) fn new(files: &[PathBuf]) -> PageFiles {
        let (snapshots, traces) = files.iter().cloned().partition(|path| is_snapshot(path));
        PageFiles { traces, snapshots }
    }
}

/// A trace of the page, which a snapshot may belong to.
struct PageTrace<'a> {
    path: &'a Path,
    info: TraceInfo,
}

/// Reads snapshots. `traces` are those of the page.
pub(crate) fn read(files: &[PathBuf], traces: &[PathBuf], types: &TypeOptions) -> PageSnapshots {
    let traces: Vec<Option<PageTrace<'_>>> = traces.iter().map(|path| trace(path)).collect();
    let names = page_names(files);
    let mut files: Vec<_> = files.iter().zip(names).collect();
    files.sort_by_cached_key(|(path, _)| taken(path));
    let mut page = SnapshotPages::default();
    let mut before: Option<HeapAnalysis> = None;
    for (path, name) in files {
        // Paths name fields.
        match load(path, types, true) {
            Ok((analysis, named)) => {
                say_types(path, &named);
                let snapshot =
                    with_trace(PageSnapshot::new(name, &analysis), path, &analysis, &traces);
                page.add(snapshot, &analysis, before.as_ref());
                before = Some(analysis);
            }
            Err(failure) => {
                page.fail(name, failure.message().unwrap_or("it cannot be read").to_owned());
            }
        }
    }
    page.finish()
}

/// As compressed JSON.
pub(crate) fn packed(page: &PageSnapshots, effort: Compression) -> Vec<u8> {
    let mut text = Vec::new();
    json::put(&mut text, page);
    compressed(&text, effort)
}

/// The failure of a page that has nothing to show but these snapshots.
pub(crate) fn failure(page: &PageSnapshots) -> Option<Failure> {
    let failed = page.failed.first().filter(|_| page.snapshots.is_empty())?;
    Some(Failure::Trouble(failed.error.clone()))
}

/// Adds what the trace says that was being written then.
fn with_trace(
    mut snapshot: PageSnapshot,
    path: &Path,
    analysis: &HeapAnalysis,
    traces: &[Option<PageTrace<'_>>],
) -> PageSnapshot {
    let listed = TrackedList::of(analysis);
    let PageSnapshot { pid, ref summary, .. } = snapshot;
    let since = |trace: &PageTrace<'_>| summary.taken_us?.checked_sub(trace.info.start_time);
    let is_its = |trace: &PageTrace<'_>| {
        pid.is_some() && since(trace).is_some() && listed.origin.check(&trace.info).is_ok()
    };
    let trace = traces.iter().position(|trace| trace.as_ref().is_some_and(is_its));
    let its = trace.and_then(|number| traces.get(number)?.as_ref());
    let at_us = its.and_then(since);
    if let Ok(trace) = listed.origin.find_trace(path, its.map(|trace| trace.path)) {
        for site in ALL_SITE_FRAMES {
            join(&mut snapshot, analysis, &listed, (&trace, site));
        }
    }
    (snapshot.trace, snapshot.at_us) = (trace, at_us);
    snapshot
}

/// Adds what the trace has of the snapshot's blocks, by each kind of site. One that is not the trace that
/// was being written then adds nothing.
fn join(
    snapshot: &mut PageSnapshot,
    analysis: &HeapAnalysis,
    listed: &TrackedList,
    (trace, site): (&Path, SiteFrame),
) {
    /// Sites that keep growing have much in a snapshot.
    const MOST: usize = 64;
    let rows = Grouping { by: By::Location, site };
    let options = Options { depth: rows.depth(), ..Options::default() };
    let Ok(tracked) = TrackedBlocks::read(listed, trace, options, "") else { return };
    if site == SiteFrame::Innermost {
        snapshot.sites = Some(sites_of(analysis, &tracked, None, ROWS));
    }
    let found = holders(analysis, &snapshot.name, &tracked, rows);
    snapshot.held_sites.extend(found.largest(MOST).into_iter().filter_map(|(row, held)| {
        let first = held.held_by.first().map(|part| part.holder.clone());
        let holder = first.filter(|holder| holder != GARBAGE);
        Some(HeldSite { sites: site, site: row, text: held.text()?, holder })
    }));
}

/// When a snapshot was taken. One that cannot be read comes first; loading it says why.
fn taken(path: &Path) -> Option<u64> {
    number_of(path, MetaKey::TIME)
}

/// A number that a snapshot says of itself.
pub(crate) fn number_of(path: &Path, wanted: MetaKey) -> Option<u64> {
    let input = Input::open(path).ok()?.quietly();
    let mut reader = Reader::new(input.snapshot_bytes()).ok()?;
    while let Some(item) = reader.next_item().ok()? {
        match item {
            Item::Meta { key, value } if key == wanted => {
                return std::str::from_utf8(value).ok()?.parse().ok();
            }
            // What a snapshot is about comes before its blocks.
            Item::Block(_) => return None,
            _ => {}
        }
    }
    None
}

/// A trace that can be read again; `None` for others.
fn trace(path: &Path) -> Option<PageTrace<'_>> {
    if !path.is_file() {
        return None;
    }
    let events = Input::open(path).map(Input::quietly).and_then(|input| input.in_file_order());
    Some(PageTrace { path, info: events.ok()?.info().clone() })
}
