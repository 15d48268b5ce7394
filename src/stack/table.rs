//! Return address → frame, over all tables the host has added.
//!
//! Adding may happen on any thread at any time; adders take turns by a mutex
//! that no reader takes. Readers follow one atomic pointer to an array that is
//! only ever added to ([`Slots`]). An array without room is replaced by one
//! twice as large; the old one stays until the tables are dropped, since a
//! reader may still be in it, and as sizes double all old ones together are no
//! larger than the newest. A table is added whole or not at all.
//!
//! A runtime that keeps an index of its own tables lends it instead: then frames
//! are read where they are, and entered when they are first met ([`LazyFrames`]), so that
//! a program with a hundred thousand of them starts as fast as one with few.

#![allow(unsafe_code, reason = "follows the pointer to the current array")]

use core::fmt;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::formats::neutral::{self, NeutralFrame, Place, Places};
use super::formats::{CROSS_OCAML4, CROSS_OCAML5_CALLBACK, CROSS_OCAML5_FIBER, Entry, Step, ocaml};
use super::lazy_frames::LazyFrames;
use super::slots::{Slots, spread};

/// Why a table was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableDefect {
    /// The table, or its places, is NULL or misaligned.
    Address(u64),
    /// No table has so many frames.
    Count(u64),
    /// No code can lie at this address.
    ReturnAddress(u64),
    /// Neither a boundary nor a positive multiple of 8.
    FrameSize { return_address: u64, size: u32 },
    /// The return address is twice in the table, or in an earlier one.
    Duplicate(u64),
    /// An index beyond the places.
    Place(u32),
    /// The place is inlined into itself, or too deeply.
    InliningLoop(u32),
}

impl fmt::Display for TableDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Address(address) => write!(f, "a table at {address:#x}, NULL or misaligned"),
            Self::Count(count) => write!(f, "a table of {count} frames, more than can be"),
            Self::ReturnAddress(address) => write!(f, "a return address {address:#x}"),
            Self::FrameSize { return_address, size } => {
                write!(f, "a frame of {size} bytes, not a multiple of 8, at {return_address:#x}")
            }
            Self::Duplicate(address) => write!(f, "the return address {address:#x} twice"),
            Self::Place(index) => write!(f, "place {index}, beyond the table's places"),
            Self::InliningLoop(index) => write!(f, "place {index}, inlined without end"),
        }
    }
}

/// The line of OCaml runtimes that a table is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OcamlVersion {
    Four,
    Five,
}

/// What the host's records say of a return address.
#[derive(Debug)]
pub(crate) enum Source {
    /// Neutral: outermost function first; empty if the table has no place.
    Places(Vec<Place>),
    /// OCaml: where its debug info lies, if it has some.
    Ocaml { version: OcamlVersion, debug_info: Option<u64> },
}

/// Whose records lie in a range of addresses.
struct Origin {
    /// Of the records, both inclusive.
    first: u64,
    last: u64,
    kind: OriginKind,
}

#[derive(Clone, Copy)]
enum OriginKind {
    Neutral(Places),
    Ocaml(OcamlVersion),
}

/// What only adders and the writer thread look at.
struct Ledger {
    /// Every array there ever was; the last is the current one. Boxed, since
    /// readers hold pointers to them.
    #[expect(clippy::vec_box, reason = "readers hold pointers to the boxes' insides")]
    arrays: Vec<Box<Slots>>,
    /// In the order of their records, no two of which overlap.
    origins: Vec<Origin>,
    count: usize,
}

/// More is not reserved at once, whoever asks.
const MAX_RESERVED: usize = 1 << 24;

/// A runtime's own index of its frame tables: where the record of a return
/// address is, 0 if it has none. Called on mutators, inside hooks.
pub(crate) type Index = Box<dyn Fn(u64) -> u64 + Send + Sync>;

/// Tables of OCaml's that are read where they are.
struct Borrowed {
    index: Index,
    version: OcamlVersion,
    /// Their records are between these, the second exclusive. What the runtime
    /// has elsewhere it may free.
    first: u64,
    end: u64,
    lazy_frames: LazyFrames,
}

/// All frame tables of a tracer.
pub(crate) struct FrameTables {
    /// Points into the last of the ledger's arrays.
    current: AtomicPtr<Slots>,
    /// How many tables were added.
    generation: AtomicU64,
    ledger: Mutex<Ledger>,
    borrowed: OnceLock<Borrowed>,
}

impl FrameTables {
    pub(crate) fn new() -> Self {
        let mut first = Box::new(Slots::with_room_for(0));
        let current = AtomicPtr::new(&raw mut *first);
        let ledger = Ledger { arrays: vec![first], origins: Vec::new(), count: 0 };
        let (generation, ledger) = (AtomicU64::new(0), Mutex::new(ledger));
        Self { current, generation, ledger, borrowed: OnceLock::new() }
    }

    /// Adds a table of the neutral format. Any thread, not inside a hook.
    ///
    /// # Safety
    /// The table is as the C header says, and stays so until `self` is dropped.
    pub(crate) unsafe fn add_neutral(
        &self,
        frames: *const NeutralFrame,
        count: usize,
        places: *const Place,
        place_count: u32,
    ) -> Result<(), TableDefect> {
        // SAFETY: the caller's promise.
        let parsed = unsafe { neutral::parse(frames, count, places, place_count) };
        let (entries, places) = parsed?;
        self.add(&entries, OriginKind::Neutral(places))
    }

    /// Adds one of OCaml's tables. Any thread, not inside a hook.
    ///
    /// # Safety
    /// As for [`Self::add_neutral`].
    pub(crate) unsafe fn add_ocaml(
        &self,
        table: *const u8,
        version: OcamlVersion,
    ) -> Result<(), TableDefect> {
        let crossings = match version {
            OcamlVersion::Four => [CROSS_OCAML4; 2],
            OcamlVersion::Five => [CROSS_OCAML5_CALLBACK, CROSS_OCAML5_FIBER],
        };
        // SAFETY: the caller's promise.
        let entries = unsafe { ocaml::parse(table, crossings) }?;
        self.add(&entries, OriginKind::Ocaml(version))
    }

    /// Borrows OCaml's tables, which the runtime has an index of; once. Those with
    /// crossings, which tell them apart by their order, are added. False, and none
    /// is borrowed, when there is no memory. Not inside a hook.
    ///
    /// # Safety
    /// As for [`Self::add_neutral`]; and where the index says that a record of
    /// these tables is, there is one.
    pub(crate) unsafe fn borrow_ocaml(
        &self,
        tables: impl Iterator<Item = *const u8> + Clone,
        version: OcamlVersion,
        index: Index,
    ) -> Result<bool, TableDefect> {
        let (mut frames, mut with_crossings) = (0, Vec::new());
        for table in tables.clone() {
            // SAFETY: the caller's promise.
            let head = unsafe { ocaml::head(table) }?;
            frames += head.count;
            with_crossings.extend(head.begins_with_crossing.then_some(table));
        }
        let (Some(lowest), Some(highest)) = (tables.clone().min(), tables.max()) else {
            return Ok(true);
        };
        // SAFETY: one of the tables.
        let end = unsafe { ocaml::end(highest) }?;
        let Some(lazy_frames) = usize::try_from(frames).ok().and_then(LazyFrames::of) else {
            return Ok(false);
        };
        // Only now: whoever cannot borrow adds all of them, and none twice.
        for table in with_crossings {
            // SAFETY: the caller's promise.
            unsafe { self.add_ocaml(table, version) }?;
        }
        let borrowed = Borrowed { index, version, first: lowest as u64, end, lazy_frames };
        let borrowed = self.borrowed.set(borrowed).is_ok();
        self.generation.fetch_add(1, Ordering::Release);
        Ok(borrowed)
    }

    fn add(&self, entries: &[Entry], kind: OriginKind) -> Result<(), TableDefect> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return Ok(());
        };
        let origin = Origin { first: first.record, last: last.record, kind };
        if let Some(twice) = find_twice(entries) {
            return Err(TableDefect::Duplicate(twice));
        }
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |entry: &&Entry| self.slots().find(entry.return_address).is_some();
        if let Some(known) = entries.iter().find(is_known) {
            return Err(TableDefect::Duplicate(known.return_address));
        }
        self.publish(&mut ledger, entries);
        let before = ledger.origins.partition_point(|known| known.first < origin.first);
        ledger.origins.insert(before, origin);
        // After the entries: whoever sees the new generation finds them.
        self.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Makes room for so many more frames at once. Any thread, not inside a hook.
    pub(crate) fn reserve(&self, frames: usize) {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let count = ledger.count.saturating_add(frames.min(MAX_RESERVED));
        if count > self.slots().room() {
            self.grow(&mut ledger, count);
        }
    }

    /// Replaces the current array by one with room for `count` entries.
    fn grow(&self, ledger: &mut Ledger, count: usize) {
        let mut larger = Box::new(Slots::with_room_for(count));
        for entry in self.slots().iter() {
            larger.insert(entry);
        }
        self.current.store(&raw mut *larger, Ordering::Release);
        ledger.arrays.push(larger);
    }

    fn publish(&self, ledger: &mut Ledger, entries: &[Entry]) {
        let count = ledger.count + entries.len();
        if count > self.slots().room() {
            self.grow(ledger, count);
        }
        let current = self.slots();
        for &entry in entries {
            current.insert(entry);
        }
        ledger.count = count;
    }

    #[inline]
    fn slots(&self) -> &Slots {
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: points into one of the ledger's boxes, which live as long as
        // `self` and are only changed through their atomics.
        unsafe { &*current }
    }

    /// How to get from a frame to its caller; 0 if no table has the address.
    /// Mutators, inside hooks.
    #[inline]
    pub(super) fn step(&self, return_address: u64) -> Step {
        self.find(return_address).map_or(0, |entry| entry.step)
    }

    #[inline]
    fn find(&self, return_address: u64) -> Option<Entry> {
        self.slots().find(return_address).or_else(|| self.meet(return_address))
    }

    /// The frame in borrowed tables, which is entered if it is met for the first
    /// time.
    fn meet(&self, return_address: u64) -> Option<Entry> {
        let Borrowed { index, first, end, lazy_frames, .. } = self.borrowed.get()?;
        lazy_frames.find(return_address).or_else(|| {
            let record = index(return_address);
            if !(*first..*end).contains(&record) {
                return None;
            }
            // SAFETY: a record of these tables, as whoever lent the index promised.
            let entry = unsafe { ocaml::entry(record) }
                .filter(|entry| entry.return_address == return_address)?;
            lazy_frames.insert(entry);
            Some(entry)
        })
    }

    /// Changes whenever an address may have become known. Mutators.
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// What the host's records say of a return address; for OCaml's combined
    /// allocations, of one allocated part. `None` if no table has the address.
    /// The writer thread; waits while a table is being added.
    pub(crate) fn source(&self, return_address: u64, part: Option<usize>) -> Option<Source> {
        let Some(Entry { record, .. }) = self.slots().find(return_address) else {
            // Every frame of a sample was met before.
            let Borrowed { lazy_frames, version, .. } = self.borrowed.get()?;
            return Some(ocaml_source(
                *version,
                lazy_frames.find_ever(return_address)?.record,
                part,
            ));
        };
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let after = ledger.origins.partition_point(|origin| origin.first <= record);
        let origin = ledger.origins.get(after.checked_sub(1)?)?;
        if record > origin.last {
            return None;
        }
        let kind = origin.kind;
        drop(ledger);
        Some(match kind {
            // SAFETY: the record's table was added with these places.
            OriginKind::Neutral(places) => Source::Places(unsafe { places.of(record) }),
            OriginKind::Ocaml(version) => ocaml_source(version, record, part),
        })
    }
}

/// What a record in a table of OCaml's says.
fn ocaml_source(version: OcamlVersion, record: u64, part: Option<usize>) -> Source {
    // SAFETY: all records that are entered are of tables in OCaml's format.
    let debug_info = unsafe { ocaml::debug_info(record, part) };
    Source::Ocaml { version, debug_info }
}

/// A return address that is twice among the entries. By a table of its own, since
/// to sort them would take several times as long.
fn find_twice(entries: &[Entry]) -> Option<u64> {
    let length = (2 * entries.len()).next_power_of_two().max(2);
    let shift = 64 - length.trailing_zeros();
    // 0 is no return address.
    let mut seen = vec![0u64; length];
    for &Entry { return_address, .. } in entries {
        let mut at = (spread(return_address) >> shift) as usize;
        while let Some(&known) = seen.get(at)
            && known != 0
        {
            if known == return_address {
                return Some(return_address);
            }
            at = (at + 1) % length;
        }
        if let Some(free) = seen.get_mut(at) {
            *free = return_address;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::formats::neutral::NO_PLACE;
    use super::super::formats::ocaml::tests::TableBuilder;
    use super::*;
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
        // SAFETY: the frames outlive the tables, here and below.
        unsafe { tables.add_neutral(few.as_ptr(), few.len(), null(), 0) }.expect("sound");
        tables.reserve(10_000);
        assert!(tables.slots().room() >= 10_049);
        let more = frames((1..10_000).map(|n| 0x10_0000 + n * 16));
        let before = tables.slots() as *const Slots;
        // SAFETY: as above.
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
        let ledger = tables.ledger.lock().expect("not poisoned");
        let last = ledger.arrays.last().map_or(0, |slots| slots.room());
        let all_rooms: usize = ledger.arrays.iter().map(|slots| slots.room()).sum();
        assert!(ledger.arrays.len() > 1);
        assert!(all_rooms < 2 * last);
    }

    /// Tables at ascending addresses in one piece of memory, as in a program.
    fn in_one_piece(tables: &[Vec<u64>]) -> (Vec<u64>, Vec<*const u8>) {
        let starts: Vec<usize> = tables
            .iter()
            .scan(0, |at, table| Some(std::mem::replace(at, *at + table.len())))
            .collect();
        let words = tables.concat();
        let places = starts.iter().map(|&start| words[start..].as_ptr().cast()).collect();
        (words, places)
    }

    #[test]
    fn borrowed_frames_are_known_when_they_are_met() {
        let mut system = TableBuilder::new();
        system.return_to_c(0x4000);
        system.return_to_c(0x4001);
        let mut module = TableBuilder::new();
        module.frame(0x5000, 16, &[], Some(&[1, 2]), &[100, 200]);
        module.frame(0x5001, 24, &[], None, &[]);
        module.frame(0x5002, 12, &[], None, &[]);
        let (words, places) = in_one_piece(&[system.build(), module.build()]);
        let elsewhere = {
            let mut table = TableBuilder::new();
            table.frame(0x6000, 16, &[], None, &[]);
            table.build()
        };
        let record = |return_address: u64| -> u64 {
            let of = |words: &[u64]| words.iter().position(|&word| word == return_address);
            let here = of(&words).map(|at| words[at..].as_ptr() as u64);
            here.or(of(&elsewhere).map(|at| elsewhere[at..].as_ptr() as u64)).unwrap_or(0)
        };
        let known: std::collections::HashMap<u64, u64> =
            [0x4000, 0x5000, 0x5001, 0x5002, 0x6000].map(|a| (a, record(a))).into();
        let index = Box::new(move |address| known.get(&address).copied().unwrap_or(0));

        let tables = FrameTables::new();
        // SAFETY: built just above, as their places and the index say.
        let borrowed =
            unsafe { tables.borrow_ocaml(places.into_iter(), OcamlVersion::Five, index) };
        assert_eq!(borrowed, Ok(true));
        assert_eq!(tables.step(0x4000), CROSS_OCAML5_CALLBACK);
        assert_eq!(tables.step(0x4001), CROSS_OCAML5_FIBER);
        assert!(tables.source(0x5000, None).is_none(), "nobody has met it");
        assert_eq!((tables.step(0x5000), tables.step(0x5001)), (16, 24));
        assert!(
            matches!(
                tables.source(0x5000, Some(1)),
                Some(Source::Ocaml { version: OcamlVersion::Five, debug_info: Some(_) })
            ),
            "{:?}",
            tables.source(0x5000, Some(1))
        );
        // A wrong size, an address in no table, and what the runtime may free.
        for unknown in [0x5002, 0x5003, 0x6000] {
            assert_eq!(tables.step(unknown), 0);
            assert!(tables.source(unknown, None).is_none());
        }
        // A plugin's table is added, as before.
        // SAFETY: built above.
        unsafe { tables.add_ocaml(elsewhere.as_ptr().cast(), OcamlVersion::Five) }.expect("sound");
        assert_eq!(tables.step(0x6000), 16);
    }

    #[test]
    fn tables_that_cannot_be_borrowed_can_be_added() {
        let mut system = TableBuilder::new();
        system.return_to_c(0x4000);
        let (_words, places) = in_one_piece(&[system.build(), vec![u64::MAX]]);
        let tables = FrameTables::new();
        let index = Box::new(|_| 0);
        // SAFETY: a table, and one that is refused by its count.
        let borrowed =
            unsafe { tables.borrow_ocaml(places.iter().copied(), OcamlVersion::Four, index) };
        assert_eq!(borrowed, Err(TableDefect::Count(u64::MAX)));
        // SAFETY: built above.
        unsafe { tables.add_ocaml(places[0], OcamlVersion::Four) }.expect("nothing is added yet");
        assert_eq!(tables.step(0x4000), CROSS_OCAML4);
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
        let mut ocaml = TableBuilder::new();
        ocaml.frame(0x5000, 16, &[], Some(&[1, 2]), &[100, 200]);
        let ocaml = ocaml.build();
        // SAFETY: built just above.
        unsafe { tables.add_ocaml(ocaml.as_ptr().cast(), OcamlVersion::Five) }.expect("sound");
        let place = |line, inlined_into| Place {
            file: null(),
            function: null(),
            line,
            start_char: 0,
            end_char: 0,
            inlined_into,
        };
        let places = [place(7, NO_PLACE), place(8, 0)];
        let neutral = [NeutralFrame { return_address: 0x6000, size: 8, place: 1 }];
        // SAFETY: both arrays are as long as said.
        unsafe { tables.add_neutral(neutral.as_ptr(), 1, places.as_ptr(), 2) }.expect("sound");

        let Some(Source::Ocaml { version, debug_info }) = tables.source(0x5000, Some(1)) else {
            panic!("an OCaml frame");
        };
        assert_eq!(version, OcamlVersion::Five);
        // Count and head: 8 + 12, then 3 bytes of lengths, aligned: offsets at
        // 24 and 28.
        assert_eq!(debug_info, Some(ocaml.as_ptr() as u64 + 28 + 200));
        let Some(Source::Places(chain)) = tables.source(0x6000, None) else {
            panic!("a neutral frame");
        };
        assert_eq!(chain.iter().map(|place| place.line).collect::<Vec<_>>(), [7, 8]);
        assert!(tables.source(0x7000, None).is_none());
    }

    #[test]
    fn defects_name_the_value() {
        let text = TableDefect::FrameSize { return_address: 0x5000, size: 12 }.to_string();
        assert!(text.contains("12") && text.contains("0x5000"));
        assert!(TableDefect::Duplicate(0xabc).to_string().contains("0xabc"));
    }
}
