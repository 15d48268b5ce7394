//! `--to html`: the web page with the traces in it.

use std::io::{self, IsTerminal as _, Write, stdout};
use std::path::{Path, PathBuf};

use heaptap_figures::units::bytes;

use crate::analysis::archive::{Compression, PackedTrace, Packing, compressed, page_names};
use crate::analysis::filters::Filters;
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::notices::say;
use crate::io::output::{Output, raw_stdout};
use crate::text::page::{PageConfig, PageMode, page};

/// What goes into the page, and where it goes.
pub(super) struct HtmlExport<'a> {
    /// Each is a trace of its own.
    pub(super) files: &'a [PathBuf],
    pub(super) filters: &'a Filters,
    pub(super) most_blocks: usize,
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
        let config = PageConfig::new(PageMode::File, names.iter().cloned());
        let page = page(&config, |bytes| compressed(bytes, Compression::default()), &gzips);
        let name = write(out, page.as_bytes())?;
        let extents: Vec<String> = traces
            .iter()
            .zip(&names)
            .map(|(trace, name)| format!("{} of {name}", trace.extent()))
            .collect();
        say(&format!("{name}: {}, with {}", bytes(page.len() as f64), extents.join(" and ")));
        Ok(traces.iter().map(|trace| trace.verdict).max().unwrap_or(Verdict::Sound))
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
