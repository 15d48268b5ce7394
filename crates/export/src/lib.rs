//! Exports the call paths of a trace, and heap snapshots, in the formats of other tools.
//!
//! One file for each format: `folded`, `pprof`, `firefox`, `dhat`, `speedscope`, `perfetto`,
//! and with the feature of this name `otlp`.
//! Each defines a [`Format`] and writes from an [`ExportInput`]. A further format is
//! one more file, declared here, and one more entry in [`FORMATS`]: the values of
//! `heaptap export --to`, their help, the manual page and the completions follow
//! from that list. [`parquet`] is apart: it takes events, not call paths, and writes several
//! files. `go_heap` has the profiles that programs in Go serve, `snapshot` the formats of heap snapshots, in [`SNAPSHOT_FORMATS`].
//!
//! The names in a trace are not to be trusted: `heaptap_report::escape` and [`json`] write them
//! without control and invisible characters. The program `heaptap` uses both for
//! its own output.

#![forbid(unsafe_code)]

mod dhat;
mod firefox;
mod folded;
mod go_heap;
pub mod json;
mod messages;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "parquet")]
pub mod parquet;
mod perfetto;
mod pprof;
mod pprof_proto;
mod snapshot;
mod speedscope;

use std::io::{self, Write};

use heaptap_probes::History;
use heaptap_report::rows::{By, Site};
use heaptap_report::{
    Aggregate, Counts, Depth, Metric, Omitted, Options, OverTime, StackShape, Stacks,
};
use heaptap_trace::{LocationTable, TraceInfo};

pub use go_heap::{HeapProfile, HeapValues, write_heap_profile};
pub use snapshot::{SNAPSHOT_FORMATS, SnapshotFormat, SnapshotInput};

/// The formats, in the order in which the help lists them.
pub static FORMATS: [&Format; 6 + cfg!(feature = "otlp") as usize] = [
    &folded::FORMAT,
    &pprof::FORMAT,
    &firefox::FORMAT,
    &dhat::FORMAT,
    &speedscope::FORMAT,
    &perfetto::FORMAT,
    #[cfg(feature = "otlp")]
    &otlp::FORMAT,
];

/// A format of another tool.
pub struct Format {
    /// Its name on the command line. Unique among [`FORMATS`].
    pub name: &'static str,
    /// The tools that read it: one line of help.
    pub help: &'static str,
    /// Whether the output is not text, so that it must not go to a terminal.
    pub is_binary: bool,
    /// Whether it has a place for what the sidecar of the trace says.
    pub takes_sidecar: bool,
    /// What its frames are. Formats that have lines ask for locations.
    by: By,
    write: fn(&ExportInput<'_>, &Stacks<'_>, &mut dyn Write) -> io::Result<()>,
}

impl Format {
    /// The format of this name.
    pub fn named(name: &str) -> Option<&'static Format> {
        FORMATS.into_iter().find(|format| format.name == name)
    }

    /// Writes the export in many small pieces: `out` should be buffered. Returns what
    /// was left out of stacks to shorten them.
    pub fn write(&self, input: &ExportInput<'_>, out: &mut dyn Write) -> io::Result<Omitted> {
        let stacks = input.aggregate.stacks(input.locations, self.by, input.shape);
        (self.write)(input, &stacks, out)?;
        Ok(stacks.omitted())
    }
}

/// The options with which an aggregate must be gathered to be exported: whole
/// stacks, and what each of them allocates and frees over time.
pub fn options() -> Options {
    Options { depth: Depth::Whole, over_time: OverTime::Flows, ..Options::default() }
}

/// The input of every format.
pub struct ExportInput<'a> {
    /// Gathered with [`options`].
    pub aggregate: &'a Aggregate,
    /// The description of the trace.
    pub info: &'a TraceInfo,
    /// The locations of the trace, after its last event.
    pub locations: &'a LocationTable,
    /// The metric of formats that have one value for each stack.
    pub metric: Metric,
    /// How stacks are shortened.
    pub shape: StackShape,
    /// The sidecars of the traces, if the format takes them.
    pub sidecars: Option<&'a dyn Sidecars>,
}

/// The sidecars of the traces that are exported, one after the other: those of many traces would
/// not be in memory together.
pub trait Sidecars {
    /// Reads each, and passes it on.
    fn each(&self, take: &mut TakeSidecar<'_>) -> io::Result<()>;
}

/// What takes a sidecar.
pub type TakeSidecar<'a> = dyn FnMut(&TraceSidecar<'_>) -> io::Result<()> + 'a;

/// A sidecar, and whose it is.
pub struct TraceSidecar<'a> {
    /// The name of its trace, if that is one of several.
    pub trace: Option<&'a str>,
    /// The description of its trace.
    pub info: &'a TraceInfo,
    /// What it says.
    pub history: &'a History,
}

impl ExportInput<'_> {
    /// The bytes of a metric.
    fn bytes(&self, metric: Metric, counts: &Counts) -> f64 {
        metric.samples(counts) as f64 * self.aggregate.scale().unit_bytes()
    }

    /// The bytes that a count stands for, whole.
    fn sample_bytes(&self, count: u64) -> f64 {
        (count as f64 * self.aggregate.scale().unit_bytes()).round()
    }

    /// A time since the start of the trace, as nanoseconds since the epoch.
    fn nanos(&self, since_start: u64) -> u64 {
        self.info.start_time.saturating_add(since_start).saturating_mul(1000)
    }

    /// The name of the traced program.
    fn program(&self) -> String {
        program(self.info)
    }
}

fn program(info: &TraceInfo) -> String {
    String::from_utf8_lossy(&info.executable).into_owned()
}

/// Function, file and line in one name, for formats whose frames are names.
fn frame_name(site: &Site) -> String {
    match site.line {
        0 => site.name.clone(),
        line => format!("{} ({}:{line})", site.name, site.file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for format in FORMATS {
            assert!(std::ptr::eq(Format::named(format.name).unwrap(), format), "{}", format.name);
        }
        assert!(Format::named("xml").is_none());
    }
}
