//! What the web page shows of a sidecar: lines over time for the collector, the process and the probes,
//! the tree of probes, and the log. Bounded, whatever the sidecar.

use heaptap_probes::{History, Probe, ProbeKind, Sample};
use serde::Serialize;

use crate::figures::probes::figures::{ProbeClock, ProbeFigures, ProbeLine};
use crate::figures::probes::intervals::{Interval, LiveBuckets, TimeLine, paused_shares};
use crate::figures::probes::major::old_before;
use crate::figures::probes::tree::{ProbeTreeLine, probe_tree};
use crate::figures::probes::words::described;

/// The most points of a line, and the shortest time between two, in microseconds: the program is asked each
/// tenth of a second, and rates in less than a few of these would be combs.
const POINTS: u64 = 200;
const SHORTEST: u64 = 200_000;
/// The most probes with a line, lines of the tree, and lines of the log.
const MOST_PROBES: usize = 500;
const MOST_TREE_LINES: usize = 5_000;
const MOST_LOG_LINES: usize = 1_000;
/// The document. The field names are those of the JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Sidecar"))]
pub struct PageSidecar {
    /// When the trace began to which it belongs, in microseconds since the epoch.
    start_us: Option<u64>,
    /// What is wrong with the file.
    problem: Option<String>,
    /// Microseconds between two points.
    width_us: u64,
    lanes: Vec<Lane>,
    limit_bytes: Option<u64>,
    /// What was old by then has lived through a whole major collection; missing if they are not counted.
    old_before_us: Option<u64>,
    tree: Vec<TreeLine>,
    log: Vec<PageLine>,
    /// Lines of the log that are not in the document.
    more_log: usize,
}

/// A line over time.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
struct Lane {
    name: &'static str,
    unit: Unit,
    values: Vec<Option<f64>>,
}

/// What the numbers of a line are.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
enum Unit {
    Bytes,
    /// A part of the time.
    Share,
    /// Nanoseconds.
    Ns,
    /// A number for each second.
    Rate,
    Number,
}

#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
struct TreeLine {
    level: usize,
    label: String,
    /// `None` for a line above others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    probe: Option<TreeProbe>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
struct TreeProbe {
    name: String,
    kind: &'static str,
    state: String,
    unit: Unit,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<Vec<Option<f64>>>"))]
    values: Vec<Option<f64>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "LogLine"))]
struct PageLine {
    time_us: u64,
    text: String,
    /// Whether the program asked the view to stop there.
    stop: bool,
}

impl PageSidecar {
    /// What a sidecar says by now; `None` if it says nothing. `problem`: what is wrong with it.
    pub fn new(history: &History, problem: Option<String>) -> Option<PageSidecar> {
        let (_, last) = history.span?;
        let clock = ProbeClock::of(history);
        let duration = clock.micros(last);
        let width_us = duration.div_ceil(POINTS).max(SHORTEST);
        let points = duration.div_ceil(width_us).max(1) as usize;
        let intervals = TimeLine::new(history, LiveBuckets { bucket_us: 1, most_bytes: &[] });
        let rows = intervals.intervals(width_us, points);
        let figures = ProbeFigures::of("", history, None, &|_| true);
        let line = |stop: bool| {
            move |line: &ProbeLine| PageLine {
                time_us: line.time_us,
                text: line.text.clone(),
                stop,
            }
        };
        let mut log: Vec<PageLine> = figures.log.iter().map(line(false)).collect();
        log.extend(figures.stops.iter().map(line(true)));
        log.sort_by_key(|line| line.time_us);
        let more_log = log.len().saturating_sub(MOST_LOG_LINES);
        Some(PageSidecar {
            start_us: history.start.as_ref().map(|start| start.trace_start),
            problem,
            width_us,
            lanes: lanes(&rows),
            limit_bytes: rows.iter().rev().find_map(|row| row.cgroup_limit_bytes),
            old_before_us: old_before(history, None),
            tree: tree(&figures, history, (width_us, points)),
            log: log.split_off(more_log),
            more_log,
        })
    }
}

/// The lines of the collector and the process of which something is known.
fn lanes(rows: &[Interval]) -> Vec<Lane> {
    let of_rows = |figure: fn(&Interval) -> Option<f64>| rows.iter().map(figure).collect();
    let longest = |row: &Interval| row.is_known.then(|| row.paused().longest_ns as f64);
    let all: [(&'static str, Unit, Vec<Option<f64>>); 8] = [
        ("heap", Unit::Bytes, of_rows(|row| whole(row.heap_bytes))),
        ("in use", Unit::Bytes, of_rows(|row| whole(row.heap_used_bytes))),
        ("RSS", Unit::Bytes, of_rows(|row| whole(row.rss_bytes))),
        ("cgroup", Unit::Bytes, of_rows(|row| whole(row.cgroup_usage_bytes))),
        ("paused", Unit::Share, paused_shares(rows)),
        ("longest", Unit::Ns, of_rows(longest)),
        ("minor GC", Unit::Rate, of_rows(|row| each_second(row, row.minor_collections))),
        ("major GC", Unit::Rate, of_rows(|row| each_second(row, row.major_collections))),
    ];
    let lane = |(name, unit, values): (&'static str, Unit, Vec<Option<f64>>)| {
        let values: Vec<Option<f64>> = values.into_iter().map(|it| it.map(rounded)).collect();
        values.iter().flatten().any(|&value| value > 0.0).then_some(Lane { name, unit, values })
    };
    all.into_iter().filter_map(lane).collect()
}

fn whole(number: Option<u64>) -> Option<f64> {
    number.map(|number| number as f64)
}

fn each_second(row: &Interval, number: Option<u64>) -> Option<f64> {
    let width_us = row.to_us.saturating_sub(row.from_us).max(1);
    Some(whole(number)? / width_us as f64 * 1e6)
}

/// To six digits: more only make the page larger.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

fn tree(figures: &ProbeFigures, history: &History, steps: (u64, usize)) -> Vec<TreeLine> {
    let past: Vec<&Probe> = history.probes().collect();
    let lines = probe_tree(figures.probes.iter().map(|probe| probe.name.as_str()));
    let line = |line: ProbeTreeLine| {
        let probe = line.probe.and_then(|at| {
            let (row, probe) = (figures.probes.get(at)?, past.get(at)?);
            let values = if at < MOST_PROBES { values(probe, history, steps) } else { Vec::new() };
            let unit = match probe.kind {
                ProbeKind::Count => Unit::Rate,
                ProbeKind::Timer => Unit::Share,
                ProbeKind::Value | ProbeKind::Text | ProbeKind::Tag => Unit::Number,
            };
            let (name, kind) = (row.name.clone(), row.kind);
            Some(TreeProbe { name, kind, state: described(row), unit, values })
        });
        TreeLine { level: line.level, label: line.label, probe }
    };
    lines.into_iter().take(MOST_TREE_LINES).map(line).collect()
}

/// A probe over time: of a total its growth for each second. Empty if it has no numbers.
fn values(probe: &Probe, history: &History, (width_us, points): (u64, usize)) -> Vec<Option<f64>> {
    let clock = ProbeClock::of(history);
    let seconds = width_us as f64 / 1e6;
    let number = |time_us: u64| {
        let time = clock.time(time_us);
        let total = || probe.series.total_at(time, &history.spacing, Sample::total);
        match probe.kind {
            ProbeKind::Count => total().map(|total| total as f64),
            ProbeKind::Timer => total().map(|total_ns| total_ns as f64 / 1e9),
            _ => probe.series.at(time).and_then(Sample::number),
        }
    };
    let value = |point: usize| {
        let (from, to) = (point as u64 * width_us, (point as u64 + 1) * width_us);
        let now = number(to)?;
        let value = match probe.kind.is_total() {
            true => (now - number(from).unwrap_or(0.0)) / seconds,
            false => now,
        };
        value.is_finite().then(|| rounded(value))
    };
    let values: Vec<Option<f64>> = (0..points).map(value).collect();
    if values.iter().all(Option::is_none) { Vec::new() } else { values }
}
