//! The figures of a program's own probes: what a sidecar says at a moment.

use heaptap_probes::history::Spacings;
use heaptap_probes::{History, Probe, Sample, TagSize};
use serde::Serialize;

/// The latest rate is that of this long, in nanoseconds.
const LATELY: u64 = 1_000_000_000;

/// The times of a sidecar, counted from the start of its trace.
#[derive(Clone, Copy, Debug)]
pub struct ProbeClock {
    /// Nanoseconds since the Unix epoch.
    start: u64,
}

impl ProbeClock {
    /// Of a sidecar without a start, its first event is the start.
    pub fn of(history: &History) -> ProbeClock {
        let first = history.span.map_or(0, |(first, _)| first);
        let start = history.start.as_ref().map(|start| start.trace_start.saturating_mul(1_000));
        ProbeClock { start: start.unwrap_or(first) }
    }

    /// Microseconds since the start.
    pub fn micros(self, time: u64) -> u64 {
        time.saturating_sub(self.start) / 1_000
    }

    /// The last nanosecond of a microsecond since the start, as sidecars have it.
    pub fn time(self, micros: u64) -> u64 {
        self.start.saturating_add(micros.saturating_mul(1_000)).saturating_add(999)
    }
}

/// What a sidecar says at a moment. The field names are those of the JSON.
#[derive(Serialize)]
pub struct ProbeFigures {
    pub sidecar: String,
    pub program: String,
    pub pid: Option<u64>,
    pub host: String,
    /// When the trace began, in microseconds since the Unix epoch.
    pub trace_start_us: Option<u64>,
    /// The moment, since the start of the trace.
    pub moment_us: u64,
    /// Whether the sidecar says that nothing follows.
    pub complete: bool,
    /// Where the sidecar is damaged, and how; what comes before is used.
    pub damage: Option<String>,
    pub probes: Vec<ProbeRow>,
    pub log: Vec<ProbeLine>,
    /// Where the program asked the view to stop.
    pub stops: Vec<ProbeLine>,
    pub lost_log_lines: u64,
    pub lost_slices: u64,
}

/// A line of the log, or the reason of a stop.
#[derive(Serialize)]
pub struct ProbeLine {
    pub time_us: u64,
    pub text: String,
}

/// A probe at a moment.
#[derive(Serialize)]
pub struct ProbeRow {
    pub name: String,
    pub kind: &'static str,
    /// When it was opened; 0 if that was before the trace began.
    pub opened_us: u64,
    /// When it changed last, if it ever did; 0 if that was before the trace began.
    pub changed_us: Option<u64>,
    #[serde(flatten)]
    pub state: Option<ProbeState>,
}

/// The state of a probe. Totals are since the program was first traced. Rates are those of the
/// second before the moment, and since the probe was opened or the trace began; of a timer, they
/// are the seconds that it ran in each second.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ProbeState {
    Count {
        total: u64,
        rate_lately: f64,
        rate: f64,
    },
    Timer {
        total_ns: u64,
        runs: u64,
        running: u32,
        mean_ns: Option<f64>,
        rate_lately: f64,
        rate: f64,
    },
    Value {
        last: f64,
        least: f64,
        greatest: f64,
    },
    Text {
        text: String,
    },
    Tag {
        live: u64,
        marked: u64,
        size_bytes: Option<u64>,
        size_is_least: bool,
    },
}

impl ProbeFigures {
    /// What a sidecar says at a moment, in microseconds since the start of the trace; `None` for the
    /// latest. Only probes whose names `wanted` accepts.
    pub fn of(
        name: &str,
        history: &History,
        at: Option<u64>,
        wanted: &dyn Fn(&str) -> bool,
    ) -> ProbeFigures {
        let clock = ProbeClock::of(history);
        let latest = history.span.map_or(0, |(_, last)| last);
        let moment = at.map_or(latest, |at| clock.time(at));
        let start = history.start.clone();
        let lines = |lines: &[(u64, String)]| -> Vec<ProbeLine> {
            let until = lines.iter().filter(|(time, _)| *time <= moment);
            until
                .map(|(time, text)| ProbeLine { time_us: clock.micros(*time), text: text.clone() })
                .collect()
        };
        let word = start.as_ref().map_or(8, |start| u64::from(start.word_size));
        let open = opened(history, moment).filter(|probe| wanted(&probe.name));
        let view = Moment { time: moment, clock, word, spacing: &history.spacing };
        ProbeFigures {
            sidecar: name.to_owned(),
            pid: start.as_ref().map(|start| start.pid),
            trace_start_us: start.as_ref().map(|start| start.trace_start),
            program: start.as_ref().map(|start| start.program.clone()).unwrap_or_default(),
            host: start.map(|start| start.host).unwrap_or_default(),
            moment_us: clock.micros(moment),
            complete: history.ended,
            damage: None,
            probes: open.map(|probe| view.row(probe)).collect(),
            log: lines(&history.log),
            stops: lines(&history.stops),
            lost_log_lines: history.lost_logs,
            lost_slices: history.lost_slices,
        }
    }
}

/// The probes that are open at a time.
pub fn opened(history: &History, time: u64) -> impl Iterator<Item = &Probe> {
    history.probes().filter(move |probe| probe.opened <= time)
}

/// A moment of a sidecar.
struct Moment<'a> {
    /// As sidecars have it.
    time: u64,
    clock: ProbeClock,
    /// Bytes in a word.
    word: u64,
    spacing: &'a Spacings,
}

impl Moment<'_> {
    fn row(&self, probe: &Probe) -> ProbeRow {
        let points = &probe.series.points;
        let behind = points.partition_point(|&(time, _)| time <= self.time);
        let seen = points.get(..behind).unwrap_or_default();
        ProbeRow {
            name: probe.name.clone(),
            kind: probe.kind.name(),
            opened_us: self.clock.micros(probe.opened),
            changed_us: seen.last().map(|&(time, _)| self.clock.micros(time)),
            state: self.state(probe, seen),
        }
    }

    /// The state after these points, which are all until the moment.
    fn state(&self, probe: &Probe, seen: &[(u64, Sample)]) -> Option<ProbeState> {
        let state = match seen.last().map(|(_, sample)| sample.clone())? {
            Sample::Count(last) => {
                let total = self.total(probe, self.time).unwrap_or(last);
                let Rates { lately, whole } = self.rates(probe, total);
                ProbeState::Count { total, rate_lately: lately, rate: whole }
            }
            Sample::Timer { total_ns, runs, running } => {
                let total_ns = self.total(probe, self.time).unwrap_or(total_ns);
                let ended = |sample: &Sample| match sample {
                    Sample::Timer { runs, .. } => Some(*runs),
                    _ => None,
                };
                let runs = probe.series.total_at(self.time, self.spacing, ended).unwrap_or(runs);
                let Rates { lately, whole } = self.rates(probe, total_ns);
                // The time of intervals that run is in the total, but they are no runs yet.
                let mean_ns = (runs > 0 && running == 0).then(|| total_ns as f64 / runs as f64);
                let (rate_lately, rate) = (lately / 1e9, whole / 1e9);
                ProbeState::Timer { total_ns, runs, running, mean_ns, rate_lately, rate }
            }
            Sample::Value { last, .. } => {
                let (mut least, mut greatest) = (last, last);
                for (_, sample) in seen {
                    if let Sample::Value { least: low, greatest: high, .. } = sample {
                        (least, greatest) = (least.min(*low), greatest.max(*high));
                    }
                }
                ProbeState::Value { last, least, greatest }
            }
            Sample::Text(text) => ProbeState::Text { text },
            Sample::Tag { live, marked, size } => {
                let (words, size_is_least) = match size {
                    TagSize::Unknown => (None, false),
                    TagSize::Exactly(words) => (Some(words), false),
                    TagSize::AtLeast(words) => (Some(words), true),
                };
                let size_bytes = words.map(|words| words.saturating_mul(self.word));
                ProbeState::Tag { live, marked, size_bytes, size_is_least }
            }
        };
        Some(state)
    }

    fn total(&self, probe: &Probe, time: u64) -> Option<u64> {
        probe.series.total_at(time, self.spacing, Sample::total)
    }

    /// How fast a total grows that is this now.
    fn rates(&self, probe: &Probe, total: u64) -> Rates {
        let since = |time: u64| total.saturating_sub(self.total(probe, time).unwrap_or(0));
        let second = self.time.saturating_sub(LATELY).max(probe.opened);
        // A file that continues another begins with what was before.
        let in_file = since(self.clock.time(0));
        Rates {
            lately: per_second(since(second), self.time, second),
            whole: per_second(in_file, self.time, probe.opened),
        }
    }
}

/// How fast a total grows, for each second.
struct Rates {
    lately: f64,
    whole: f64,
}

fn per_second(amount: u64, to: u64, from: u64) -> f64 {
    // A tenth of a second is the shortest time between two events of a probe: no rate is known of less.
    let seconds = to.saturating_sub(from) as f64 / 1e9;
    if seconds > 0.0 { amount as f64 / seconds.max(0.1) } else { 0.0 }
}
