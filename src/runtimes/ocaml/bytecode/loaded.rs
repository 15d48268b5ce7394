//! Bytecode that is loaded while the program runs: by `Dynlink`, and all that is
//! typed into the toplevel or run by it.
//!
//! Each piece of code has a number, from 1, that no other piece gets later; the
//! program's own code is number 0. The code of a frame has the number in its upper
//! half and one more than the offset in its lower. So an address that is used
//! again gives other codes, and old codes can be explained when the piece is gone:
//! its events stay (the runtime does not free its own copy
//! either: `caml_remove_debug_info`, `runtime/backtrace_byt.c`, 4.14.1 and 5.3.0).
//!
//! Pieces come and go on threads of the program, outside hooks, while hooks walk
//! stacks ([`Ranges`]). The writer thread explains codes without a lock, since a forked
//! child must not find one taken.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::events::{Event, Events};
use super::ranges::{Range, Ranges};
use crate::sys::memory::{MappedArray, Zeroable};

/// How many pieces can be there at a time. The toplevel keeps one for each phrase
/// that defines a function.
const AT_A_TIME: usize = 1 << 16;

/// How many pieces there can ever be; those beyond have no frames.
const EVER: usize = 1 << 20;

/// The bits of a code for the offset.
const OFFSET_BITS: u32 = 32;

/// The events of a piece: NULL until it is loaded, then set for good.
#[derive(Default)]
struct Slot(AtomicPtr<Events>);

// SAFETY: an atomic NULL, which needs no drop.
unsafe impl Zeroable for Slot {}

/// All pieces of a program.
struct Loaded {
    ranges: Ranges,
    /// By number; the first is never filled.
    places: MappedArray<Slot>,
    /// How many numbers were given; held while something changes.
    given: Mutex<usize>,
}

static LOADED: OnceLock<Loaded> = OnceLock::new();

static EXTENT: Extent = Extent { lowest: AtomicUsize::new(0), highest: AtomicUsize::new(0) };

/// The range of addresses in which code was ever loaded, from `lowest` to before
/// `highest`, which only move apart. Both are 0 until something is loaded.
struct Extent {
    lowest: AtomicUsize,
    highest: AtomicUsize,
}

/// A snapshot of [`Extent`]. If it changed meanwhile, it may be too wide, or lack what
/// another thread is loading, which is not on this thread's stack.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    lowest: usize,
    length: usize,
}

impl Extent {
    #[inline]
    fn now(&self) -> Bounds {
        let lowest = self.lowest.load(Ordering::Acquire);
        let length = self.highest.load(Ordering::Acquire).wrapping_sub(lowest);
        Bounds { lowest, length }
    }

    fn widen(&self, start: usize, end: usize) {
        let lower = |lowest: usize| Some(if lowest == 0 { start } else { lowest.min(start) });
        let _ = self.lowest.fetch_update(Ordering::AcqRel, Ordering::Acquire, lower);
        self.highest.fetch_max(end, Ordering::AcqRel);
    }
}

impl Bounds {
    /// Inside hooks.
    #[inline]
    pub(super) fn now() -> Bounds {
        EXTENT.now()
    }

    #[inline]
    pub(super) fn may_have(self, address: usize) -> bool {
        address.wrapping_sub(self.lowest) < self.length
    }
}

/// The code of a frame with this return address, if it is one of loaded code.
/// Inside hooks.
#[inline(never)]
pub(super) fn frame(address: usize) -> Option<u64> {
    LOADED.get()?.ranges.find(address)
}

/// The number and the offset in a code; the program's own code has number 0.
pub(super) fn number_and_offset(code: u64) -> Option<(usize, u64)> {
    let at = code.checked_sub(1)?;
    Some(((at >> OFFSET_BITS) as usize, at & ((1 << OFFSET_BITS) - 1)))
}

/// The event of a return address in a loaded piece. Outside hooks.
pub(super) fn event(number: usize, offset: u64) -> Option<&'static Event> {
    LOADED.get()?.events(number)?.find(offset)
}

/// The event of a function that begins at an offset in a loaded piece. Outside hooks.
pub(super) fn function(number: usize, offset: u64) -> Option<&'static Event> {
    LOADED.get()?.events(number)?.find_function(offset)
}

/// Code was loaded. Not inside hooks.
pub(super) fn add(start: usize, length: usize, events: Box<Events>) {
    if LOADED.get().is_none() {
        let Some(new) = Loaded::new(AT_A_TIME, EVER) else { return };
        // Another domain may have been first.
        let _ = LOADED.set(new);
    }
    let Some(loaded) = LOADED.get() else { return };
    if loaded.add(start, length, events) {
        EXTENT.widen(start, start.saturating_add(length));
    }
}

/// Code is going to be freed. Not inside hooks.
pub(super) fn remove(start: usize) {
    if let Some(loaded) = LOADED.get() {
        loaded.remove(start);
    }
}

impl Loaded {
    /// None if there is no memory.
    fn new(at_a_time: usize, ever: usize) -> Option<Loaded> {
        Some(Loaded {
            ranges: Ranges::new(at_a_time)?,
            places: MappedArray::new(ever)?,
            given: Mutex::new(0),
        })
    }

    /// False if there is no room.
    fn add(&self, start: usize, length: usize, events: Box<Events>) -> bool {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let number = *given + 1;
        let Some(slot) = self.places.get(number) else { return false };
        let end = start.saturating_add(length);
        let code = ((number as u64) << OFFSET_BITS) + 1;
        if length as u64 >= 1 << OFFSET_BITS {
            return false;
        }
        // Before anybody can look it up.
        let events = Box::into_raw(events);
        slot.0.store(events, Ordering::Release);
        if !self.ranges.add(Range { start, end, code }) {
            slot.0.store(ptr::null_mut(), Ordering::Release);
            // SAFETY: from `Box::into_raw` above; nobody looks up a code that is in no
            // range.
            drop(unsafe { Box::from_raw(events) });
            return false;
        }
        *given = number;
        true
    }

    fn remove(&self, start: usize) {
        let _given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        self.ranges.remove(start);
    }

    fn events(&self, number: usize) -> Option<&Events> {
        let events = self.places.get(number)?.0.load(Ordering::Acquire);
        // SAFETY: NULL, or from `add` and never freed.
        unsafe { events.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::events::tests::one;
    use super::*;

    fn event_of(loaded: &Loaded, code: u64) -> Option<u32> {
        let (number, offset) = number_and_offset(code)?;
        loaded.events(number)?.find(offset).map(|event| event.line)
    }

    #[test]
    fn an_address_used_again_gives_another_code_and_the_old_one_is_still_known() {
        let loaded = Loaded::new(16, 16).unwrap();
        assert!(loaded.add(0x1000, 100, Box::new(one(8, 3))));
        let first = loaded.ranges.find(0x1008).unwrap();
        loaded.remove(0x1000);
        assert_eq!(loaded.ranges.find(0x1008), None);
        assert!(loaded.add(0x1000, 50, Box::new(one(8, 4))));
        let second = loaded.ranges.find(0x1008).unwrap();
        assert_ne!(first, second);
        assert_eq!((event_of(&loaded, first), event_of(&loaded, second)), (Some(3), Some(4)));
        assert_eq!(event_of(&loaded, first + 40), None);
    }

    #[test]
    fn bounds_have_all_that_was_ever_loaded() {
        let extent = Extent { lowest: AtomicUsize::new(0), highest: AtomicUsize::new(0) };
        let has = |addresses: [usize; 5]| addresses.map(|address| extent.now().may_have(address));
        assert_eq!(has([0, 1, 99, 100, usize::MAX]), [false; 5]);
        extent.widen(100, 110);
        assert_eq!(has([0, 99, 100, 109, 110]), [false, false, true, true, false]);
        extent.widen(50, 60);
        extent.widen(70, 200);
        assert_eq!(has([49, 50, 65, 199, 200]), [false, true, true, true, false]);
    }

    #[test]
    fn codes_are_told_from_those_of_the_program() {
        assert_eq!(number_and_offset(0), None);
        assert_eq!(number_and_offset(1), Some((0, 0)));
        assert_eq!(number_and_offset(1 << 32), Some((0, 0xffff_ffff)));
        let loaded = Loaded::new(16, 16).unwrap();
        assert!(loaded.add(0x1000, 100, Box::new(one(8, 3))));
        assert_eq!(number_and_offset(loaded.ranges.find(0x1000).unwrap()), Some((1, 0)));
        assert_eq!(number_and_offset(loaded.ranges.find(0x1063).unwrap()), Some((1, 99)));
    }

    #[test]
    fn pieces_without_room_are_left_out() {
        let loaded = Loaded::new(1_000, 1).unwrap();
        let ever = loaded.places.len();
        for number in 1..ever {
            assert!(loaded.add(number * 8, 8, Box::new(one(0, 1))));
            loaded.remove(number * 8);
        }
        assert!(!loaded.add(8, 8, Box::new(one(0, 1))));
        assert_eq!(loaded.ranges.find(8), None);
        let loaded = Loaded::new(16, 16).unwrap();
        assert!(!loaded.add(8, 1 << 32, Box::new(one(0, 1))));
    }
}
