use std::collections::{BTreeMap, HashSet};

use super::*;
use crate::memtrace::{Encoder, Format, Reader};
use crate::model::{
    Allocation, Block, Code, EventKind, Frames, Limits, Locate, Location, LocationList, Mode,
    Source,
};

/// Frames of a program that is loaded somewhere else in each process.
struct Loaded {
    at: Code,
}

impl Locate for Loaded {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        let number = code - self.at;
        // Every fourth has no location.
        if !number.is_multiple_of(4) {
            let definition = format!("function_{number}");
            list.add(Location {
                file: b"a.ml",
                line: number as u32,
                start_char: 1,
                end_char: 2,
                definition: definition.as_bytes(),
            });
        }
    }
}

fn info(start_time: u64) -> TraceInfo {
    TraceInfo {
        sample_rate: 0.5,
        word_size: 64,
        executable: b"program".to_vec(),
        host: b"host".to_vec(),
        runtime_params: Vec::new(),
        pid: start_time,
        context: Vec::new(),
        start_time,
        domain: 0,
    }
}

/// A trace of some events from `start` on, `step` microseconds apart.
fn trace(start: u64, step: u64, events: u64) -> Vec<u8> {
    let mut loaded = Loaded { at: 0x1000 * (start + 1) };
    let mut encoder = Encoder::new(Vec::new(), Format::V2, &info(start)).unwrap();
    let mut ids = Vec::new();
    for number in 0..events {
        let time = start + number * step;
        let frames: Vec<Code> =
            (0..1 + number % 3).map(|depth| loaded.at + 4 + (number * depth) % 13).collect();
        match number % 5 {
            3 => encoder.domain(0).promote(time, ids[ids.len() - 1], &mut loaded).unwrap(),
            4 => encoder.domain(0).collect(time, ids.pop().unwrap(), &mut loaded).unwrap(),
            _ => {
                let block = Block { length: 3, samples: 1 + number % 3, source: Source::Minor };
                let frames = Frames::Whole(&frames);
                ids.push(encoder.domain(0).alloc(time, block, frames, &mut loaded).unwrap());
            }
        }
    }
    encoder.finish(&mut loaded).unwrap()
}

/// An event with the names of its frames in place of codes.
type Named = (u64, String, u64, Vec<String>);

fn named(event: &Event<'_>, table: &LocationTable, first_id: u64) -> Named {
    let id = first_id + event.kind.block_id().unwrap();
    let (kind, frames) = match event.kind {
        EventKind::Alloc(Allocation { samples, backtrace, .. }) => {
            assert!(backtrace.frames.ends_with(backtrace.new));
            let name = |&code: &Code| match table.resolve(code).next() {
                Some(location) => String::from_utf8_lossy(location.definition).into_owned(),
                None => format!("{code:#x}"),
            };
            (format!("alloc {samples}"), backtrace.frames.iter().map(name).collect())
        }
        EventKind::Promote(_) => ("promote".to_owned(), Vec::new()),
        EventKind::Collect(_) => ("collect".to_owned(), Vec::new()),
    };
    (event.time, kind, id, frames)
}

/// The number of events in each trace of the tests.
const EVENTS: u64 = 50;

fn extents(traces: &[Vec<u8>]) -> Vec<TraceExtent> {
    let start =
        |bytes: &Vec<u8>| Reader::from_slice(bytes, Mode::Strict).unwrap().info().start_time;
    traces
        .iter()
        .map(|bytes| TraceExtent { start_time: start(bytes), ids: EVENTS, continues: false })
        .collect()
}

/// Merges traces. Returns the events, and which traces ended when.
fn merged(traces: &[Vec<u8>], most_open: usize) -> (Vec<Named>, BTreeMap<usize, usize>, u64) {
    let opened = std::cell::Cell::new(0);
    let open = |trace: usize| {
        opened.set(opened.get() + 1);
        let bytes: &'static [u8] = traces[trace].clone().leak();
        Ok(crate::open(bytes, Mode::Strict, Limits::default())? as Box<dyn EventSource>)
    };
    let open: Box<OpenTrace<'_>> = Box::new(open);
    let mut merge = MergedTraces::bounded(info(0), &extents(traces), open, most_open).unwrap();
    let (mut events, mut ends) = (Vec::new(), BTreeMap::new());
    while let Some(item) = merge.next_item().unwrap() {
        match item {
            MergedItem::Event(event, table, _) => events.push(named(&event, table, 0)),
            MergedItem::End { trace, ids } => {
                assert_eq!(ids, trace as u64 * EVENTS..(trace as u64 + 1) * EVENTS);
                assert_eq!(ends.insert(trace, events.len()), None);
            }
        }
        assert!(merge.open_count <= most_open);
    }
    drop(merge);
    (events, ends, opened.get())
}

/// The same, from all events sorted.
fn sorted(traces: &[Vec<u8>]) -> Vec<Named> {
    let mut events = Vec::new();
    for (number, bytes) in traces.iter().enumerate() {
        let mut reader = Reader::from_slice(bytes, Mode::Strict).unwrap();
        while let Some((event, table)) = reader.next_located().unwrap() {
            events.push((event.time, number, named(&event, table, number as u64 * EVENTS)));
        }
    }
    events.sort_by_key(|&(time, number, _)| (time, number));
    events.into_iter().map(|(_, _, event)| event).collect()
}

#[test]
fn events_are_in_the_order_of_time_with_ids_and_names_of_their_traces() {
    // Overlapping, at the same time, one within another, one long after.
    let traces = [
        trace(100, 7, EVENTS),
        trace(100, 7, EVENTS),
        trace(150, 1, EVENTS),
        trace(9000, 3, EVENTS),
    ];
    let expected = sorted(&traces);
    let (events, ends, opened) = merged(&traces, 64);
    assert_eq!(events, expected);
    assert_eq!(opened, 4, "each trace is opened once");
    // The last one is not followed by anything. Those that end at the same time end after
    // the last event of that time.
    assert_eq!(ends.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((ends[&0], ends[&1]), (150, 150), "{ends:?}");
}

#[test]
fn a_bound_on_open_traces_changes_nothing() {
    let traces: Vec<Vec<u8>> = (0..9).map(|number| trace(100 + number, 5, EVENTS)).collect();
    let expected = sorted(&traces);
    for most_open in [1, 2, 5, 8] {
        let (events, ends, opened) = merged(&traces, most_open);
        assert_eq!(events, expected, "{most_open} open");
        assert_eq!(ends.len(), 8);
        assert!(opened > 9, "{opened} times opened");
    }
}

#[test]
fn equal_locations_have_one_code() {
    let traces = [trace(100, 7, EVENTS), trace(200, 7, EVENTS)];
    let open: Box<OpenTrace<'_>> = Box::new(|trace| {
        let bytes: &'static [u8] = traces[trace].clone().leak();
        Ok(crate::open(bytes, Mode::Strict, Limits::default())? as Box<dyn EventSource>)
    });
    let mut merge = MergedTraces::new(info(0), &extents(&traces), open).unwrap();
    let mut names = HashSet::new();
    let mut codes = HashSet::new();
    while let Some((event, table)) = merge.next_located().unwrap() {
        let EventKind::Alloc(allocation) = event.kind else { continue };
        for &code in allocation.backtrace.frames {
            let name: Vec<Vec<u8>> =
                table.resolve(code).map(|location| location.definition.to_vec()).collect();
            if !name.is_empty() {
                names.insert(name);
                codes.insert(code);
            }
        }
    }
    assert!(names.len() > 5);
    assert_eq!(codes.len(), names.len());
    assert_eq!(merge.locations().len(), names.len());
}

#[test]
fn what_cannot_be_merged_is_refused() {
    let (one, mut other) = (info(5), info(3));
    other.executable = b"another".to_vec();
    let merged = TraceInfo::merged([&one, &other]).unwrap().unwrap();
    assert_eq!(merged.start_time, 3);
    assert_eq!((&merged.executable[..], &merged.host[..]), (&b""[..], &b"host"[..]));
    other.sample_rate = 0.25;
    let merged = TraceInfo::merged([&one, &one, &other]).unwrap().unwrap();
    assert_eq!(merged.sample_rate, 0.25, "each event says its own");
    other = TraceInfo { word_size: 32, ..info(3) };
    assert_eq!(TraceInfo::merged([&one, &other]), Err(Mismatch::WordSize(0, 1)));
    assert_eq!(TraceInfo::merged([]), Ok(None));
    let large = TraceExtent { start_time: 0, ids: u64::MAX, continues: false };
    let refused = MergedTraces::new(info(0), &[large, large], Box::new(|_| unreachable!()));
    assert!(matches!(refused.map(drop), Err(MergeError::Ids { trace: 1 })));
}

#[test]
fn a_trace_that_changes_meanwhile_is_an_error() {
    let long = trace(100, 7, EVENTS);
    let extent = TraceExtent { start_time: 100, ids: 2, continues: false };
    let open = |_| {
        let bytes: &[u8] = long.clone().leak();
        Ok(crate::open(bytes, Mode::Strict, Limits::default())? as Box<dyn EventSource>)
    };
    let mut merge = MergedTraces::new(info(0), &[extent], Box::new(open)).unwrap();
    let error = loop {
        match merge.next_item() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("ids beyond the extent were accepted"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, MergeError::Changed { trace: 0 }), "{error}");
}
