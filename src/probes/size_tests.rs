//! How large a sidecar becomes, and what happens to it meanwhile.

use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use heaptap_probes::{Heap, ProbeKind, Sample, SliceKind};

use super::tests::{Place, open, owner, read, state};
use super::*;

const SECOND: u64 = 1_000_000;
const TICK: u64 = SECOND / 10;
const MIB: u64 = 1 << 20;

/// A program whose every figure changes at each tick.
struct Program {
    place: Place,
    registry: Arc<ProbeRegistry>,
    line: Arc<TimeLine>,
    sidecar: Sidecar,
    ticks: Arc<AtomicU64>,
}

impl Program {
    fn new(most_bytes: u64) -> Program {
        let (registry, line) = (Arc::new(ProbeRegistry::default()), Arc::new(TimeLine::new()));
        let ticks = Arc::new(AtomicU64::new(0));
        let read = Arc::clone(&ticks);
        let read_heap: ReadHeap = Arc::new(move || {
            let tick = read.load(Ordering::Relaxed);
            Heap { minor_collections: Some(tick), heap_words: Some(tick % 99), ..Heap::default() }
        });
        let sidecar = Sidecar::new(owner, &registry, &line, true, Some(read_heap), most_bytes);
        Program { place: Place::new(), registry, line, sidecar, ticks }
    }

    /// Runs for as many ticks, with so many collections in each.
    fn run(&mut self, ticks: u64, collections: u64) -> Result<(), String> {
        let (depth, count) =
            (self.probe(ProbeKind::Value, "depth"), self.probe(ProbeKind::Count, "count"));
        for _ in 0..ticks {
            let now = self.ticks.fetch_add(1, Ordering::Relaxed) * TICK + TICK;
            (0..collections).for_each(|at| self.line.slice(SliceKind::Minor, 0, now, now + at));
            depth.value.set((now % 977) as f64);
            count.mark();
            self.place.try_tick(&mut self.sidecar, "first", 0, now)?;
        }
        Ok(())
    }

    fn probe(&self, kind: ProbeKind, name: &str) -> &'static crate::probes::Cell {
        open(&self.registry, kind, name)
    }

    fn end(&mut self) {
        let now = self.ticks.load(Ordering::Relaxed) * TICK + 1;
        self.place.end(&mut self.sidecar, "first", 0, now);
    }

    fn path(&self) -> std::path::PathBuf {
        self.place.folder.path().join("first.probes")
    }

    fn bytes(&self) -> u64 {
        fs::metadata(self.path()).unwrap().len()
    }
}

/// An hour and more: 39,600 ticks, each of which took 300 bytes.
#[test]
fn a_sidecar_grows_far_slower_than_time() {
    let mut program = Program::new(16 * MIB);
    let mut most = 0;
    for _ in 0..66 {
        program.run(600, 3).unwrap();
        most = most.max(program.bytes());
    }
    program.end();
    assert!(most < 2 * MIB, "{most} bytes");
    let history = program.place.read("first");
    let ticks = 66 * 600;
    assert_eq!(history.pauses[0].last().unwrap().count, 3 * ticks);
    assert_eq!(history.heap.last().unwrap().minor_collections, Some(ticks));
    assert_eq!(state(&history, "count", u64::MAX), Some(Sample::Count(ticks)));
    assert_eq!(history.heap.points.iter().filter_map(|(_, heap)| heap.heap_words).max(), Some(98));
    // All that is not there one by one is counted.
    assert_eq!(history.slices.len() as u64 + history.lost_slices, 3 * ticks);
    // The last minute is there tick by tick.
    let last = history.span.unwrap().1;
    let recent = history.heap.points.iter().filter(|(time, _)| *time + 60_000 * SECOND >= last);
    assert!(recent.count() >= 600);
    let names: Vec<_> = fs::read_dir(program.place.folder.path()).unwrap().collect();
    assert_eq!(names.len(), 3, "two traces and a sidecar, and nothing else: {names:?}");
}

/// Thousands of collections in a second: with a small minor heap.
#[test]
fn a_tick_takes_few_bytes_however_often_the_program_is_collected() {
    let mut program = Program::new(16 * MIB);
    program.run(1, 4).unwrap();
    let begin = program.bytes();
    for _ in 0..20 {
        // More than the ring holds at once is only in the totals, with or without us.
        program.run(1, 2_000).unwrap();
    }
    program.end();
    let bytes = (program.bytes() - begin) / 20;
    assert!(bytes < 600, "{bytes} bytes for a tick");
    let history = program.place.read("first");
    let pauses = history.pauses[0].last().unwrap();
    assert_eq!((pauses.count, pauses.total_ns), (40_004, (20 * 1_999_000 + 6) * 1_000));
    assert_eq!(history.pauses[0].points.iter().map(|(_, p)| p.longest_ns).max(), Some(1_999_000));
    assert_eq!(history.slices.len() as u64 + history.lost_slices, 40_004);
}

#[test]
fn a_program_that_does_nothing_takes_next_to_nothing() {
    let (registry, line) = (Arc::new(ProbeRegistry::default()), Arc::new(TimeLine::new()));
    let mut sidecar = Sidecar::new(owner, &registry, &line, true, None, 16 * MIB);
    let place = Place::new();
    // Half an hour, and what the system says is about this process, which does change a little.
    (1..18_000).for_each(|tick| place.tick(&mut sidecar, "first", 0, tick * TICK));
    let bytes = fs::metadata(place.folder.path().join("first.probes")).unwrap().len();
    assert!(bytes < 300_000, "{bytes} bytes");
}

/// The log has a bound of its own: lines go from its beginning, and are counted.
#[test]
fn a_flood_of_lines_keeps_the_last_ones() {
    let mut program = Program::new(4 * MIB);
    let line = "x".repeat(1_000);
    let mut most = 0;
    for at in 0..8_000_u64 {
        program.registry.note(at * TICK, Note::Log(format!("{at:05} {line}")));
        program.run(1, 0).unwrap();
        most = most.max(program.bytes());
    }
    program.end();
    assert!(most <= 4 * MIB, "{most} bytes");
    let history = program.place.read("first");
    let kept = history.log.len() as u64;
    assert_eq!(kept + history.lost_logs, 8_000);
    assert!(kept * 1_018 >= MIB, "{kept} lines");
    assert!(history.log.last().unwrap().1.starts_with("07999 "));
    let first = 8_000 - kept;
    assert!(history.log[0].1.starts_with(&format!("{first:05} ")), "lines are missing");
}

/// What takes the place of the file is as readable as it was, and is where it was.
#[test]
fn the_file_keeps_its_mode_and_the_name_that_it_has() {
    let mut program = Program::new(4 * MIB);
    program.run(1, 1).unwrap();
    let moved = program.place.folder.path().join("moved.probes");
    fs::rename(program.path(), &moved).unwrap();
    fs::set_permissions(&moved, fs::Permissions::from_mode(0o644)).unwrap();
    // Open, so that no other file gets its number.
    let held = fs::File::open(&moved).unwrap();
    program.run(700, 1).unwrap();
    let after = fs::metadata(&moved).unwrap();
    assert_ne!(after.ino(), held.metadata().unwrap().ino(), "it was not thinned");
    assert_eq!(after.permissions().mode() & 0o777, 0o644);
    assert!(!program.path().exists());
    program.end();
    assert!(read(&moved).ended);
    // Whoever still has the old one is told.
    let old = read(Path::new(&format!("/proc/self/fd/{}", held.as_raw_fd())));
    assert!(old.replaced && !old.ended);
}

/// A file that was removed cannot be replaced: it gets fewer rows, then none, and says so once.
#[test]
fn a_file_that_cannot_be_replaced_ends_at_its_limit() {
    let mut program = Program::new(MIB);
    program.run(1, 1).unwrap();
    let held = fs::File::open(program.path()).unwrap();
    fs::remove_file(program.path()).unwrap();
    let mut messages = Vec::new();
    let line = "x".repeat(1_000);
    for at in 0..40_000_u64 {
        if at % 40 == 0 {
            program.registry.note(at * TICK, Note::Log(line.clone()));
        }
        messages.extend(program.run(1, 1).err());
    }
    let [message] = &messages[..] else { panic!("{messages:?}") };
    assert!(message.contains("first.probes has 1 MiB, its limit"), "{message}");
    assert!(message.contains("not found under its name any more"), "{message}");
    assert!(message.contains(heaptap_settings::PROBES_LIMIT.name), "{message}");
    program.end();
    let size = held.metadata().unwrap().len();
    assert!(size < MIB + 8_192, "{size} bytes");
    let history = read(Path::new(&format!("/proc/self/fd/{}", held.as_raw_fd())));
    // Totals are exact nevertheless.
    assert_eq!(state(&history, "count", u64::MAX), Some(Sample::Count(40_001)));
    assert_eq!(history.pauses[0].last().unwrap().count, 40_001);
    assert!(history.ended && history.lost_logs > 0);
}

/// `: > first.probes`: it begins again, with what was before.
#[test]
fn a_sidecar_that_was_truncated_begins_again() {
    let mut program = Program::new(4 * MIB);
    program.run(20, 1).unwrap();
    OpenOptions::new().write(true).open(program.path()).unwrap().set_len(0).unwrap();
    program.run(20, 1).unwrap();
    program.end();
    let history = program.place.read("first");
    let start = history.start.as_ref().unwrap().trace_start * 1_000;
    assert_eq!(history.pauses[0].at(start).unwrap().count, 20, "what was before");
    assert_eq!(history.pauses[0].last().unwrap().count, 40);
    assert_eq!(state(&history, "count", u64::MAX), Some(Sample::Count(40)));
    assert!(history.ended);
}
