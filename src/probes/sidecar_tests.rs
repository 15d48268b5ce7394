use std::path::Path;
use std::sync::atomic::Ordering;

use heaptap_probes::{Decoder, Heap, History, ProbeKind, Sample, SliceKind};

use super::*;
use crate::sys::clock::TickSource;

/// A tick is a microsecond; the session begins at the first second of the epoch.
struct TestClock;

const START_US: u64 = 1_000_000;

impl SidecarClock for TestClock {
    fn time_ns(&mut self, ticks: u64) -> u64 {
        (START_US + ticks) * 1_000
    }

    fn length_ns(&self, ticks: u64) -> u64 {
        ticks * 1_000
    }
}

pub(super) struct Place {
    pub(super) folder: tempfile::TempDir,
}

impl Place {
    pub(super) fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        for name in ["first", "second"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        Place { folder }
    }

    /// Ticks a sidecar, or ends it.
    pub(super) fn tick(&self, sidecar: &mut Sidecar, name: &str, begun_at: u64, now: u64) {
        self.try_tick(sidecar, name, begun_at, now).unwrap();
    }

    pub(super) fn try_tick(
        &self,
        sidecar: &mut Sidecar,
        name: &str,
        begun_at: u64,
        now: u64,
    ) -> Result<(), String> {
        let file = self.folder.path().join(name);
        let trace =
            TraceAt { file: file.as_os_str(), start_us: START_US + begun_at, now, observes: true };
        sidecar.tick(trace, &mut TestClock)
    }

    pub(super) fn end(&self, sidecar: &mut Sidecar, name: &str, begun_at: u64, now: u64) {
        let file = self.folder.path().join(name);
        let trace =
            TraceAt { file: file.as_os_str(), start_us: START_US + begun_at, now, observes: false };
        sidecar.end(trace, &mut TestClock).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> History {
        read(&self.folder.path().join(format!("{name}.probes")))
    }
}

pub(super) fn read(path: &Path) -> History {
    let (mut decoder, mut history) = (Decoder::default(), History::default());
    decoder.feed(&std::fs::read(path).unwrap());
    while let Some(timed) = decoder.next_event().unwrap() {
        history.add(timed);
    }
    history
}

/// The state of a probe, as of the start of the file, or of its end.
pub(super) fn state(history: &History, name: &str, at: u64) -> Option<Sample> {
    let probe = history.probes().find(|probe| probe.name == name)?;
    probe.series.at(at).cloned()
}

pub(super) fn owner() -> SidecarOwner {
    SidecarOwner { host: "h".into(), program: "p".into(), pid: 7 }
}

pub(super) fn open(
    registry: &ProbeRegistry,
    kind: ProbeKind,
    name: &str,
) -> &'static crate::probes::Cell {
    registry.open(kind, name.as_bytes(), TickSource::detect()).unwrap()
}

#[test]
fn another_file_begins_with_what_was_recorded_last() {
    let place = Place::new();
    let (registry, line) = (Arc::new(ProbeRegistry::default()), Arc::new(TimeLine::new()));
    let heap = Heap { minor_words: Some(50), ..Heap::default() };
    let read_heap: ReadHeap = Arc::new(move || heap);
    let mut sidecar = Sidecar::new(owner, &registry, &line, true, Some(read_heap), 4 << 20);
    let count = open(&registry, ProbeKind::Count, "count");
    open(&registry, ProbeKind::Value, "value").value.set(-5.0);
    open(&registry, ProbeKind::Value, "value").value.set(2.0);
    open(&registry, ProbeKind::Text, "text").text.set("ready".into());
    let tag = open(&registry, ProbeKind::Tag, "tag");
    (0..3).for_each(|_| tag.mark());
    sidecar.count_dead(u64::from(tag.number));
    let timer = open(&registry, ProbeKind::Timer, "timer");
    timer.start_timer();
    assert!(timer.stop_timer());
    open(&registry, ProbeKind::Value, "never set");
    count.count.store(10, Ordering::Relaxed);
    line.slice(SliceKind::Minor, 0, 5, 9);
    (0..7).for_each(|at| registry.note(at, Note::Log("line".into())));
    place.tick(&mut sidecar, "first", 0, 100_000);
    count.count.store(11, Ordering::Relaxed);
    place.end(&mut sidecar, "first", 0, 150_000);
    // Between the end of one file and the beginning of the other.
    count.count.store(13, Ordering::Relaxed);
    place.tick(&mut sidecar, "second", 150_010, 150_030);
    count.count.store(20, Ordering::Relaxed);
    place.end(&mut sidecar, "second", 150_010, 300_000);

    let (first, second) = (place.read("first"), place.read("second"));
    assert!(first.ended && second.ended);
    let start = (START_US + 150_010) * 1_000;
    let at_start = |name: &str| state(&second, name, start);
    assert_eq!(at_start("count"), Some(Sample::Count(11)), "the two do not add up");
    let value = Sample::Value { last: 2.0, least: 2.0, greatest: 2.0 };
    assert_eq!(at_start("value"), Some(value), "an extreme of the first file");
    assert_eq!(at_start("text"), Some(Sample::Text("ready".into())));
    assert_eq!(at_start("timer"), state(&first, "timer", u64::MAX));
    assert!(matches!(at_start("tag"), Some(Sample::Tag { live: 2, marked: 3, .. })));
    assert_eq!(at_start("never set"), None);
    assert_eq!(state(&second, "count", u64::MAX), Some(Sample::Count(20)));
    assert_eq!(second.heap.at(start), first.heap.last());
    assert_eq!(second.system.at(start), first.system.last());
    let pauses = second.pauses[0].at(start).unwrap();
    assert_eq!((pauses.count, pauses.longest_ns), (1, 0));
    assert!(second.log.is_empty() && second.slices.is_empty(), "said twice");
    assert_eq!((first.lost_logs, second.lost_logs), (3, 0));
}

#[test]
fn another_file_of_the_same_name_has_a_sidecar_of_its_own() {
    let place = Place::new();
    let (registry, line) = (Arc::new(ProbeRegistry::default()), Arc::new(TimeLine::new()));
    let mut sidecar = Sidecar::new(owner, &registry, &line, false, None, 4 << 20);
    open(&registry, ProbeKind::Value, "value").value.set(2.0);
    place.tick(&mut sidecar, "first", 0, 100_000);
    let moved = place.folder.path().join("moved");
    std::fs::rename(place.folder.path().join("first.probes"), &moved).unwrap();
    place.tick(&mut sidecar, "first", 100_010, 100_030);
    assert!(read(&moved).ended);
    let second = place.read("first");
    assert_eq!(second.start.as_ref().unwrap().trace_start, START_US + 100_010);
    assert!(state(&second, "value", u64::MAX).is_some());
}

#[test]
fn a_forked_child_begins_with_what_its_parent_had() {
    let place = Place::new();
    let (registry, line) = (Arc::new(ProbeRegistry::default()), Arc::new(TimeLine::new()));
    let mut parent = Sidecar::new(owner, &registry, &line, false, None, 4 << 20);
    open(&registry, ProbeKind::Value, "value").value.set(2.0);
    open(&registry, ProbeKind::Text, "text").text.set("ready".into());
    open(&registry, ProbeKind::Tag, "tag").mark();
    open(&registry, ProbeKind::Count, "count").mark();
    place.tick(&mut parent, "first", 0, 100_000);
    let mut child =
        Sidecar::new(owner, &registry, &Arc::new(TimeLine::new()), false, None, 4 << 20);
    place.end(&mut child, "second", 200_000, 200_050);
    let second = place.read("second");
    let at_start = |name: &str| state(&second, name, (START_US + 200_000) * 1_000);
    assert_eq!(at_start("value"), Some(Sample::Value { last: 2.0, least: 2.0, greatest: 2.0 }));
    assert_eq!(at_start("text"), Some(Sample::Text("ready".into())));
    assert_eq!(at_start("count"), Some(Sample::Count(1)));
    assert_eq!(at_start("tag"), None, "the child does not track what its parent marked");
    let tag = state(&second, "tag", u64::MAX);
    assert!(matches!(tag, Some(Sample::Tag { live: 0, marked: 0, .. })));
}

#[test]
fn functions_are_asked_while_the_session_lasts() {
    let place = Place::new();
    let (registry, line) = (Arc::new(ProbeRegistry::default()), Arc::new(TimeLine::new()));
    let mut sidecar = Sidecar::new(owner, &registry, &line, false, None, 4 << 20);
    let calls = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    open(&registry, ProbeKind::Value, "value")
        .observer
        .replace(Some(Box::new(move || f64::from(counted.fetch_add(1, Ordering::Relaxed) + 1))));
    place.tick(&mut sidecar, "first", 0, 100_000);
    place.tick(&mut sidecar, "first", 0, 200_000);
    place.end(&mut sidecar, "first", 0, 300_000);
    assert_eq!(calls.load(Ordering::Relaxed), 2, "asked at the end");
    let value = Sample::Value { last: 2.0, least: 2.0, greatest: 2.0 };
    assert_eq!(state(&place.read("first"), "value", u64::MAX), Some(value));
}
