//! The tables of a trace's sidecar: the time line, single slices of the collector's work, and what
//! the probes say.

use std::io::{self, Write};

use heaptap_probes::history::{Merge, Series};
use heaptap_probes::{Heap, History, Pauses, Sample, SliceKind, System, TagSize};
use heaptap_trace::TraceInfo;
use parquet::data_type::ByteArray;

use super::file::FileWriter;
use super::trace_id;

/// The names of the tables of a sidecar.
pub const SIDECAR_TABLES: [&str; 3] = ["timeline", "slices", "probes"];

static TIMELINE: &str = "message schema {
    REQUIRED BYTE_ARRAY trace_id (STRING);
    REQUIRED INT64 time (TIMESTAMP(MICROS,true));
    OPTIONAL INT64 minor_words;
    OPTIONAL INT64 promoted_words;
    OPTIONAL INT64 major_words;
    OPTIONAL INT64 minor_collections;
    OPTIONAL INT64 major_collections;
    OPTIONAL INT64 compactions;
    OPTIONAL INT64 heap_words;
    OPTIONAL INT64 live_words;
    OPTIONAL INT64 rss;
    OPTIONAL INT64 cgroup_usage;
    OPTIONAL INT64 cgroup_limit;
    OPTIONAL INT64 threads;
    OPTIONAL INT64 domains;
    OPTIONAL INT64 minor_pauses;
    OPTIONAL INT64 minor_pause_ns;
    OPTIONAL INT64 major_pauses;
    OPTIONAL INT64 major_pause_ns;
    OPTIONAL INT64 finaliser_pauses;
    OPTIONAL INT64 finaliser_pause_ns;
}";

static SLICES: &str = "message schema {
    REQUIRED BYTE_ARRAY trace_id (STRING);
    REQUIRED INT64 time (TIMESTAMP(MICROS,true));
    REQUIRED BYTE_ARRAY kind (STRING);
    REQUIRED INT32 domain;
    REQUIRED INT64 duration_ns;
}";

static PROBES: &str = "message schema {
    REQUIRED BYTE_ARRAY trace_id (STRING);
    REQUIRED INT64 time (TIMESTAMP(MICROS,true));
    REQUIRED BYTE_ARRAY kind (STRING);
    OPTIONAL BYTE_ARRAY probe (STRING);
    OPTIONAL DOUBLE value;
    OPTIONAL DOUBLE least;
    OPTIONAL DOUBLE greatest;
    OPTIONAL INT64 runs;
    OPTIONAL INT64 marked;
    OPTIONAL INT64 words;
    OPTIONAL BYTE_ARRAY text (STRING);
}";

/// Writes the tables of a sidecar, in the order of [`SIDECAR_TABLES`], and returns the files.
pub fn write_sidecar<W: Write + Send>(
    [timeline, slices, probes]: [W; 3],
    info: &TraceInfo,
    history: &History,
) -> io::Result<[W; 3]> {
    let id = trace_id(info).as_str().into();
    Ok([
        write_timeline(timeline, &id, history)?,
        write_slices(slices, &id, history)?,
        write_probes(probes, &id, history)?,
    ])
}

/// From nanoseconds to what a column of times has.
fn micros(nanos: u64) -> i64 {
    (nanos / 1000) as i64
}

fn integer(value: Option<u64>) -> Option<i64> {
    value.map(|value| i64::try_from(value).unwrap_or(i64::MAX))
}

/// A series that is walked through in the order of time, with others.
struct Walk<'a, T> {
    rest: &'a [(u64, T)],
    now: Option<&'a T>,
}

impl<'a, T: Merge + Clone> Walk<'a, T> {
    fn new(series: &'a Series<T>) -> Self {
        Walk { rest: &series.points, now: None }
    }

    fn next_time(&self) -> Option<u64> {
        self.rest.first().map(|&(time, _)| time)
    }

    /// Takes all points up to this time.
    fn advance(&mut self, time: u64) {
        while let Some(((at, point), rest)) = self.rest.split_first()
            && *at <= time
        {
            (self.now, self.rest) = (Some(point), rest);
        }
    }
}

/// A row for each time at which anything changes, with all that is known then.
fn write_timeline<W: Write + Send>(out: W, id: &ByteArray, history: &History) -> io::Result<W> {
    let mut file = FileWriter::new(out, TIMELINE)?;
    let mut heap = Walk::new(&history.heap);
    let mut system = Walk::new(&history.system);
    let mut pauses = SliceKind::ALL.map(|kind| {
        let series = &history.pauses[usize::from(kind.number())];
        Walk::new(series)
    });
    loop {
        let of_pauses = pauses.iter().filter_map(Walk::next_time).min();
        let times = [heap.next_time(), system.next_time(), of_pauses];
        let Some(time) = times.into_iter().flatten().min() else { break };
        heap.advance(time);
        system.advance(time);
        pauses.iter_mut().for_each(|pauses| pauses.advance(time));
        let of_heap = |value: fn(&Heap) -> Option<u64>| integer(heap.now.and_then(value));
        let of_system = |value: fn(&System) -> Option<u64>| integer(system.now.and_then(value));
        let row = file.row().word(id).integer(micros(time));
        let row = row
            .optional_integer(of_heap(|heap| heap.minor_words))
            .optional_integer(of_heap(|heap| heap.promoted_words))
            .optional_integer(of_heap(|heap| heap.major_words))
            .optional_integer(of_heap(|heap| heap.minor_collections))
            .optional_integer(of_heap(|heap| heap.major_collections))
            .optional_integer(of_heap(|heap| heap.compactions))
            .optional_integer(of_heap(|heap| heap.heap_words))
            .optional_integer(of_heap(|heap| heap.live_words))
            .optional_integer(of_system(|system| system.rss))
            .optional_integer(of_system(|system| system.cgroup_usage))
            .optional_integer(of_system(|system| system.cgroup_limit))
            .optional_integer(of_system(|system| system.threads))
            .optional_integer(of_system(|system| system.domains));
        let row = pauses.iter().fold(row, |row, pauses| {
            let of = |value: fn(&Pauses) -> u64| integer(pauses.now.map(value));
            row.optional_integer(of(|pauses| pauses.count))
                .optional_integer(of(|pauses| pauses.total_ns))
        });
        row.end()?;
    }
    file.finish()
}

fn write_slices<W: Write + Send>(out: W, id: &ByteArray, history: &History) -> io::Result<W> {
    let mut file = FileWriter::new(out, SLICES)?;
    for slice in &history.slices {
        file.row()
            .word(id)
            .integer(micros(slice.time))
            .text(slice.kind.name())
            .integer(i64::from(slice.domain))
            .integer(integer(Some(slice.ns)).unwrap_or_default())
            .end()?;
    }
    file.finish()
}

/// What a row of the table of probes has besides its time.
#[derive(Default)]
struct ProbeRow<'a> {
    kind: &'static str,
    probe: Option<&'a str>,
    value: Option<f64>,
    extremes: Option<(f64, f64)>,
    runs: Option<u64>,
    marked: Option<u64>,
    words: Option<u64>,
    text: Option<&'a str>,
}

fn write_probes<W: Write + Send>(out: W, id: &ByteArray, history: &History) -> io::Result<W> {
    let mut file = FileWriter::new(out, PROBES)?;
    for probe in history.probes() {
        for (time, sample) in &probe.series.points {
            let row = ProbeRow {
                kind: probe.kind.name(),
                probe: Some(&probe.name),
                value: sample.number(),
                ..of_sample(sample)
            };
            write_probe_row(&mut file, id, *time, &row)?;
        }
    }
    for (kind, lines) in [("log", &history.log), ("pause", &history.stops)] {
        for (time, text) in lines {
            let row = ProbeRow { kind, text: Some(text), ..ProbeRow::default() };
            write_probe_row(&mut file, id, *time, &row)?;
        }
    }
    file.finish()
}

fn of_sample(sample: &Sample) -> ProbeRow<'_> {
    let row = ProbeRow::default();
    match sample {
        Sample::Count(_) => row,
        Sample::Timer { runs, .. } => ProbeRow { runs: Some(*runs), ..row },
        Sample::Value { least, greatest, .. } => {
            ProbeRow { extremes: Some((*least, *greatest)), ..row }
        }
        Sample::Text(text) => ProbeRow { text: Some(text), ..row },
        Sample::Tag { marked, size, .. } => {
            let words = match *size {
                TagSize::Unknown => None,
                TagSize::Exactly(words) | TagSize::AtLeast(words) => Some(words),
            };
            ProbeRow { marked: Some(*marked), words, ..row }
        }
    }
}

fn write_probe_row<W: Write + Send>(
    file: &mut FileWriter<W>,
    id: &ByteArray,
    time: u64,
    row: &ProbeRow<'_>,
) -> io::Result<()> {
    file.row()
        .word(id)
        .integer(micros(time))
        .text(row.kind)
        .optional_text(row.probe)
        .optional_double(row.value)
        .optional_double(row.extremes.map(|(least, _)| least))
        .optional_double(row.extremes.map(|(_, greatest)| greatest))
        .optional_integer(integer(row.runs))
        .optional_integer(integer(row.marked))
        .optional_integer(integer(row.words))
        .optional_text(row.text)
        .end()
}
