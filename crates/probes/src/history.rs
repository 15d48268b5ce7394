//! All that a sidecar has said, as series over time. Grows with every event, so it can be looked
//! at while the program runs. Memory is bounded: beyond [`MAX_POINTS`] every second point of
//! each series is merged into the next.

use crate::event::{Event, Heap, Pauses, ProbeKind, SliceKind, Start, System, TagSize, Timed};

pub use crate::series::{Merge, Series, Spacings};

/// The most points of all series together.
pub const MAX_POINTS: usize = if cfg!(test) { 64 } else { 2 << 20 };

/// The most lines of the log, and of other lists, that are kept: the last ones.
pub const MAX_LINES: usize = 65_536;

impl Merge for Heap {}
impl Merge for System {}

impl Merge for Pauses {
    fn merge(&mut self, before: &Self) {
        self.longest_ns = self.longest_ns.max(before.longest_ns);
    }
}

/// A probe's state at a moment.
#[derive(Clone, Debug, PartialEq)]
pub enum Sample {
    /// Passes in all.
    Count(u64),
    /// A timer.
    Timer {
        /// Nanoseconds in all.
        total_ns: u64,
        /// Intervals that have ended.
        runs: u64,
        /// Intervals that run.
        running: u32,
    },
    /// A value: the last, least and greatest since the point before.
    Value {
        /// The last one.
        last: f64,
        /// The least.
        least: f64,
        /// The greatest.
        greatest: f64,
    },
    /// A text.
    Text(String),
    /// Tagged values.
    Tag {
        /// Alive.
        live: u64,
        /// Ever marked.
        marked: u64,
        /// What they reach.
        size: TagSize,
    },
}

impl Sample {
    /// The one number that a chart shows; `None` for a text.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Sample::Count(total) => Some(*total as f64),
            Sample::Timer { total_ns, .. } => Some(*total_ns as f64 / 1e9),
            Sample::Value { last, .. } => Some(*last),
            Sample::Text(_) => None,
            Sample::Tag { live, .. } => Some(*live as f64),
        }
    }

    /// What a count or a timer has come to, in nanoseconds; `None` for what is no total.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        match self {
            Sample::Count(total) | Sample::Timer { total_ns: total, .. } => Some(*total),
            _ => None,
        }
    }

    fn kind(&self) -> ProbeKind {
        match self {
            Sample::Count(_) => ProbeKind::Count,
            Sample::Timer { .. } => ProbeKind::Timer,
            Sample::Value { .. } => ProbeKind::Value,
            Sample::Text(_) => ProbeKind::Text,
            Sample::Tag { .. } => ProbeKind::Tag,
        }
    }
}

impl Merge for Sample {
    fn merge(&mut self, before: &Self) {
        if let (
            Sample::Value { least, greatest, .. },
            Sample::Value { least: before_least, greatest: before_greatest, .. },
        ) = (self, before)
        {
            *least = least.min(*before_least);
            *greatest = greatest.max(*before_greatest);
        }
    }
}

/// A probe and its past.
#[derive(Clone, Debug)]
pub struct Probe {
    /// What it measures.
    pub kind: ProbeKind,
    /// Its name; `/` separates the parts of a path.
    pub name: String,
    /// When it was opened.
    pub opened: u64,
    /// Its states.
    pub series: Series<Sample>,
}

/// The program, or a domain, stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// When it began.
    pub time: u64,
    /// How long it took.
    pub ns: u64,
    /// What was done.
    pub kind: SliceKind,
    /// For which domain.
    pub domain: u16,
}

/// Everything that a sidecar has said so far.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Whose sidecar it is.
    pub start: Option<Start>,
    /// By number; `None` for numbers that were never opened, as in a damaged file.
    pub probes: Vec<Option<Probe>>,
    /// The collector's counters.
    pub heap: Series<Heap>,
    /// The process.
    pub system: Series<System>,
    /// All slices, by [`SliceKind::number`].
    pub pauses: [Series<Pauses>; 3],
    /// Single slices; the longest, if there are more than [`MAX_LINES`].
    pub slices: Vec<Slice>,
    /// The log.
    pub log: Vec<(u64, String)>,
    /// Where the program asked the view to stop.
    pub stops: Vec<(u64, String)>,
    /// The collector's major cycles: when the marking of each was done, and when it had not begun.
    pub cycles: Vec<(u64, u64)>,
    /// When memory ran short, with the bytes that were left.
    pub pressure: Vec<(u64, u64)>,
    /// Lines of the log that were lost.
    pub lost_logs: u64,
    /// Slices that were not recorded one by one.
    pub lost_slices: u64,
    /// The time of the first and of the last event.
    pub span: Option<(u64, u64)>,
    /// Whether the sidecar says that it is complete.
    pub ended: bool,
    /// Whether another file has taken its place.
    pub replaced: bool,
    /// How far apart its rows are.
    pub spacing: Spacings,
    points: usize,
    /// What was lost before the file began: lines of the log, and slices.
    lost_before: (u64, u64),
}

impl History {
    /// All probes, in the order in which they were opened.
    pub fn probes(&self) -> impl Iterator<Item = &Probe> {
        self.probes.iter().flatten()
    }

    /// Takes the next event.
    pub fn add(&mut self, timed: Timed) {
        let Timed { time, event } = timed;
        if self.start.is_some() && matches!(event, Event::Start(_)) {
            // A stream of files that took the place of each other, as of `tail -F`: the last counts.
            *self = History::default();
        }
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
        match event {
            Event::Start(start) => self.start = Some(start),
            Event::Probe { probe, kind, name } => self.open(time, probe, kind, name),
            Event::Count { probe, total } => self.sample(time, probe, Sample::Count(total)),
            Event::Timer { probe, total_ns, runs, running } => {
                self.sample(time, probe, Sample::Timer { total_ns, runs, running });
            }
            Event::Value { probe, last, least, greatest } => {
                self.sample(time, probe, Sample::Value { last, least, greatest });
            }
            Event::Text { probe, text } => self.sample(time, probe, Sample::Text(text)),
            Event::Tag { probe, live, marked, size } => {
                self.sample(time, probe, Sample::Tag { live, marked, size });
            }
            Event::Log { text } => keep_last(&mut self.log, (time, text)),
            Event::Pause { text } => keep_last(&mut self.stops, (time, text)),
            Event::Lost { logs, slices } => self.lose(time, logs, slices),
            Event::Slice { kind, domain, ns } => self.slice(Slice { time, ns, kind, domain }),
            Event::Pauses(pauses) => {
                if let Some(series) = self.pauses.get_mut(usize::from(pauses.kind.number())) {
                    series.push(time, pauses);
                    self.count_point();
                }
            }
            Event::Heap(heap) => {
                self.heap.push(time, heap);
                self.count_point();
            }
            Event::System(system) => {
                self.system.push(time, system);
                self.count_point();
            }
            Event::Pressure { headroom } => keep_last(&mut self.pressure, (time, headroom)),
            Event::End => self.ended = true,
            Event::Spacing(spacing) => self.spacing.add(time, spacing),
            Event::Replaced => self.replaced = true,
            Event::Cycle { began, .. } => keep_last(&mut self.cycles, (time, began)),
        }
    }

    fn open(&mut self, time: u64, number: u32, kind: ProbeKind, name: String) {
        let at = number as usize;
        if self.probes.len() <= at {
            // The decoder has checked that the number is below MAX_PROBES.
            self.probes.resize_with(at + 1, || None);
        }
        if let Some(place) = self.probes.get_mut(at) {
            *place = Some(Probe { kind, name, opened: time, series: Series::default() });
        }
    }

    fn sample(&mut self, time: u64, number: u32, sample: Sample) {
        if let Some(Some(probe)) = self.probes.get_mut(number as usize)
            && probe.kind == sample.kind()
        {
            probe.series.push(time, sample);
            self.count_point();
        }
    }

    fn lose(&mut self, time: u64, logs: u64, slices: u64) {
        if self.start.as_ref().is_some_and(|start| start.is_before(time)) {
            self.lost_before = (logs, slices);
        }
        let (logs_before, slices_before) = self.lost_before;
        self.lost_logs = logs.saturating_sub(logs_before);
        self.lost_slices = slices.saturating_sub(slices_before);
    }

    fn slice(&mut self, slice: Slice) {
        self.slices.push(slice);
        if self.slices.len() > 2 * MAX_LINES {
            self.slices.sort_unstable_by_key(|slice| std::cmp::Reverse(slice.ns));
            self.slices.truncate(MAX_LINES);
            self.slices.sort_unstable_by_key(|slice| slice.time);
        }
    }

    fn count_point(&mut self) {
        self.points += 1;
        if self.points <= MAX_POINTS {
            return;
        }
        let probes = self.probes.iter_mut().flatten();
        let mut points = 0;
        for probe in probes {
            probe.series.thin();
            points += probe.series.points.len();
        }
        self.heap.thin();
        self.system.thin();
        points += self.heap.points.len() + self.system.points.len();
        for series in &mut self.pauses {
            series.thin();
            points += series.points.len();
        }
        self.points = points;
    }
}

fn keep_last<T>(lines: &mut Vec<T>, line: T) {
    lines.push(line);
    if lines.len() > 2 * MAX_LINES {
        lines.drain(..MAX_LINES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_points_are_thinned_and_lose_neither_extremes_nor_the_last() {
        let mut history = History::default();
        let name = "depth".to_owned();
        history
            .add(Timed { time: 0, event: Event::Probe { probe: 0, kind: ProbeKind::Value, name } });
        for time in 1..=1_000u64 {
            let value = if time == 321 { 99.0 } else { 1.0 };
            let event = Event::Value { probe: 0, last: value, least: value, greatest: value };
            history.add(Timed { time, event });
        }
        let probe = history.probes().next().unwrap();
        assert!(probe.series.points.len() <= MAX_POINTS);
        assert_eq!(probe.series.points.last().unwrap().0, 1_000);
        let greatest = probe.series.points.iter().filter_map(|(_, sample)| match sample {
            Sample::Value { greatest, .. } => Some(*greatest),
            _ => None,
        });
        assert_eq!(greatest.fold(0.0, f64::max), 99.0);
        assert_eq!(history.span, Some((0, 1_000)));
    }

    #[test]
    fn what_was_lost_before_the_file_is_not_counted() {
        let mut history = History::default();
        let start = Start { trace_start: 7, ..Start::default() };
        history.add(Timed { time: 7_000, event: Event::Start(start) });
        history.add(Timed { time: 7_000, event: Event::Lost { logs: 5, slices: 1 } });
        assert_eq!((history.lost_logs, history.lost_slices), (0, 0));
        history.add(Timed { time: 8_000, event: Event::Lost { logs: 7, slices: 1 } });
        assert_eq!((history.lost_logs, history.lost_slices), (2, 0));
    }
}
