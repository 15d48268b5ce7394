//! The sidecar of a trace: what changed, ten times a second, and a hundred times while memory is
//! short. On the writer thread.
//!
//! It is made at the first tick at which there is something to say, next to a trace that is a
//! regular file: a probe, a line of the log, a collection, or memory after a tenth of a second. So
//! programs that only print a line and end have none. A sidecar that cannot be written is reported once; the trace goes on.
//!
//! It is thinned as it grows (`size_limit`), and quantities that would take too many bytes at each
//! tick are recorded less often (`pace`).
//!
//! A file that is not the first, after a rotation or in a forked child, begins with what was
//! recorded last, with the time at which its trace begins. Then growth in the two files adds up
//! to the totals, and a reader of the second knows what did not change.

use std::sync::Arc;

use heaptap_probes::Event;

use super::changes::Recorded;
use super::counters::{Counters, OFTEN_NS, ReadHeap};
use super::pace::Pace;
use super::registry::{Note, ProbeRegistry};
use super::sidecar_file::SidecarFile;
use super::sidecar_output::SidecarOutput;
use super::sidecar_trace::{SidecarClock, SidecarOwner, TraceAt};
use super::size_limit::SizeLimit;
use super::time_line::TimeLine;
use crate::sys::recording::Recording;

/// Records what changes into a sidecar, from tick to tick.
pub(crate) struct Sidecar {
    /// Asked when a file is made: most sessions never make one.
    owner: fn() -> SidecarOwner,
    registry: Arc<ProbeRegistry>,
    /// Whether the collector's time line is recorded even if there are no probes.
    with_time_line: bool,
    probes: Vec<Recorded>,
    /// How many of them an earlier file has the names of.
    carried: usize,
    counters: Counters,
    file: Option<SidecarFile>,
    limit: SizeLimit,
    pace: Pace,
    /// Where the trace is kept, if it is in memory.
    recording: Option<Arc<Recording>>,
    /// No sidecar can be written any more.
    failed: bool,
}

impl Sidecar {
    pub(crate) fn new(
        owner: fn() -> SidecarOwner,
        registry: &Arc<ProbeRegistry>,
        time_line: &Arc<TimeLine>,
        with_time_line: bool,
        read_heap: Option<ReadHeap>,
        most_bytes: u64,
    ) -> Sidecar {
        let mut probes = Vec::new();
        registry.for_each_from(0, |_, _, cell| probes.push(Recorded::inherited(cell)));
        Sidecar {
            owner,
            registry: Arc::clone(registry),
            with_time_line,
            carried: probes.len(),
            probes,
            counters: Counters::new(registry, time_line, read_heap),
            file: None,
            limit: SizeLimit::new(most_bytes),
            pace: Pace::default(),
            recording: None,
            failed: false,
        }
    }

    /// The same for a trace that is kept in memory, if this is one.
    pub(crate) fn kept_in(self, recording: Option<Arc<Recording>>) -> Sidecar {
        Sidecar { recording, ..self }
    }

    /// A value that carries a tag has died.
    pub(crate) fn count_dead(&mut self, probe: u64) {
        if self.probes.len() as u64 <= probe {
            self.find_probes();
        }
        if let Some(probe) = self.probes.get_mut(probe as usize) {
            probe.count_dead();
        }
    }

    /// Records what has changed. An error is to be reported to the user; it comes once.
    pub(crate) fn tick(
        &mut self,
        trace: TraceAt<'_>,
        clock: &mut impl SidecarClock,
    ) -> Result<(), String> {
        self.advance(trace, clock)?;
        let Sidecar { file: Some(file), limit, counters, .. } = self else { return Ok(()) };
        limit.keep(file, trace.time(clock)).map(|dropped| counters.count_dropped(dropped))
    }

    fn advance(&mut self, trace: TraceAt<'_>, clock: &mut impl SidecarClock) -> Result<(), String> {
        if self.failed || !(self.with_time_line || self.registry.is_in_use()) {
            return Ok(());
        }
        if self.has_nothing_yet(trace, clock) {
            return Ok(());
        }
        self.find_probes();
        let written = self.open(trace, clock).and_then(|()| self.record(trace, clock));
        written.inspect_err(|_| {
            self.failed = true;
            self.file = None;
        })
    }

    /// The trace has ended. Another one may follow.
    pub(crate) fn end(
        &mut self,
        trace: TraceAt<'_>,
        clock: &mut impl SidecarClock,
    ) -> Result<(), String> {
        self.counters.hurry();
        self.pace.hurry();
        // Not thinned any more: what that drops could not be counted in the file.
        self.advance(trace, clock)?;
        self.close(trace.time(clock))
    }

    /// Whether memory is short, so that the process may end at any moment.
    pub(crate) fn is_urgent(&self) -> bool {
        !self.failed && self.counters.are_urgent()
    }

    /// Whether a file of this trace would only say how much memory the program has begun with.
    fn has_nothing_yet(&self, trace: TraceAt<'_>, clock: &mut impl SidecarClock) -> bool {
        let age = trace.time(clock).saturating_sub(trace.start_ns());
        self.file.is_none()
            && !self.registry.is_in_use()
            && !self.counters.have_collections()
            && age < OFTEN_NS
    }

    fn find_probes(&mut self) {
        let probes = &mut self.probes;
        self.registry.for_each_from(probes.len(), |_, _, cell| probes.push(Recorded::new(cell)));
    }

    /// Makes sure that there is a sidecar for this trace.
    fn open(&mut self, trace: TraceAt<'_>, clock: &mut impl SidecarClock) -> Result<(), String> {
        if let Some(file) = self.file.as_mut().filter(|file| file.belongs_to(trace)) {
            if file.was_truncated() {
                self.carried = file.named;
                file.restart(trace, (self.owner)())?;
                self.limit.begin();
                self.begin(trace, clock)?;
            }
            return Ok(());
        }
        self.close(trace.time(clock))?;
        let is_memory = self.recording.is_some();
        if !is_memory && !std::fs::symlink_metadata(trace.file).is_ok_and(|found| found.is_file()) {
            // A pipe, or a file that was removed: there is no place beside it.
            self.failed = true;
            return Ok(());
        }
        let out = SidecarOutput::create(trace.file, self.recording.as_ref())?;
        self.file = Some(SidecarFile::begin(out, trace, (self.owner)())?);
        self.limit.begin();
        self.begin(trace, clock)
    }

    /// Writes what was recorded before the file began.
    fn begin(&mut self, trace: TraceAt<'_>, clock: &mut impl SidecarClock) -> Result<(), String> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let start = trace.start_ns();
        name_probes(&self.registry, file, start, self.carried)?;
        let probes = self.probes.iter();
        let last = probes.filter_map(|probe| probe.last(|ticks| clock.length_ns(ticks)));
        for event in last.chain(self.counters.last()) {
            file.add(start, event)?;
        }
        Ok(())
    }

    fn close(&mut self, time: u64) -> Result<(), String> {
        let Some(file) = self.file.take() else { return Ok(()) };
        self.carried = file.named;
        file.close(time)
    }

    fn record(&mut self, trace: TraceAt<'_>, clock: &mut impl SidecarClock) -> Result<(), String> {
        let Sidecar { registry, probes, counters, file: Some(file), limit, pace, .. } = self else {
            return Ok(());
        };
        let time = trace.time(clock);
        if limit.is_reached && !pace.is_last() {
            return Ok(());
        }
        if trace.observes {
            probes.iter().for_each(Recorded::observe);
        }
        name_probes(registry, file, time, usize::MAX)?;
        for (at, note) in registry.take_notes() {
            let event = match note {
                Note::Log(text) => Event::Log { text },
                Note::Stop(text) => Event::Pause { text },
            };
            file.add(clock.time_ns(at), event)?;
        }
        let is_urgent = counters.are_urgent();
        let due = pace.due(time, limit.least_interval(file), is_urgent);
        if let Some((from, spacing)) = due.spacing {
            file.add(from, Event::Spacing(spacing))?;
        }
        if due.probes {
            let before = file.bytes();
            for probe in probes {
                if let Some(event) = probe.change(|ticks| clock.length_ns(ticks)) {
                    file.add(time, event)?;
                }
            }
            pace.spend(file.bytes().saturating_sub(before));
        }
        if due.counters {
            counters.record(file, time, clock)?;
        } else {
            counters.watch(file, time)?;
        }
        file.flush()
    }
}

/// Adds the names of probes that the file does not have yet, up to this number of them.
fn name_probes(
    registry: &ProbeRegistry,
    file: &mut SidecarFile,
    time: u64,
    until: usize,
) -> Result<(), String> {
    let mut names = Vec::new();
    registry.for_each_from(file.named, |probe, name, cell| {
        if (probe as usize) < until {
            names.push(Event::Probe { probe, kind: cell.kind, name: name.to_owned() });
        }
    });
    file.named += names.len();
    names.into_iter().try_for_each(|event| file.add(time, event))
}

#[cfg(test)]
#[path = "sidecar_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "size_tests.rs"]
mod size_tests;
