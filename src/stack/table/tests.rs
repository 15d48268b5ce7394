//! Tables against what was added to them.

use super::super::formats::neutral::NO_PLACE;
use super::super::formats::{Caller, FrameRecord};
use super::*;
use heaptap_trace::Location;
use std::ptr::null;

fn frames(addresses: impl Iterator<Item = usize>) -> Vec<NeutralFrame> {
    addresses
        .map(|return_address| NeutralFrame { return_address, size: 16, place: NO_PLACE })
        .collect()
}

fn add(tables: &FrameTables, frames: &[NeutralFrame]) -> Result<(), TableDefect> {
    // SAFETY: the slice is as long as said; the tests keep it alive.
    unsafe { tables.add_neutral(frames.as_ptr(), frames.len(), null(), 0) }
}

#[test]
fn reserved_room_changes_nothing_but_the_room() {
    let tables = FrameTables::new();
    let few = frames((1..50).map(|n| 0x1000 + n * 16));
    // SAFETY: the frames outlive the tables.
    unsafe { tables.add_neutral(few.as_ptr(), few.len(), null(), 0) }.expect("sound");
    tables.reserve(10_000);
    assert!(tables.slots().room() >= 10_049);
    let more = frames((1..10_000).map(|n| 0x10_0000 + n * 16));
    let before = tables.slots() as *const Slots;
    // SAFETY: the frames outlive the tables.
    unsafe { tables.add_neutral(more.as_ptr(), more.len(), null(), 0) }.expect("sound");
    assert!(std::ptr::eq(before, tables.slots()), "it grew again");
    for frame in few.iter().chain(&more) {
        assert!(tables.find(frame.return_address as u64).is_some());
    }
}

#[test]
fn a_refused_table_leaves_no_trace() {
    let tables = FrameTables::new();
    let twice = frames([0x5000, 0x6000, 0x5000].into_iter());
    assert_eq!(add(&tables, &twice), Err(TableDefect::Duplicate(0x5000)));
    assert_eq!(tables.step(0x6000), 0);
    assert_eq!(tables.generation(), 0);
    add(&tables, &twice[..2]).expect("sound");
    assert_eq!(tables.step(0x6000), 16);
    let overlap = frames([0x7000, 0x6000].into_iter());
    assert_eq!(add(&tables, &overlap), Err(TableDefect::Duplicate(0x6000)));
    assert_eq!(tables.step(0x7000), 0);
}

#[test]
fn growth_keeps_everything() {
    let tables = FrameTables::new();
    let all: Vec<_> =
        (0..40_usize).map(|t| frames((0..500).map(move |i| 0x10_000 + 500 * t + i))).collect();
    for table in &all {
        add(&tables, table).expect("sound");
    }
    assert!(all.iter().flatten().all(|f| tables.step(f.return_address as u64) == 16));
    assert_eq!(tables.step(0x10_000 - 1), 0);
    assert_eq!(tables.step(0x10_000 + 20_000), 0);
    let added = tables.added.lock().expect("not poisoned");
    let last = added.arrays.last().map_or(0, |slots| slots.room());
    let all_rooms: usize = added.arrays.iter().map(|slots| slots.room()).sum();
    assert!(added.arrays.len() > 1);
    assert!(all_rooms < 2 * last);
}

#[test]
fn readers_see_whole_entries_while_tables_are_added() {
    let tables = FrameTables::new();
    let all: Vec<_> =
        (0..60_usize).map(|t| frames((0..200).map(move |i| 0x10_000 + 200 * t + i))).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while tables.generation() < all.len() as u64 {
                    let known = tables.generation() as usize;
                    for (index, table) in all.iter().enumerate() {
                        for frame in table {
                            let step = tables.step(frame.return_address as u64);
                            assert!(step == 16 || (step == 0 && index >= known));
                        }
                    }
                }
            });
        }
        for table in &all {
            add(&tables, table).expect("sound");
        }
    });
}

#[test]
fn sources_come_from_the_right_table() {
    let tables = FrameTables::new();
    let place = |line, inlined_into| NeutralPlace {
        file: null(),
        function: null(),
        line,
        start_char: 0,
        end_char: 0,
        inlined_into,
    };
    let places = [place(7, NO_PLACE), place(8, 0)];
    let neutral = [NeutralFrame { return_address: 0x6000, size: 8, place: 1 }];
    // SAFETY: both arrays have these lengths and outlive the tables.
    unsafe { tables.add_neutral(neutral.as_ptr(), 1, places.as_ptr(), 2) }.expect("sound");
    tables.add(Arc::new(Own { record: 0x1234 })).expect("sound");

    let located = |address| {
        let mut list = LocationList::default();
        let source = tables.source(address)?;
        let explained = source.locate(Some(1), &ProcessMemory::new(), &mut list);
        let lines: Vec<_> = list.iter().map(|location| location.line).collect();
        Some((source.part_key(1), explained, lines))
    };
    assert_eq!(located(0x6000), Some((None, Explained::Fully, vec![7, 8])));
    assert_eq!(located(0x5000), Some((Some(0x1235), Explained::Unreadable, vec![0x1234])));
    assert_eq!(located(0x7000), None);
}

/// A format with one frame, whose place has its record as line.
struct Own {
    record: u64,
}

impl FrameTable for Own {
    fn frames(&self) -> Result<Vec<FrameRecord>, TableDefect> {
        let caller = Caller::Distance(16);
        Ok(vec![FrameRecord { return_address: 0x5000, caller, record: self.record }])
    }
}

impl FrameRecords for Own {
    unsafe fn part_key(&self, record: u64, part: usize) -> Option<u64> {
        Some(record + part as u64)
    }

    unsafe fn locate(
        &self,
        record: u64,
        _: Option<usize>,
        _: &ProcessMemory,
        list: &mut LocationList,
    ) -> Explained {
        let line = record as u32;
        list.add(Location { file: b"", line, start_char: 0, end_char: 0, definition: b"" });
        Explained::Unreadable
    }
}
