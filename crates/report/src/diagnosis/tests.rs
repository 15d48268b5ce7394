//! The diagnosis of made evidence.

use super::*;

const MB: u64 = 1 << 20;
const START: u64 = 1_000_000_000_000;

fn holder(name: &str, bytes: u64) -> HolderSize {
    let name = name.to_owned();
    HolderSize { name, kind: HolderKind::Variable, bytes, ..HolderSize::default() }
}

/// Snapshots ten seconds apart; each has these holders.
fn snapshots(of_each: &[Vec<HolderSize>]) -> Evidence {
    let one = |(at, holders): (usize, &Vec<HolderSize>)| SnapshotEvidence {
        taken_us: START + at as u64 * 10_000_000,
        reachable_bytes: holders.iter().map(|holder| holder.bytes).sum(),
        outside_bytes: holders.iter().map(|holder| holder.outside_bytes).sum(),
        holders: holders.clone(),
        ..SnapshotEvidence::default()
    };
    Evidence {
        pid: Some(7),
        is_running: true,
        began_us: Some(START - 600_000_000),
        snapshots: of_each.iter().enumerate().map(one).collect(),
        ..Evidence::default()
    }
}

/// One holder of these sizes in MB beside one that is steady.
fn grown(sizes: &[u64]) -> Evidence {
    let both = |size: &u64| vec![holder("A.big", 100 * MB), holder("A.table", size * MB)];
    snapshots(&sizes.iter().map(both).collect::<Vec<_>>())
}

fn outcome(evidence: &Evidence) -> (Outcome, Vec<(FindingKind, Certainty)>) {
    let diagnosis = diagnose(evidence);
    let kinds = diagnosis.findings.iter().map(|finding| (finding.kind, finding.certainty));
    (diagnosis.verdict.outcome, kinds.collect())
}

#[test]
fn a_holder_that_grows_evenly_leaks() {
    let mut evidence = grown(&[1, 11, 21, 31]);
    evidence.limit = Some(MemoryLimit { bytes: 1131 * MB, whose: "control group" });
    let diagnosis = diagnose(&evidence);
    assert_eq!(diagnosis.verdict.outcome, Outcome::Found);
    let leak = &diagnosis.findings[0];
    assert_eq!((leak.kind, leak.certainty), (FindingKind::Leak, Certainty::Sure));
    assert_eq!(leak.bytes_per_second, Some(MB as f64));
    assert_eq!(leak.full_in_us, Some(1000e6));
    let holder = leak.holder.as_ref().unwrap();
    assert_eq!((holder.name.as_str(), holder.share_of_growth), ("A.table", 1.0));
    assert!(leak.sentence.starts_with("A.table leaks"), "{}", leak.sentence);
    assert_eq!(leak.since_us, Some(START));
}

#[test]
fn two_snapshots_are_a_suspicion_and_with_the_trace_more() {
    let mut evidence = grown(&[1, 11]);
    let expected = vec![(FindingKind::Leak, Certainty::Possible)];
    assert_eq!(outcome(&evidence), (Outcome::CannotTell, expected));
    let command = diagnose(&evidence).verdict.command;
    assert_eq!(command.as_deref(), Some("heaptap doctor 7 --for 60s"));
    let births = vec![9, 20, 21, 19, 20, 18, 22, 30];
    evidence.gains = vec![HolderGain { holder: "A.table".to_owned(), sites: Vec::new(), births }];
    let expected = vec![(FindingKind::Leak, Certainty::Likely)];
    assert_eq!(outcome(&evidence), (Outcome::Found, expected));
}

#[test]
fn a_cache_that_fills_is_worth_knowing_and_no_leak() {
    let expected = vec![(FindingKind::Filling, Certainty::Likely)];
    assert_eq!(outcome(&grown(&[1, 41, 61, 71, 76])), (Outcome::NothingWrong, expected));
}

#[test]
fn what_does_not_grow_to_the_end_is_nothing() {
    for sizes in [&[5, 25, 5, 25, 6][..], &[50, 40, 30, 20], &[1, 21, 41, 41, 41], &[7; 5]] {
        assert_eq!(outcome(&grown(sizes)), (Outcome::NothingWrong, Vec::new()), "{sizes:?}");
    }
}

#[test]
fn the_start_of_a_young_process_does_not_count() {
    let mut evidence = grown(&[1, 90, 90, 90, 90]);
    evidence.began_us = Some(START);
    assert_eq!(outcome(&evidence), (Outcome::NothingWrong, Vec::new()));
}

#[test]
fn too_little_is_said_to_be_too_little() {
    assert_eq!(outcome(&Evidence::default()), (Outcome::CannotTell, Vec::new()));
    assert_eq!(outcome(&grown(&[5])), (Outcome::CannotTell, Vec::new()));
    assert_eq!(outcome(&grown(&[5, 5])), (Outcome::CannotTell, Vec::new()));
}

#[test]
fn a_program_that_ended_while_it_loaded_is_not_suspected_for_a_trifle() {
    let loaded = |bytes: u64, other: u64| {
        let mut evidence = snapshots(&[
            vec![holder("A.modules", 10 * MB), holder("A.table", 0)],
            vec![holder("A.modules", 50 * MB), holder("A.table", other / 2)],
            vec![holder("A.modules", bytes), holder("A.table", other)],
        ]);
        (evidence.began_us, evidence.is_running, evidence.has_ended) = (Some(START), false, true);
        for (at, snapshot) in evidence.snapshots.iter_mut().enumerate() {
            snapshot.taken_us = START + 3_000_000 * at as u64;
        }
        evidence
    };
    // What is loaded grows less and less; of the table nothing is said but if it is much.
    let trifle = loaded(51 * MB, MB);
    assert_eq!(outcome(&trifle), (Outcome::CannotTell, Vec::new()));
    let sentence = diagnose(&trifle).verdict.sentence;
    assert!(sentence.contains("the program ended after 6.0 s, too soon"), "{sentence}");
    let (told, found) = outcome(&loaded(51 * MB, 20 * MB));
    assert_eq!(
        (told, found),
        (Outcome::CannotTell, vec![(FindingKind::Leak, Certainty::Possible)])
    );
}

#[test]
fn garbage_waits_for_the_collector() {
    let mut evidence = grown(&[7; 4]);
    evidence.snapshots.last_mut().unwrap().garbage_bytes = 400 * MB;
    let expected = vec![(FindingKind::Garbage, Certainty::Sure)];
    assert_eq!(outcome(&evidence), (Outcome::NothingWrong, expected));
}

fn timeline(point: impl Fn(u64) -> TimelinePoint) -> Timeline {
    let at = |second: u64| TimelinePoint { at_us: START + second * 1_000_000, ..point(second) };
    Timeline { points: (0..40).map(at).collect(), collector: None }
}

#[test]
fn memory_outside_the_heap_that_no_value_holds_is_found() {
    let mut evidence = grown(&[7; 4]);
    evidence.timeline = timeline(|second| TimelinePoint {
        heap_bytes: Some(100 * MB),
        rss_bytes: Some((150 + 2 * second) * MB),
        ..TimelinePoint::default()
    });
    let expected = vec![(FindingKind::OutsideHeap, Certainty::Likely)];
    assert_eq!(outcome(&evidence), (Outcome::Found, expected));
    // Bigarrays that a variable holds are its leak.
    for (at, snapshot) in evidence.snapshots.iter_mut().enumerate() {
        let holder = snapshot.holders.last_mut().unwrap();
        holder.outside_bytes = at as u64 * 20 * MB;
        snapshot.outside_bytes = holder.outside_bytes;
    }
    let (outcome, found) = outcome(&evidence);
    assert_eq!((outcome, found), (Outcome::Found, vec![(FindingKind::Leak, Certainty::Sure)]));
    assert!(diagnose(&evidence).findings[0].sentence.contains("outside the heap"));
}

#[test]
fn free_memory_and_a_busy_collector_are_found() {
    let mut evidence = grown(&[7; 4]);
    evidence.timeline = timeline(|_| TimelinePoint {
        heap_bytes: Some(1000 * MB),
        used_bytes: Some(120 * MB),
        ..TimelinePoint::default()
    });
    evidence.timeline.collector = Some(CollectorShare {
        minor: 0.4,
        major: 0.2,
        watched_us: 40_000_000,
        ..CollectorShare::default()
    });
    let (outcome, found) = outcome(&evidence);
    let kinds: Vec<FindingKind> = found.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(outcome, Outcome::Found);
    assert_eq!(kinds, [FindingKind::BusyCollector, FindingKind::FreeMemory]);
}

#[test]
fn threads_and_fibers_that_pile_up_are_found() {
    let mut evidence = grown(&[7; 4]);
    let threads = |second| TimelinePoint { threads: Some(3 + second), ..TimelinePoint::default() };
    evidence.timeline = timeline(threads);
    for (at, snapshot) in evidence.snapshots.iter_mut().enumerate() {
        snapshot.suspended_fibers = Some(1000 * at as u64);
    }
    let kinds = [FindingKind::Threads, FindingKind::Fibers].map(|kind| (kind, Certainty::Likely));
    assert_eq!(outcome(&evidence), (Outcome::Found, kinds.to_vec()));
}

/// Nothing that a file says makes it panic.
#[test]
fn times_and_sizes_may_be_anything() {
    let mut evidence = grown(&[1, 11, 21, 31]);
    for (at, snapshot) in evidence.snapshots.iter_mut().enumerate() {
        snapshot.taken_us = if at % 2 == 0 { u64::MAX } else { 0 };
        snapshot.garbage_bytes = u64::MAX;
        snapshot.allocated_bytes = Some(u64::MAX);
        snapshot.holders.iter_mut().for_each(|holder| holder.outside_bytes = u64::MAX);
    }
    evidence.trace = Some(TraceEvidence {
        file: String::new(),
        began_us: u64::MAX,
        duration_us: u64::MAX,
        rate: f64::NAN,
        verdict: String::new(),
        is_conclusive: true,
        rows: Vec::new(),
    });
    let _ = diagnose(&evidence);
}

#[test]
fn copies_of_strings_are_worth_knowing() {
    let mut evidence = grown(&[10, 10, 10]);
    let copies = |saved_bytes| {
        let holder = "A.names".to_owned();
        Some(DuplicateStrings { holder, strings: 12, copies: 4000, saved_bytes })
    };
    evidence.snapshots.last_mut().unwrap().duplicates = copies(32 * MB);
    let expected = vec![(FindingKind::DuplicateStrings, Certainty::Sure)];
    assert_eq!(outcome(&evidence), (Outcome::NothingWrong, expected));
    let sentence = diagnose(&evidence).findings[0].sentence.clone();
    assert!(sentence.contains("4000 copies of 12 strings, and A.names has most"), "{sentence}");
    evidence.snapshots.last_mut().unwrap().duplicates = copies(8 * MB);
    assert_eq!(outcome(&evidence).1, []);
}

#[test]
fn tables_that_are_mostly_empty_are_worth_knowing() {
    let mut evidence = grown(&[10, 10, 10]);
    let empty = |saved_bytes| {
        let holder = "A.table".to_owned();
        Some(EmptySlots { holder, slots: 4 << 20, filled: 1000, saved_bytes })
    };
    evidence.snapshots.last_mut().unwrap().empty_slots = empty(32 * MB);
    let expected = vec![(FindingKind::EmptyTables, Certainty::Sure)];
    assert_eq!(outcome(&evidence), (Outcome::NothingWrong, expected));
    let sentence = diagnose(&evidence).findings[0].sentence.clone();
    assert!(sentence.contains("A.table has most, with 1000 of 4194304 slots filled"), "{sentence}");
    // Less than a tenth of the heap.
    evidence.snapshots.last_mut().unwrap().empty_slots = empty(8 * MB);
    assert_eq!(outcome(&evidence).1, []);
}
