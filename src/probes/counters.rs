//! What sidecars have of the collector, the process and of what was lost. On the writer thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use heaptap_probes::{Event, Heap, Pauses, SliceKind, System};

use super::registry::ProbeRegistry;
use super::sidecar_file::SidecarFile;
use super::sidecar_trace::SidecarClock;
use super::time_line::{SliceTotals, TimeLine, TimedSlice};
use crate::sys::memory_pressure::PressureWatch;
use crate::sys::process_stats::{GroupUsage, ProcessStats};

/// The collector's counters, read on the writer thread.
pub(crate) type ReadHeap = Arc<dyn Fn() -> Heap + Send + Sync>;

/// Counters of collector and system are recorded at most ten times a second, however often the
/// trace is flushed; after a minute once a second: a day then takes 15 MB at most, not 150.
pub(super) const OFTEN_NS: u64 = 90_000_000;
const SELDOM_NS: u64 = 990_000_000;
const FREQUENT: u64 = 600;
/// While memory is short, at each tick.
const URGENT_NS: u64 = 9_000_000;

/// See the module. The fields from `heap` on are what was recorded last.
pub(super) struct Counters {
    registry: Arc<ProbeRegistry>,
    time_line: Arc<TimeLine>,
    read_heap: Option<ReadHeap>,
    /// `None` until it is first read.
    stats: Option<ProcessStats>,
    pressure: PressureWatch,
    /// When memory was last looked at.
    last_look: u64,
    /// How often counters were recorded while memory was not short, and when last.
    readings: u64,
    last_reading: u64,
    heap: Option<Heap>,
    system: Option<System>,
    pauses: [Option<Pauses>; SliceKind::ALL.len()],
    /// Lines of the log, and slices.
    lost: (u64, u64),
}

impl Counters {
    pub(super) fn new(
        registry: &Arc<ProbeRegistry>,
        time_line: &Arc<TimeLine>,
        read_heap: Option<ReadHeap>,
    ) -> Counters {
        Counters {
            registry: Arc::clone(registry),
            time_line: Arc::clone(time_line),
            read_heap,
            stats: None,
            pressure: PressureWatch::default(),
            last_look: 0,
            readings: 0,
            last_reading: 0,
            heap: None,
            system: None,
            pauses: Default::default(),
            // A forked child shares the registry.
            lost: (registry.lost_notes(), 0),
        }
    }

    /// Whether the collector has ever worked.
    pub(super) fn have_collections(&self) -> bool {
        self.time_line.has_slices()
    }

    /// Has the next call of [`Counters::record`] read them all, however recently they were.
    pub(super) fn hurry(&mut self) {
        self.last_reading = 0;
    }

    /// Whether memory is short, so that the process may end at any moment.
    pub(super) fn are_urgent(&self) -> bool {
        self.pressure.is_urgent()
    }

    /// The events that say what was recorded last: what another file begins with.
    pub(super) fn last(&self) -> Vec<Event> {
        // The longest one was that of an interval that has ended.
        let pauses = self.pauses.iter().flatten().map(|&pauses| Pauses { longest_ns: 0, ..pauses });
        let (logs, slices) = self.lost;
        let lost = (self.lost != (0, 0)).then_some(Event::Lost { logs, slices });
        let mut events: Vec<Event> = pauses.map(Event::Pauses).collect();
        events.extend(self.heap.map(Event::Heap));
        events.extend(self.system.map(Event::System));
        events.extend(lost);
        events
    }

    /// Records what has changed.
    pub(super) fn record(
        &mut self,
        file: &mut SidecarFile,
        time: u64,
        clock: &mut impl SidecarClock,
    ) -> Result<(), String> {
        self.record_slices(file, time, clock)?;
        let interval = match (self.are_urgent(), self.readings) {
            (true, _) => URGENT_NS,
            (false, ..FREQUENT) => OFTEN_NS,
            (false, _) => SELDOM_NS,
        };
        if time.saturating_sub(self.last_reading) >= interval {
            self.last_reading = time;
            self.readings += u64::from(!self.are_urgent());
            self.record_readings(file, time)?;
        } else if time.saturating_sub(self.last_look) >= OFTEN_NS {
            let stats = self.stats.get_or_insert_with(ProcessStats::new);
            let group = stats.group_usage();
            self.look(file, time, group)?;
        }
        let lost = (self.registry.lost_notes(), self.time_line.lost());
        if std::mem::replace(&mut self.lost, lost) != lost {
            file.add(time, Event::Lost { logs: lost.0, slices: lost.1 })?;
        }
        Ok(())
    }

    fn record_slices(
        &mut self,
        file: &mut SidecarFile,
        now: u64,
        clock: &mut impl SidecarClock,
    ) -> Result<(), String> {
        while let Some(TimedSlice { begin, ticks, kind, domain }) = self.time_line.take() {
            let ns = clock.length_ns(ticks);
            file.add(clock.time_ns(begin), Event::Slice { kind, domain, ns })?;
        }
        for kind in SliceKind::ALL {
            let SliceTotals { count, ticks, longest } = self.time_line.totals(kind);
            let Some(last) = self.pauses.get_mut(usize::from(kind.number())) else { continue };
            if last.map_or(0, |last| last.count) == count {
                continue;
            }
            let (total_ns, longest_ns) = (clock.length_ns(ticks), clock.length_ns(longest));
            let pauses = Pauses { kind, count, total_ns, longest_ns };
            *last = Some(pauses);
            file.add(now, Event::Pauses(pauses))?;
        }
        Ok(())
    }

    fn record_readings(&mut self, file: &mut SidecarFile, time: u64) -> Result<(), String> {
        if let Some(read) = &self.read_heap {
            let heap = read();
            if self.heap.replace(heap) != Some(heap) {
                file.add(time, Event::Heap(heap))?;
            }
        }
        let domains = self.time_line.domains.load(Ordering::Relaxed);
        let domains = (domains != 0).then_some(u64::from(domains));
        let stats = self.stats.get_or_insert_with(ProcessStats::new);
        let system = System { domains, ..stats.read() };
        self.system = Some(system);
        file.add(time, Event::System(system))?;
        let group = system.cgroup_usage.zip(system.cgroup_limit);
        self.look(file, time, group.map(|(usage, limit)| GroupUsage { usage, limit }))
    }

    /// Records that memory has become short, if it has.
    fn look(
        &mut self,
        file: &mut SidecarFile,
        time: u64,
        group: Option<GroupUsage>,
    ) -> Result<(), String> {
        self.last_look = time;
        match self.pressure.look(group, time) {
            Some(headroom) => file.add(time, Event::Pressure { headroom }),
            None => Ok(()),
        }
    }
}
