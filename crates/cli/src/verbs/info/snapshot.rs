//! The facts about a heap snapshot.

use heaptap_graph::Summary;
use heaptap_heap::{Completion, FinaliserKind, MetaKey, RootKind, SegmentKind};
use serde::Serialize;

use crate::exit_status::{Failure, Verdict};
use crate::io::input::Input;

/// Everything that is shown. The field names are those of the JSON.
#[derive(Serialize)]
pub(super) struct SnapshotFacts {
    pub(super) name: String,
    /// Always `heap snapshot`.
    pub(super) kind: &'static str,
    pub(super) program: Option<String>,
    pub(super) runtime: Option<String>,
    pub(super) host: Option<String>,
    pub(super) pid: Option<u64>,
    pub(super) time_unix_ns: Option<u64>,
    pub(super) reason: Option<String>,
    pub(super) method: Option<String>,
    pub(super) gc_phase: Option<String>,
    pub(super) header_words: Option<u64>,
    pub(super) trace_file: Option<String>,
    pub(super) trace_start_us: Option<u64>,
    pub(super) string_bytes: Option<u64>,
    /// Whether nothing is missing at the end.
    pub(super) complete: bool,
    /// How many bytes of a file that is cut short are valid.
    pub(super) valid_bytes: Option<u64>,
    pub(super) error: Option<String>,
    pub(super) skipped_chunks: u64,
    pub(super) blocks: u64,
    pub(super) words: u64,
    pub(super) pointers: u64,
    pub(super) segments: Vec<SegmentFacts>,
    pub(super) roots: Vec<RootFacts>,
    pub(super) finalisers: FinaliserFacts,
    pub(super) ephemerons: u64,
    pub(super) ephemeron_keys: u64,
    pub(super) customs: Vec<CustomFacts>,
    /// Outside the heap, without mapped files. What several blocks keep counts once.
    pub(super) outside_bytes: u64,
    pub(super) mapped_bytes: u64,
    pub(super) strings: u64,
    pub(super) modules: u64,
    pub(super) threads: u64,
    pub(super) named_codes: u64,
    pub(super) followed: u64,
    /// In tests: what the runtime itself kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kept_blocks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kept_words: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct SegmentFacts {
    pub(super) kind: &'static str,
    pub(super) count: u64,
    pub(super) words: u64,
}

#[derive(Serialize)]
pub(super) struct RootFacts {
    pub(super) kind: &'static str,
    pub(super) count: u64,
}

#[derive(Serialize)]
pub(super) struct FinaliserFacts {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) pending: u64,
}

#[derive(Serialize)]
pub(super) struct CustomFacts {
    pub(super) identifier: String,
    pub(super) blocks: u64,
    pub(super) outside_bytes: u64,
    pub(super) mapped_bytes: u64,
}

impl SnapshotFacts {
    /// Reads the snapshot to its end.
    pub(super) fn gather(input: &Input) -> Result<(SnapshotFacts, Verdict), Failure> {
        let summary = Summary::read(input.snapshot_bytes())
            .map_err(|error| input.snapshot_failure(&error))?;
        let verdict = if summary.error.is_some() { Verdict::Defective } else { Verdict::Sound };
        Ok((SnapshotFacts::of(input.name(), &summary), verdict))
    }

    fn of(name: &str, summary: &Summary) -> SnapshotFacts {
        let text = |key| {
            let value = summary.meta(key)?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        let number = |key| text(key)?.parse().ok();
        let counted = &summary.counted;
        let valid_bytes = match summary.completion {
            Completion::CutShort { valid } => Some(valid),
            Completion::Complete | Completion::Unknown => None,
        };
        let finalisers =
            |kind: FinaliserKind| summary.finalisers.get(&kind).copied().unwrap_or_default();
        SnapshotFacts {
            name: name.to_owned(),
            kind: "heap snapshot",
            program: text(MetaKey::PROGRAM),
            runtime: text(MetaKey::RUNTIME),
            host: text(MetaKey::HOST),
            pid: number(MetaKey::PID),
            time_unix_ns: number(MetaKey::TIME),
            reason: text(MetaKey::REASON),
            method: text(MetaKey::METHOD),
            gc_phase: text(MetaKey::GC_PHASE),
            header_words: number(MetaKey::HEADER_WORDS),
            trace_file: text(MetaKey::TRACE_FILE),
            trace_start_us: number(MetaKey::TRACE_START),
            string_bytes: number(MetaKey::STRINGS),
            complete: summary.completion == Completion::Complete,
            valid_bytes,
            error: summary.error.as_ref().map(ToString::to_string),
            skipped_chunks: summary.skipped_chunks,
            blocks: counted.blocks,
            words: counted.words,
            pointers: counted.pointers,
            segments: segments(summary),
            roots: roots(summary),
            finalisers: FinaliserFacts {
                first: finalisers(FinaliserKind::First),
                last: finalisers(FinaliserKind::Last),
                pending: finalisers(FinaliserKind::Pending),
            },
            ephemerons: counted.ephemerons,
            ephemeron_keys: counted.ephemeron_keys,
            customs: customs(summary),
            outside_bytes: summary.outside.allocated,
            mapped_bytes: summary.outside.mapped,
            strings: counted.strings,
            modules: counted.modules,
            threads: counted.threads,
            named_codes: counted.names,
            followed: counted.followed,
            kept_blocks: number(MetaKey::KEPT_BLOCKS),
            kept_words: number(MetaKey::KEPT_WORDS),
        }
    }

    /// What is to be said on standard error.
    pub(super) fn notices(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(error) = &self.error {
            lines.push(format!("{error}; what comes before is counted"));
        }
        if let Some(valid) = self.valid_bytes {
            lines.push(format!(
                "cut short after byte {valid}: its writer was killed or is not done yet; \
                 what comes before is counted"
            ));
        }
        if self.skipped_chunks > 0 {
            lines.push(format!(
                "{} chunks of a later version are left out; a newer heaptap reads them",
                self.skipped_chunks
            ));
        }
        lines
    }
}

fn segments(summary: &Summary) -> Vec<SegmentFacts> {
    let kinds = SegmentKind::ALL.into_iter();
    let found = kinds.filter_map(|kind| Some((kind, summary.segments.get(&kind)?)));
    found
        .map(|(kind, sum)| SegmentFacts { kind: kind.name(), count: sum.count, words: sum.words })
        .collect()
}

fn roots(summary: &Summary) -> Vec<RootFacts> {
    let kinds = RootKind::ALL.into_iter();
    let found = kinds.filter_map(|kind| Some((kind, summary.roots.get(&kind)?)));
    found.map(|(kind, count)| RootFacts { kind: kind.name(), count: *count }).collect()
}

/// The kinds of custom blocks, those with the most bytes outside first.
fn customs(summary: &Summary) -> Vec<CustomFacts> {
    let mut customs: Vec<CustomFacts> = summary
        .customs
        .iter()
        .filter(|(_, sum)| sum.blocks > 0)
        .map(|(operations, sum)| CustomFacts {
            identifier: match sum.identifier.as_slice() {
                [] => format!("operations at {operations:#x}"),
                identifier => String::from_utf8_lossy(identifier).into_owned(),
            },
            blocks: sum.blocks,
            outside_bytes: sum.outside.allocated,
            mapped_bytes: sum.outside.mapped,
        })
        .collect();
    customs.sort_by(|one, other| {
        let order = (other.outside_bytes, other.blocks).cmp(&(one.outside_bytes, one.blocks));
        order.then_with(|| one.identifier.cmp(&other.identifier))
    });
    customs
}
