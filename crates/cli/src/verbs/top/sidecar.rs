//! What the program says of itself, as the view tails it: its probes and its log at the moment in
//! view, and where it asks the view to stop.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heaptap_probes::History;
use heaptap_report::figures::probes::figures::{ProbeClock, ProbeFigures};
use heaptap_report::figures::probes::major::old_before;

use crate::io::live_sidecar::LiveSidecar;

/// How long a stop waits for the trace to reach it: the two files are written one after the other.
const PATIENCE: Duration = Duration::from_millis(500);

/// The sidecar of the trace in view.
#[derive(Default)]
pub(super) struct SidecarView {
    /// `None` if the trace has no name, as a pipe.
    sidecar: Option<LiveSidecar>,
    /// The trace beside which it is.
    file: Option<PathBuf>,
    /// When the trace in view began, in microseconds since the epoch.
    trace_start: Option<u64>,
    /// What was there when the view began was read. Its stops are past.
    has_caught_up: bool,
    /// The time of the last stop that the view knows, in nanoseconds since the epoch.
    last_stop: u64,
    /// A stop that the trace has not reached yet.
    pending: Option<PendingStop>,
    /// The stop at which the view stands.
    pub(super) stopped: Option<Stop>,
}

struct PendingStop {
    stop: Stop,
    since: Instant,
}

/// Where the program asked the view to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// Microseconds since the start of the trace.
    pub(super) moment: u64,
    pub(super) text: String,
}

impl SidecarView {
    /// Of the trace at this path, if it has one.
    pub(super) fn of(trace: Option<&Path>) -> SidecarView {
        let file = trace.map(Path::to_owned);
        SidecarView { sidecar: trace.map(LiveSidecar::of), file, ..SidecarView::default() }
    }

    /// Everything that was read so far; `None` without a sidecar.
    pub(super) fn history(&self) -> Option<&History> {
        let sidecar = self.sidecar.as_ref()?;
        let history = &sidecar.read.history;
        (history.span.is_some() && !self.is_foreign()).then_some(history)
    }

    /// Microseconds from the start of the trace to the last moment that the sidecar has.
    pub(super) fn latest(&self) -> u64 {
        let history = self.history();
        let last = history.and_then(|history| Some((history, history.span?.1)));
        last.map_or(0, |(history, last)| ProbeClock::of(history).micros(last))
    }

    /// What was old by this time has lived through a major collection at this moment; `None` if
    /// the sidecar does not count them.
    pub(super) fn old_before(&self, moment: Option<u64>) -> Option<u64> {
        old_before(self.history()?, moment)
    }

    /// Whether the sidecar is that of another trace, as of one that had this name before.
    fn is_foreign(&self) -> bool {
        let start = self.sidecar.as_ref().and_then(|sidecar| sidecar.read.history.start.as_ref());
        let (Some(start), Some(of_trace)) = (start, self.trace_start) else { return false };
        start.trace_start != of_trace
    }

    /// Reads on. Returns whether anything changed.
    /// `trace_start` is when the trace in view began, in microseconds since the epoch; of a series
    /// the first file that was read. `file`: where the file is that is read now, and when it began.
    pub(super) fn advance(
        &mut self,
        trace_start: Option<u64>,
        file: (Option<&Path>, Option<u64>),
        until: Instant,
    ) -> bool {
        self.trace_start = trace_start;
        let (path, file_start) = file;
        if path != self.file.as_deref() {
            // What the file before has is summed up at the beginning of this one.
            self.file = path.map(Path::to_owned);
            self.sidecar = path.map(LiveSidecar::of);
        }
        let Some(sidecar) = &mut self.sidecar else { return false };
        let changed = sidecar.poll(until);
        let history = &mut sidecar.read.history;
        if let (Some(start), Some(trace_start)) = (&mut history.start, trace_start)
            && Some(start.trace_start) == file_start
        {
            // Its times count from the beginning of the series.
            start.trace_start = trace_start;
        }
        let history = &sidecar.read.history;
        let newest = history.stops.last();
        if let Some((time, text)) = newest.filter(|(time, _)| *time != self.last_stop) {
            self.last_stop = *time;
            if self.has_caught_up {
                let moment = ProbeClock::of(history).micros(*time);
                let stop = Stop { moment, text: text.clone() };
                self.pending = Some(PendingStop { stop, since: Instant::now() });
            }
        }
        self.has_caught_up |= !changed;
        changed
    }

    /// The stop at which the view is to stand from now on: the trace has reached this moment.
    pub(super) fn due_stop(&mut self, latest: u64) -> Option<u64> {
        let is_due = |pending: &mut PendingStop| {
            latest >= pending.stop.moment || pending.since.elapsed() > PATIENCE
        };
        let pending = self.pending.take_if(is_due)?;
        let moment = pending.stop.moment;
        self.stopped = Some(pending.stop);
        Some(moment)
    }

    /// The view shows this moment: a stop of another one is over.
    pub(super) fn look_at(&mut self, moment: Option<u64>) {
        self.stopped.take_if(|stop| Some(stop.moment) != moment);
    }

    /// Probes and log at a moment, in microseconds since the start; `None` for now.
    pub(super) fn figures(&self, moment: Option<u64>) -> Option<ProbeFigures> {
        Some(ProbeFigures::of("", self.history()?, moment, &|_| true))
    }

    /// Why there is nothing to show, or less than there should be.
    pub(super) fn problem(&mut self) -> Option<String> {
        let Some(sidecar) = &mut self.sidecar else {
            return Some("a trace from a pipe has no file of probes beside it".to_owned());
        };
        if let Some(damage) = sidecar.read.damage() {
            return Some(format!("{}: {damage}", sidecar.name()));
        }
        let (name, is_empty) = (sidecar.name(), sidecar.read.history.span.is_none());
        if self.is_foreign() {
            return Some(format!("{name} belongs to another trace than the one in view"));
        }
        is_empty.then(|| {
            format!(
                "there is no {name} yet: the program has opened no probe, and no time line is recorded"
            )
        })
    }
}
