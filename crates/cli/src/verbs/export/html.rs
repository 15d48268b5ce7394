//! `--to html`: the web page with the traces in it.

use std::io::{self, IsTerminal as _, Write, stdout};
use std::path::{Path, PathBuf};

use heaptap_figures::units::{bytes, count};

use crate::analysis::archive::{Compression, PackedTrace, Packing, compressed, page_names};
use crate::analysis::filters::Filters;
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::notices::say;
use crate::io::output::{Output, raw_stdout};
use crate::io::source_files::SourceRoots;
use crate::text::json;
use crate::text::page::{PageConfig, PageContents, PageMode, page};

/// What goes into the page, and where it goes.
pub(super) struct HtmlExport<'a> {
    /// Each is a trace of its own.
    pub(super) files: &'a [PathBuf],
    pub(super) filters: &'a Filters,
    pub(super) most_blocks: usize,
    /// Where the text of source files comes from; none if it is not wanted.
    pub(super) sources: SourceRoots,
    pub(super) output: Option<&'a Path>,
}

impl HtmlExport<'_> {
    pub(super) fn run(&self) -> VerbResult {
        let packing = Packing {
            selection: self.filters.selection()?,
            most_blocks: self.most_blocks,
            effort: Compression::default(),
            at: None,
        };
        if self.output.is_none() && stdout().is_terminal() {
            return Err(Failure::Trouble(
                "standard output is a terminal, and a page is for a browser; \
                 name a file with -o page.html"
                    .to_owned(),
            ));
        }
        let out = self.output.map(Output::create).transpose()?;
        let names = self.names();
        let mut traces = Vec::new();
        for (path, name) in self.files.iter().zip(&names) {
            traces.push(PackedTrace::read(path, name.clone(), &packing)?);
        }
        let gzips: Vec<&[u8]> = traces.iter().map(|trace| trace.gzip.as_slice()).collect();
        let mut config = PageConfig::new(PageMode::File, names.iter().cloned());
        config.source = !self.sources.is_empty();
        let sources = self.source_text(&traces);
        let contents = PageContents { traces: &gzips, sources: sources.as_deref() };
        let page = page(&config, |bytes| compressed(bytes, Compression::default()), &contents);
        let name = write(out, page.as_bytes())?;
        let extents: Vec<String> = traces
            .iter()
            .zip(&names)
            .map(|(trace, name)| format!("{} of {name}", trace.extent()))
            .collect();
        say(&format!("{name}: {}, with {}", bytes(page.len() as f64), extents.join(" and ")));
        Ok(traces.iter().map(|trace| trace.verdict).max().unwrap_or(Verdict::Sound))
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
        let names = page_names(self.files);
        if self.filters.is_all() {
            return names;
        }
        let words = self.filters.words();
        names.into_iter().map(|name| format!("{name} ({words})")).collect()
    }
}

/// Writes the page, and returns the name of where it went.
fn write(out: Option<Output>, page: &[u8]) -> Result<String, Failure> {
    let put = |out: &mut dyn Write| -> io::Result<()> { out.write_all(page) };
    match out {
        Some(mut out) => {
            let name = out.name().to_owned();
            put(&mut out).map_err(|error| Failure::writing(&name, &error))?;
            out.complete()?;
            Ok(name)
        }
        None => {
            let name = "standard output".to_owned();
            let written = raw_stdout().and_then(|mut out| put(&mut out));
            written.map_err(|error| Failure::writing(&name, &error))?;
            Ok(name)
        }
    }
}
