//! Traces as the web page takes them: read once, with the table of blocks, and
//! compressed. `export --to html` writes them into the page, `serve` sends them to it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
pub(crate) use flate2::Compression;
use heaptap_query::FileFacts;
use heaptap_report::figures::units::count;
use heaptap_report::{Archive, ArchiveParts, Depth, MOST_BLOCKS, Options, OverTime, Selection};
use heaptap_trace::{Limits, LocationTable, Mode, Stream};

use crate::analysis::aggregate::AggregatedTrace;
pub(crate) use crate::analysis::gzip::compressed;
use crate::analysis::so_far::{FiguresSoFar, Onlooker};
use crate::exit_status::{Failure, Verdict};
use crate::io::input::Input;
use crate::io::trace_files::{InputFile, expand};

/// A trace for the page.
pub(crate) struct PackedTrace {
    /// The compressed archive.
    pub(crate) gzip: Vec<u8>,
    /// How many blocks have a row in the table of blocks.
    pub(crate) blocks: usize,
    /// One in 2^thinning blocks has a row.
    pub(crate) thinning: u32,
    /// The names of the source files, as the page shows them.
    pub(crate) files: BTreeSet<String>,
    pub(crate) verdict: Verdict,
}

/// The option that bounds a page.
#[derive(Args)]
pub(crate) struct PageSize {
    /// At most this many blocks in the page, to make it smaller; of a trace with more, it
    /// has one in two, four and so on
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = MOST_BLOCKS as u64,
        hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(1..=MOST_BLOCKS as u64)
    )]
    blocks: u64,
}

impl PageSize {
    /// The most rows of the table of blocks.
    pub(crate) fn most_blocks(&self) -> usize {
        // Bounded by its parser.
        usize::try_from(self.blocks).unwrap_or(MOST_BLOCKS)
    }

    /// Whether it was given.
    pub(crate) fn is_restricted(&self) -> bool {
        self.most_blocks() < MOST_BLOCKS
    }
}

/// What of a trace goes into a page.
#[derive(Clone)]
pub(crate) struct Packing {
    pub(crate) selection: Selection,
    /// The most rows of the table of blocks.
    pub(crate) most_blocks: usize,
    pub(crate) effort: Compression,
    /// The time at which to record what is alive.
    pub(crate) at: Option<u64>,
}

impl Packing {
    fn options(&self) -> Options {
        Options {
            selection: self.selection.clone(),
            depth: Depth::Whole,
            over_time: OverTime::LiveSize,
            most_blocks: self.most_blocks,
            at: self.at,
            ..Options::default()
        }
    }
}

impl PackedTrace {
    /// Reads a trace and reports on standard error what is wrong with it. The page
    /// shows it under `name`.
    pub(crate) fn read(
        path: &Path,
        name: String,
        packing: &Packing,
    ) -> Result<PackedTrace, Failure> {
        PackedTrace::read_with_onlooker(path, name, packing, &())
    }

    /// The same while somebody looks at the figures.
    pub(crate) fn read_with_onlooker(
        path: &Path,
        name: String,
        packing: &Packing,
        onlooker: &impl Onlooker,
    ) -> Result<PackedTrace, Failure> {
        let trace = aggregate(path, packing, onlooker)?;
        Ok(PackedTrace::new(trace, name, packing, file_facts(path)))
    }

    /// The same of a trace that is open.
    pub(crate) fn of_input(
        input: &Input,
        name: String,
        packing: &Packing,
    ) -> Result<PackedTrace, Failure> {
        let trace = AggregatedTrace::of_input(input, packing.options(), &())?;
        Ok(PackedTrace::new(trace, name, packing, None))
    }

    /// The same of the parts of a series.
    pub(crate) fn of_parts(
        parts: &[PathBuf],
        name: String,
        packing: &Packing,
    ) -> Result<PackedTrace, Failure> {
        let trace = AggregatedTrace::read(parts, packing.options())?;
        Ok(PackedTrace::new(trace, name, packing, None))
    }

    fn new(
        trace: AggregatedTrace,
        name: String,
        packing: &Packing,
        file: Option<FileFacts>,
    ) -> PackedTrace {
        let verdict = trace.verdict();
        let mut archive = archive(trace, name, !packing.selection.is_all());
        archive.answers.extend(file.map(|facts| facts.stored()));
        PackedTrace {
            gzip: compressed(&archive.to_bytes(), packing.effort),
            blocks: archive.blocks.len(),
            thinning: archive.blocks.thinning(),
            files: source_files(&archive.locations),
            verdict,
        }
    }

    /// How many blocks there are, and whether that is all of them.
    pub(crate) fn extent(&self) -> String {
        let blocks = count(self.blocks as u64, "block", "blocks");
        match self.thinning {
            0 => blocks,
            thinning => format!("{blocks}, one in {}", 1_u64 << thinning.min(63)),
        }
    }
}

/// How large the files of a trace are, and in which versions of the format. `None` if they cannot be read again.
fn file_facts(path: &Path) -> Option<FileFacts> {
    let mut facts = FileFacts::default();
    for InputFile { path, .. } in expand(&[path.to_owned()]).ok()? {
        let metadata = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
        // The first packet is enough, and is not part of the reading whose progress is shown.
        let stream = std::fs::File::open(&path).ok().map(Stream::new)?;
        let reader = heaptap_trace::open(stream, Mode::Lenient, Limits::default()).ok();
        facts.add(metadata.len(), reader.map(|reader| reader.format().version()));
    }
    Some(facts)
}

/// Reads a trace that was read before, and reports nothing.
pub(crate) fn read_again(path: &Path, name: String, packing: &Packing) -> Result<Archive, Failure> {
    let trace = aggregate(path, packing, &())?;
    Ok(archive(trace, name, !packing.selection.is_all()))
}

/// Reads a trace with its table of blocks.
fn aggregate(
    path: &Path,
    packing: &Packing,
    onlooker: &impl Onlooker,
) -> Result<AggregatedTrace, Failure> {
    AggregatedTrace::read_with_onlooker(&[path.to_owned()], packing.options(), onlooker)
}

/// What is missing from the figures so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct TraceNotes<'a> {
    /// See [`Archive::cut_short`].
    pub(crate) cut_short: Option<&'a str>,
    /// See [`Archive::incomplete`].
    pub(crate) incomplete: Option<&'a str>,
    /// What was found wrong with the trace.
    pub(crate) notices: &'a [String],
}

/// The compressed archive of the figures so far.
pub(crate) fn packed_so_far(
    figures: &FiguresSoFar<'_>,
    name: &str,
    notes: TraceNotes<'_>,
    effort: Compression,
) -> Vec<u8> {
    let &FiguresSoFar { info, aggregate, blocks, locations } = figures;
    let TraceNotes { cut_short, incomplete, notices } = notes;
    let parts = ArchiveParts {
        name,
        info,
        cut_short,
        incomplete,
        notices,
        aggregate,
        blocks,
        locations,
        answers: &[],
    };
    compressed(&parts.to_bytes(), effort)
}

/// `selected`: only selected blocks were read.
fn archive(trace: AggregatedTrace, name: String, selected: bool) -> Archive {
    let mut archive = Archive {
        name,
        info: trace.info().clone(),
        cut_short: trace.cut_short().map(str::to_owned),
        incomplete: trace.incomplete().map(str::to_owned),
        notices: trace.notices(),
        locations: trace.locations().clone(),
        aggregate: trace.aggregate,
        blocks: trace.blocks,
        answers: Vec::new(),
    };
    if archive.blocks.thinning() > 0 {
        // A leak shows in all blocks sooner than in some of them.
        archive.answers.extend(heaptap_query::stored_leaks(&archive, selected).unwrap_or_default());
    }
    archive
}

/// The names of the source files.
pub(crate) fn source_files(locations: &LocationTable) -> BTreeSet<String> {
    let codes = locations.codes();
    let all = codes.flat_map(|code| locations.get(code).unwrap_or(&[]));
    let ids: BTreeSet<_> = all.map(|location| location.file).collect();
    ids.into_iter().map(|id| String::from_utf8_lossy(locations.name(id)).into_owned()).collect()
}
