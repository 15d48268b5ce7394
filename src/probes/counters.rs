//! What sidecars have of the collector, the process and of what was lost. On the writer thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use heaptap_probes::{Dropped, Event, Heap, Pauses, SliceKind, System};

use super::registry::ProbeRegistry;
use super::sidecar_file::SidecarFile;
use super::sidecar_trace::SidecarClock;
use super::time_line::{SliceTotals, TimeLine, TimedCycle, TimedSlice};
use crate::sys::memory_pressure::PressureWatch;
use crate::sys::process_stats::{GroupUsage, ProcessStats};

/// The collector's counters, read on the writer thread.
pub(crate) type ReadHeap = Arc<dyn Fn() -> Heap + Send + Sync>;

/// Counters of collector and system are read at most ten times a second, however often the trace
/// is flushed, and recorded if they have changed.
pub(super) const OFTEN_NS: u64 = 90_000_000;
/// What the system says is recorded at least this often, so that a reader knows how far the file goes.
const SELDOM_NS: u64 = 990_000_000;
/// While memory is short, at each tick.
const URGENT_NS: u64 = 9_000_000;

/// The most single slices of a tick, the longest of all. With a small minor heap there are thousands of
/// collections in a second, and their sums say all but which one was how long.
const SLICES: usize = 8;

/// Reads the counters and records those that changed. The fields from `heap` on are what was
/// recorded last.
pub(super) struct Counters {
    registry: Arc<ProbeRegistry>,
    time_line: Arc<TimeLine>,
    read_heap: Option<ReadHeap>,
    /// `None` until it is first read.
    stats: Option<ProcessStats>,
    pressure: PressureWatch,
    /// When counters were last read, and when what the system says was last recorded.
    last_reading: u64,
    last_system: u64,
    heap: Option<Heap>,
    system: Option<System>,
    pauses: [Option<Pauses>; SliceKind::ALL.len()],
    /// Lines of the log, and slices.
    lost: (u64, u64),
    /// What was not recorded, or is not in the file any more, to keep it small.
    dropped: Dropped,
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
            last_reading: 0,
            last_system: 0,
            heap: None,
            system: None,
            pauses: Default::default(),
            // A forked child shares the registry.
            lost: (registry.lost_notes(), 0),
            dropped: Dropped::default(),
        }
    }

    /// What was in the file, and is not any more.
    pub(super) fn count_dropped(&mut self, dropped: Dropped) {
        self.dropped.logs += dropped.logs;
        self.dropped.slices += dropped.slices;
    }

    /// Whether the collector has ever worked.
    pub(super) fn have_collections(&self) -> bool {
        self.time_line.has_slices()
    }

    /// Has the next call of [`Counters::record`] record them all, however recently they were.
    pub(super) fn hurry(&mut self) {
        (self.last_reading, self.last_system) = (0, 0);
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

    /// Notices that memory has become short, at a tick at which nothing else is recorded.
    pub(super) fn watch(&mut self, file: &mut SidecarFile, time: u64) -> Result<(), String> {
        if time.saturating_sub(self.last_reading) < OFTEN_NS {
            return Ok(());
        }
        self.last_reading = time;
        let group = self.stats.get_or_insert_with(ProcessStats::new).group_usage();
        self.look(file, time, group)
    }

    /// Records what has changed.
    pub(super) fn record(
        &mut self,
        file: &mut SidecarFile,
        time: u64,
        clock: &mut impl SidecarClock,
    ) -> Result<(), String> {
        self.record_cycles(file, clock)?;
        self.record_slices(file, clock)?;
        self.record_pauses(file, time, clock)?;
        let interval = if self.are_urgent() { URGENT_NS } else { OFTEN_NS };
        if time.saturating_sub(self.last_reading) >= interval {
            self.last_reading = time;
            self.record_readings(file, time)?;
        }
        let logs = self.registry.lost_notes().saturating_add(self.dropped.logs);
        let slices = self.time_line.lost().saturating_add(self.dropped.slices);
        if std::mem::replace(&mut self.lost, (logs, slices)) != (logs, slices) {
            file.add(time, Event::Lost { logs, slices })?;
        }
        Ok(())
    }

    /// The collector's major cycles.
    fn record_cycles(
        &mut self,
        file: &mut SidecarFile,
        clock: &mut impl SidecarClock,
    ) -> Result<(), String> {
        while let Some(TimedCycle { number, began, marked }) = self.time_line.take_cycle() {
            let began = clock.time_ns(began);
            file.add(clock.time_ns(marked), Event::Cycle { number, began })?;
        }
        Ok(())
    }

    /// Single slices: the longest since the last tick, in the order of time.
    fn record_slices(
        &mut self,
        file: &mut SidecarFile,
        clock: &mut impl SidecarClock,
    ) -> Result<(), String> {
        let mut longest: Vec<TimedSlice> = Vec::with_capacity(SLICES + 1);
        while let Some(slice) = self.time_line.take() {
            let at = longest.partition_point(|other| other.ticks >= slice.ticks);
            longest.insert(at, slice);
            if longest.len() > SLICES {
                longest.pop();
                self.dropped.slices += 1;
            }
        }
        longest.sort_by_key(|slice| slice.begin);
        for TimedSlice { begin, ticks, kind, domain } in longest {
            let ns = clock.length_ns(ticks);
            file.add(clock.time_ns(begin), Event::Slice { kind, domain, ns })?;
        }
        Ok(())
    }

    /// The sums of all slices.
    fn record_pauses(
        &mut self,
        file: &mut SidecarFile,
        now: u64,
        clock: &mut impl SidecarClock,
    ) -> Result<(), String> {
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
        let is_due = time.saturating_sub(self.last_system) >= SELDOM_NS;
        if self.system.replace(system) != Some(system) || is_due {
            self.last_system = time;
            file.add(time, Event::System(system))?;
        }
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
        match self.pressure.look(group, time) {
            Some(headroom) => file.add(time, Event::Pressure { headroom }),
            None => Ok(()),
        }
    }
}
