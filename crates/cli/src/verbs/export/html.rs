//! `--to html`: the web page with the traces and heap snapshots in it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use heaptap_report::figures::units::{bytes, count};

use crate::analysis::archive::{Compression, PackedTrace, Packing, compressed};
use crate::analysis::filters::Filters;
use crate::analysis::heap::page_snapshots::{self, PageFiles};
use crate::analysis::ocaml_types::TypeOptions;
use crate::analysis::page_diagnosis::{DiagnosedFiles, DiagnosisOptions};
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::live_sidecar::LiveSidecar;
use crate::io::notices::say;
use crate::io::output::Output;
use crate::io::source_files::SourceRoots;
use crate::io::trace_files::page_names;
use crate::text::json;
use crate::text::page::{PageConfig, PageContents, PageMode, page};

/// What goes into the page, and where it goes.
pub(super) struct HtmlExport<'a> {
    /// Each trace is one of its own.
    pub(super) files: PageFiles,
    /// Where the types of blocks in snapshots come from.
    pub(super) types: &'a TypeOptions,
    pub(super) filters: &'a Filters,
    pub(super) most_blocks: usize,
    /// Where the text of source files comes from; none if it is not wanted.
    pub(super) sources: SourceRoots,
    pub(super) output: Option<&'a Path>,
}

/// The heap snapshots of a page.
struct PackedSnapshots {
    /// Compressed JSON.
    gzip: Vec<u8>,
    /// How many they are.
    extent: String,
    verdict: Verdict,
}

impl HtmlExport<'_> {
    pub(super) fn run(&self) -> VerbResult {
        let packing = Packing {
            selection: self.filters.selection()?,
            most_blocks: self.most_blocks,
            effort: Compression::default(),
            at: None,
        };
        let for_browsers = "a page is for a browser; name a file with -o page.html";
        let out = Output::of_export(self.output, Some(for_browsers))?;
        let names = self.names();
        let mut traces = Vec::new();
        for (path, name) in self.files.traces.iter().zip(&names) {
            traces.push(PackedTrace::read(path, name.clone(), &packing)?);
        }
        let gzips: Vec<&[u8]> = traces.iter().map(|trace| trace.gzip.as_slice()).collect();
        let mut config = PageConfig::new(PageMode::File, names.iter().cloned());
        config.source = !self.sources.is_empty();
        config.snapshots = self.files.snapshots.len();
        let sources = self.source_text(&traces);
        let heaps = self.snapshots()?;
        let sidecars = self.sidecars();
        let diagnoses = self.diagnoses();
        let contents = PageContents {
            traces: &gzips,
            sources: sources.as_deref(),
            snapshots: heaps.as_ref().map(|heaps| heaps.gzip.as_slice()),
            sidecars: sidecars.as_deref(),
            diagnoses: diagnoses.as_deref(),
        };
        let page = page(&config, &contents);
        let name = out.name().to_owned();
        out.write_export(|out| out.write_all(page.as_bytes()))?;
        let mut extents: Vec<String> = traces
            .iter()
            .zip(&names)
            .map(|(trace, name)| format!("{} of {name}", trace.extent()))
            .collect();
        extents.extend(heaps.as_ref().map(|heaps| heaps.extent.clone()));
        say(&format!("{name}: {}, with {}", bytes(page.len() as f64), extents.join(" and ")));
        let verdicts = traces.iter().map(|trace| trace.verdict);
        let verdicts = verdicts.chain(heaps.map(|heaps| heaps.verdict));
        Ok(verdicts.max().unwrap_or(Verdict::Sound))
    }

    /// What the programs say of themselves in the files beside their traces, compressed, if there are any.
    fn sidecars(&self) -> Option<Vec<u8>> {
        let read = |trace: &PathBuf| LiveSidecar::beside(trace)?.page();
        let documents: Vec<_> = self.files.traces.iter().map(read).collect();
        documents.iter().any(Option::is_some).then(|| {
            let mut text = Vec::new();
            json::put(&mut text, &documents);
            compressed(&text, Compression::default())
        })
    }

    /// What `heaptap doctor` says of each trace, compressed. A page of selected blocks has none: it would be about others.
    fn diagnoses(&self) -> Option<Vec<u8>> {
        if !self.filters.is_all() {
            return None;
        }
        let options = DiagnosisOptions { types: self.types.clone(), sources: self.sources.clone() };
        let made = |files: DiagnosedFiles| files.for_page(&options, false);
        let all: Vec<_> = DiagnosedFiles::of_page(&self.files).into_iter().map(made).collect();
        let mut text = Vec::new();
        json::put(&mut text, &all);
        Some(compressed(&text, Compression::default()))
    }

    /// The heap snapshots, compressed, if there are any. Reports those that cannot be shown.
    fn snapshots(&self) -> Result<Option<PackedSnapshots>, Failure> {
        let PageFiles { traces, snapshots } = &self.files;
        if snapshots.is_empty() {
            return Ok(None);
        }
        let page = page_snapshots::read(snapshots, traces, self.types);
        if traces.is_empty()
            && let Some(failure) = page_snapshots::failure(&page)
        {
            return Err(failure);
        }
        page.failed.iter().for_each(|failed| say(&failed.error));
        let verdict = if page.failed.is_empty() { Verdict::Sound } else { Verdict::LeftOut };
        let extent = count(page.snapshots.len() as u64, "heap snapshot", "heap snapshots");
        Ok(Some(PackedSnapshots {
            gzip: page_snapshots::packed(&page, Compression::default()),
            extent,
            verdict,
        }))
    }

    /// The source files of all traces, compressed, if they are wanted. Reports what is
    /// missing.
    fn source_text(&self, traces: &[PackedTrace]) -> Option<Vec<u8>> {
        if self.sources.is_empty() {
            return None;
        }
        let named = traces.iter().flat_map(|trace| trace.files.iter().cloned()).collect();
        let found = self.sources.read_all(&named);
        let files = count(found.lines.len() as u64, "source file", "source files");
        let mut message = format!("{files} in the page");
        if found.missing > 0 {
            message += &format!(
                "; {} of those that the trace names are not under --source-root",
                found.missing
            );
        }
        if found.too_large > 0 {
            message += &format!("; {} left out, since all together are too large", found.too_large);
        }
        say(&message);
        let mut text = Vec::new();
        json::put(&mut text, &found.lines);
        Some(compressed(&text, Compression::default()))
    }

    /// What the page calls the traces: if only some blocks are in it, the name says which.
    fn names(&self) -> Vec<String> {
        let names = page_names(&self.files.traces);
        if self.filters.is_all() {
            return names;
        }
        let words = self.filters.words();
        names.into_iter().map(|name| format!("{name} ({words})")).collect()
    }
}
