//! The files of series: which traces are parts of one, and in which order.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use heaptap_trace::{SeriesHead, SeriesReader, series_name};

/// The name of the sidecar that makes a trace a part of a series.
pub(crate) fn series_sidecar(trace: &Path) -> PathBuf {
    PathBuf::from(series_name(trace.as_os_str()))
}

/// Whether a file has a sidecar beside it that makes it a part of a series.
pub(crate) fn is_part(trace: &Path) -> bool {
    trace.as_os_str() != "-" && series_sidecar(trace).is_file()
}

/// A part of a series in a directory.
pub(crate) struct PartOnDisk {
    pub(crate) trace: PathBuf,
    pub(crate) head: SeriesHead,
}

impl PartOnDisk {
    /// What the sidecar of a trace says; `None` if it has none.
    pub(crate) fn of(trace: &Path) -> Option<PartOnDisk> {
        if !is_part(trace) {
            return None;
        }
        let sidecar = File::open(series_sidecar(trace)).ok()?;
        let head = *SeriesReader::new(BufReader::new(sidecar)).ok()?.head()?;
        Some(PartOnDisk { trace: trace.to_owned(), head })
    }

    /// All parts in a directory that have begun.
    pub(crate) fn all_in(directory: &Path) -> Vec<PartOnDisk> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let of_sidecar = |path: PathBuf| {
            let name = path.file_name()?.to_str()?.strip_suffix(".series")?;
            let trace = path.with_file_name(name);
            trace.is_file().then(|| PartOnDisk::of(&trace))?
        };
        entries.filter_map(|entry| of_sidecar(entry.path())).collect()
    }
}

/// The first part of the last row of parts that follow each other, in the series in this directory
/// that began last; `None` if there is no series.
pub(crate) fn first_part_in(directory: &Path) -> Option<PathBuf> {
    let mut parts = PartOnDisk::all_in(directory);
    let latest = parts.iter().max_by_key(|part| part.head.series_start)?.head.series;
    parts.retain(|part| part.head.series == latest);
    first_of_row(parts)
}

/// The same of the series of this part.
pub(crate) fn first_part_of_series(trace: &Path) -> Option<PathBuf> {
    let PartOnDisk { head, .. } = PartOnDisk::of(trace)?;
    let mut parts = PartOnDisk::all_in(directory_of(trace));
    parts.retain(|part| part.head.series == head.series);
    first_of_row(parts)
}

fn first_of_row(mut parts: Vec<PartOnDisk>) -> Option<PathBuf> {
    parts.sort_by_key(|part| part.head.part);
    let follows = |pair: &[PartOnDisk]| pair[0].head.part + 1 == pair[1].head.part;
    let first = parts.windows(2).rposition(|pair| !follows(pair)).map_or(0, |at| at + 1);
    parts.into_iter().nth(first).map(|part| part.trace)
}

/// Where a trace is.
pub(crate) fn directory_of(trace: &Path) -> &Path {
    match trace.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}
