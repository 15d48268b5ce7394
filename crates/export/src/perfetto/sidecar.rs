//! What the sidecar of the trace has: the collector's work as slices, its counters and those of the
//! process, the program's probes, log lines and stops.

use std::collections::BTreeMap;
use std::io;

use heaptap_probes::history::Series;
use heaptap_probes::{Heap, History, Probe, ProbeKind, Sample, Slice, System};

use super::packets::{Packets, Track, Unit};

pub(super) fn write(
    history: &History,
    word_bytes: f64,
    packets: &mut Packets<'_>,
    process: Track,
) -> io::Result<()> {
    write_slices(&history.slices, packets, process)?;
    let collector = packets.track(process, "collector")?;
    write_series(&history.heap, packets, collector, &heap_counters(word_bytes))?;
    let system = packets.track(process, "process")?;
    write_series(&history.system, packets, system, &SYSTEM)?;
    let probes = packets.track(process, "probes")?;
    for probe in history.probes() {
        write_probe(probe, packets, probes)?;
    }
    write_instants(history, packets, process)
}

/// Slices of each domain, on a track of its own.
fn write_slices(slices: &[Slice], packets: &mut Packets<'_>, process: Track) -> io::Result<()> {
    let mut domains: BTreeMap<u16, Vec<(u64, Option<&str>)>> = BTreeMap::new();
    for slice in slices {
        let events = domains.entry(slice.domain).or_default();
        events.push((slice.time, Some(slice.kind.name())));
        // One that ends when it begins would not be seen to begin first.
        events.push((slice.time.saturating_add(slice.ns.max(1)), None));
    }
    for (domain, mut events) in domains {
        let track = packets.track(process, &format!("GC of domain {domain}"))?;
        // Of those at the same time, ends come first.
        events.sort_by_key(|&(time, begin)| (time, begin.is_some()));
        for (time, begin) in events {
            packets.slice(track, time, begin)?;
        }
    }
    Ok(())
}

/// A counter of a series: its name, its unit, and its value at a point.
struct Counter<T> {
    name: &'static str,
    unit: Unit,
    factor: f64,
    value: fn(&T) -> Option<u64>,
}

impl<T> Counter<T> {
    const fn new(name: &'static str, unit: Unit, value: fn(&T) -> Option<u64>) -> Self {
        Counter { name, unit, factor: 1.0, value }
    }

    const fn times(self, factor: f64) -> Self {
        Counter { factor, ..self }
    }
}

fn heap_counters(word_bytes: f64) -> [Counter<Heap>; 8] {
    let bytes = |name, value| Counter::new(name, Unit::Bytes, value).times(word_bytes);
    let count = |name, value| Counter::new(name, Unit::Count, value);
    [
        bytes("major heap", |heap: &Heap| heap.heap_words),
        bytes("live in major heap", |heap| heap.live_words),
        bytes("allocated in minor heap", |heap| heap.minor_words),
        bytes("promoted", |heap| heap.promoted_words),
        bytes("allocated in major heap", |heap| heap.major_words),
        count("minor collections", |heap: &Heap| heap.minor_collections),
        count("major collections", |heap| heap.major_collections),
        count("compactions", |heap| heap.compactions),
    ]
}

static SYSTEM: [Counter<System>; 5] = [
    Counter::new("RSS", Unit::Bytes, |system| system.rss),
    Counter::new("cgroup usage", Unit::Bytes, |system| system.cgroup_usage),
    Counter::new("cgroup limit", Unit::Bytes, |system| system.cgroup_limit),
    Counter::new("threads", Unit::Count, |system| system.threads),
    Counter::new("domains", Unit::Count, |system| system.domains),
];

/// The counters of a series that have a value anywhere.
fn write_series<T>(
    series: &Series<T>,
    packets: &mut Packets<'_>,
    parent: Track,
    counters: &[Counter<T>],
) -> io::Result<()> {
    for Counter { name, unit, factor, value } in counters {
        let points = series.points.iter();
        let mut values = points.filter_map(|(time, point)| Some((*time, value(point)?))).peekable();
        if values.peek().is_none() {
            continue;
        }
        let track = packets.counter(parent, name, *unit)?;
        let mut last = None;
        for (time, value) in values {
            if last != Some(value) {
                packets.count(track, time, value as f64 * factor)?;
            }
            last = Some(value);
        }
    }
    Ok(())
}

/// A counter with the path of the probe as its name; texts are instants.
fn write_probe(probe: &Probe, packets: &mut Packets<'_>, parent: Track) -> io::Result<()> {
    if probe.series.points.is_empty() {
        return Ok(());
    }
    let unit = match probe.kind {
        ProbeKind::Count | ProbeKind::Tag => Unit::Count,
        ProbeKind::Timer => Unit::Nanoseconds,
        ProbeKind::Value => Unit::Number,
        ProbeKind::Text => {
            let track = packets.track(parent, &probe.name)?;
            for (time, sample) in &probe.series.points {
                if let Sample::Text(text) = sample {
                    packets.instant(track, *time, text)?;
                }
            }
            return Ok(());
        }
    };
    let track = packets.counter(parent, &probe.name, unit)?;
    for (time, sample) in &probe.series.points {
        let value = match sample {
            Sample::Timer { total_ns, .. } => Some(*total_ns as f64),
            other => other.number(),
        };
        // Perfetto has no place for values that are not numbers.
        if let Some(value) = value.filter(|value| value.is_finite()) {
            packets.count(track, *time, value)?;
        }
    }
    Ok(())
}

/// Log lines, stops, and moments at which memory ran short.
fn write_instants(history: &History, packets: &mut Packets<'_>, process: Track) -> io::Result<()> {
    let pressure = history.pressure.iter();
    let pressure =
        pressure.map(|(time, headroom)| (*time, format!("{headroom} bytes left"))).collect();
    let tracks =
        [("log", &history.log), ("pause_here", &history.stops), ("memory pressure", &pressure)];
    for (name, instants) in tracks.into_iter().filter(|(_, instants)| !instants.is_empty()) {
        let track = packets.track(process, name)?;
        for (time, text) in instants {
            packets.instant(track, *time, text)?;
        }
    }
    Ok(())
}
