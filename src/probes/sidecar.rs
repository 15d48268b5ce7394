//! The sidecar of a trace: what changed, ten times a second. On the writer thread.
//!
//! It is made at the first tick at which there is something to say, next to a trace that is a
//! regular file. A sidecar that cannot be written is reported once; the trace goes on.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use heaptap_probes::{Encoder, Event, Pauses, SliceKind, Start, System, Timed};

use super::changes::Recorded;
use super::registry::{Note, ProbeRegistry};
use super::time_line::{SliceTotals, TimeLine, TimedSlice};
use crate::probes::Heap;
use crate::sys::file;
use crate::sys::output::Output;
use crate::sys::process_stats::ProcessStats;

/// Converts the session's ticks.
pub(crate) trait SidecarClock {
    /// Nanoseconds since the epoch, this many ticks after the session's start.
    fn time_ns(&mut self, ticks: u64) -> u64;

    /// This many ticks in nanoseconds.
    fn length_ns(&self, ticks: u64) -> u64;
}

/// The trace that a sidecar belongs to, at one moment.
#[derive(Clone, Copy)]
pub(crate) struct TraceAt<'a> {
    /// The name of its file.
    pub(crate) file: &'a OsStr,
    /// When the file begins, in microseconds since the epoch.
    pub(crate) start_us: u64,
    /// The session's tick.
    pub(crate) now: u64,
}

/// Whose sidecar it is.
pub(crate) struct SidecarOwner {
    pub(crate) host: String,
    pub(crate) program: String,
    pub(crate) pid: u32,
}

/// The collector's counters, read on the writer thread.
pub(crate) type ReadHeap = Arc<dyn Fn() -> Heap + Send + Sync>;

/// Counters of collector and system are recorded at most ten times a second, however often the
/// trace is flushed; after a minute once a second: a day then takes 15 MB at most, not 150.
const OFTEN_NS: u64 = 90_000_000;
const SELDOM_NS: u64 = 990_000_000;
const FREQUENT: u64 = 600;

/// See the module.
pub(crate) struct Sidecar {
    /// Asked when a file is made: most sessions never make one.
    owner: fn() -> SidecarOwner,
    registry: Arc<ProbeRegistry>,
    time_line: Arc<TimeLine>,
    /// Whether the collector's time line is recorded even if there are no probes.
    with_time_line: bool,
    read_heap: Option<ReadHeap>,
    /// `None` until it is first read.
    stats: Option<ProcessStats>,
    probes: Vec<Recorded>,
    /// How often counters were recorded, and when last.
    readings: u64,
    last_reading: u64,
    file: Option<SidecarFile>,
    /// No sidecar can be written any more.
    failed: bool,
}

/// A sidecar that is being written.
struct SidecarFile {
    /// The trace it belongs to.
    trace: OsString,
    out: Output,
    encoder: Encoder,
    /// How many probes it has the names of.
    named: usize,
    heap: Option<Heap>,
    pauses: [u64; SliceKind::ALL.len()],
    lost: (u64, u64),
}

impl Sidecar {
    pub(crate) fn new(
        owner: fn() -> SidecarOwner,
        registry: &Arc<ProbeRegistry>,
        time_line: &Arc<TimeLine>,
        with_time_line: bool,
        read_heap: Option<ReadHeap>,
    ) -> Sidecar {
        let mut probes = Vec::new();
        // What was marked before belongs to the process that this one was forked from.
        registry.for_each_from(0, |_, _, cell| {
            let mut probe = Recorded::new(cell);
            probe.forget_marks();
            probes.push(probe);
        });
        Sidecar {
            owner,
            registry: Arc::clone(registry),
            time_line: Arc::clone(time_line),
            with_time_line,
            read_heap,
            stats: None,
            probes,
            readings: 0,
            last_reading: 0,
            file: None,
            failed: false,
        }
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
        if self.failed || !(self.with_time_line || self.registry.is_in_use()) {
            return Ok(());
        }
        self.find_probes();
        let written = self.open(trace, clock).and_then(|()| self.record(trace.now, clock));
        written.inspect_err(|_| {
            self.failed = true;
            self.file = None;
        })
    }

    /// The trace has ended.
    pub(crate) fn end(
        &mut self,
        trace: TraceAt<'_>,
        clock: &mut impl SidecarClock,
    ) -> Result<(), String> {
        // A program that ends before the first tick has no time line worth a file.
        if self.readings == 0 && !self.registry.is_in_use() {
            return Ok(());
        }
        // Counters are recorded once more, however recently they were.
        self.last_reading = 0;
        self.tick(trace, clock)?;
        match &mut self.file {
            Some(file) => file.close(clock.time_ns(trace.now)),
            None => Ok(()),
        }
    }

    fn find_probes(&mut self) {
        let probes = &mut self.probes;
        self.registry.for_each_from(probes.len(), |_, _, cell| probes.push(Recorded::new(cell)));
    }

    /// Makes sure that there is a sidecar for this trace.
    fn open(&mut self, trace: TraceAt<'_>, clock: &mut impl SidecarClock) -> Result<(), String> {
        if self.file.as_ref().is_some_and(|file| file.trace == trace.file) {
            return Ok(());
        }
        let time = clock.time_ns(trace.now);
        if let Some(mut last) = self.file.take() {
            last.close(time)?;
        }
        if !std::fs::symlink_metadata(trace.file).is_ok_and(|found| found.is_file()) {
            // A pipe, or a file that was removed: there is no place beside it.
            self.failed = true;
            return Ok(());
        }
        let name = heaptap_probes::sidecar_name(trace.file);
        let out = file::create_sidecar(Path::new(&name))
            .map_err(|error| format!("{error}; the trace goes on without it"))?;
        let SidecarOwner { host, program, pid } = (self.owner)();
        let pid = u64::from(pid);
        let mut file = SidecarFile {
            trace: trace.file.to_owned(),
            out,
            encoder: Encoder::new(pid),
            named: 0,
            heap: None,
            pauses: Default::default(),
            lost: (0, 0),
        };
        let word_size = size_of::<usize>() as u8;
        let start = Start { trace_start: trace.start_us, pid, word_size, host, program };
        file.add(time, Event::Start(start))?;
        self.probes.iter_mut().for_each(Recorded::say_again);
        self.file = Some(file);
        Ok(())
    }

    fn record(&mut self, now: u64, clock: &mut impl SidecarClock) -> Result<(), String> {
        let Sidecar { registry, time_line, probes, stats, file: Some(file), .. } = self else {
            return Ok(());
        };
        let time = clock.time_ns(now);
        let mut names = Vec::new();
        registry.for_each_from(file.named, |probe, name, cell| {
            names.push(Event::Probe { probe, kind: cell.kind(), name: name.to_owned() });
        });
        file.named += names.len();
        for event in names {
            file.add(time, event)?;
        }
        for (at, note) in registry.take_notes() {
            let event = match note {
                Note::Log(text) => Event::Log { text },
                Note::Stop(text) => Event::Pause { text },
            };
            file.add(clock.time_ns(at), event)?;
        }
        for probe in probes {
            if let Some(event) = probe.change(|ticks| clock.length_ns(ticks)) {
                file.add(time, event)?;
            }
        }
        file.add_slices(time_line, time, clock)?;
        let interval = if self.readings < FREQUENT { OFTEN_NS } else { SELDOM_NS };
        if time.saturating_sub(self.last_reading) >= interval {
            self.last_reading = time;
            if let Some(read) = &self.read_heap {
                file.add_heap(time, read())?;
            }
            let domains = time_line.domains.load(Ordering::Relaxed);
            let domains = (domains != 0).then_some(u64::from(domains));
            let stats = stats.get_or_insert_with(ProcessStats::new);
            let system = System { domains, ..stats.read(self.readings) };
            file.add(time, Event::System(system))?;
            if let Some(headroom) = stats.new_pressure(time) {
                file.add(time, Event::Pressure { headroom })?;
            }
            self.readings += 1;
        }
        let lost = (registry.lost_notes(), time_line.lost());
        if std::mem::replace(&mut file.lost, lost) != lost {
            file.add(time, Event::Lost { logs: lost.0, slices: lost.1 })?;
        }
        file.flush()
    }
}

impl SidecarFile {
    fn add(&mut self, time: u64, event: Event) -> Result<(), String> {
        match self.encoder.add(&Timed { time, event }) {
            Some(packet) => self.write(&packet),
            None => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), String> {
        self.encoder.take().map_or(Ok(()), |packet| self.write(&packet))
    }

    fn write(&mut self, packet: &[u8]) -> Result<(), String> {
        self.out.write_all(packet).map_err(|error| {
            let name = self.out.path().display();
            format!("cannot write {name}: {error}; the trace goes on without it")
        })
    }

    fn close(&mut self, time: u64) -> Result<(), String> {
        self.add(time, Event::End)?;
        self.flush()
    }

    fn add_slices(
        &mut self,
        line: &TimeLine,
        now: u64,
        clock: &mut impl SidecarClock,
    ) -> Result<(), String> {
        while let Some(TimedSlice { begin, ticks, kind, domain }) = line.take() {
            let ns = clock.length_ns(ticks);
            self.add(clock.time_ns(begin), Event::Slice { kind, domain, ns })?;
        }
        for kind in SliceKind::ALL {
            let SliceTotals { count, ticks, longest } = line.totals(kind);
            let Some(last) = self.pauses.get_mut(usize::from(kind.number())) else { continue };
            if std::mem::replace(last, count) == count {
                continue;
            }
            let (total_ns, longest_ns) = (clock.length_ns(ticks), clock.length_ns(longest));
            self.add(now, Event::Pauses(Pauses { kind, count, total_ns, longest_ns }))?;
        }
        Ok(())
    }

    fn add_heap(&mut self, time: u64, heap: Heap) -> Result<(), String> {
        if self.heap.replace(heap) == Some(heap) {
            return Ok(());
        }
        self.add(time, Event::Heap(heap))
    }
}
