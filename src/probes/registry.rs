//! All probes of a session, the log, and the stops.
//!
//! A forked child that is traced shares the probes of its parent: the program's handles stay
//! valid. Its counts continue those of the parent.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use heaptap_probes::{MAX_TEXT, ProbeKind};

use super::cell::Cell;
use crate::sys::clock::TickSource;
use crate::sys::lock::lock_until;
use crate::sys::memory::{MappedArray, Zeroable};

/// The most probes: names are for kinds of work, not for single requests. Each takes a
/// kilobyte.
const MAX_PROBES: usize = if crate::SMALL_LIMITS { 8 } else { 4_096 };

/// The most lines of the log between two ticks.
const MAX_NOTES: usize = if crate::SMALL_LIMITS { 4 } else { 1_024 };

/// A line of the log, or a stop.
pub(crate) enum Note {
    Log(String),
    Stop(String),
}

/// What a program has to say besides its allocations: any thread adds, the writer thread takes.
pub(crate) struct ProbeRegistry {
    probes: Mutex<Named>,
    /// The same cells by number, readable without a lock.
    by_number: Option<MappedArray<CellPlace>>,
    notes: Mutex<Notes>,
    /// Whether there is anything to record, readable without a lock.
    in_use: AtomicBool,
    lost_notes: AtomicU64,
}

/// A cell, or NULL.
struct CellPlace(AtomicPtr<Cell>);

// SAFETY: a pointer, which may be NULL and needs no drop.
unsafe impl Zeroable for CellPlace {}

#[derive(Default)]
struct Named {
    /// Not a hash map, which would ask the system for random bytes.
    numbers: BTreeMap<(ProbeKind, String), u32>,
    cells: Vec<(String, &'static Cell)>,
}

#[derive(Default)]
struct Notes {
    /// With the session's tick at which each was made.
    waiting: Vec<(u64, Note)>,
}

/// See [`ProbeRegistry::lock_until`].
pub(crate) struct RegistryLock<'a> {
    _probes: Option<MutexGuard<'a, Named>>,
    _notes: Option<MutexGuard<'a, Notes>>,
}

impl Default for ProbeRegistry {
    fn default() -> Self {
        ProbeRegistry {
            probes: Mutex::default(),
            by_number: MappedArray::new(MAX_PROBES),
            notes: Mutex::default(),
            in_use: AtomicBool::new(false),
            lost_notes: AtomicU64::new(0),
        }
    }
}

impl ProbeRegistry {
    /// The probe of this kind with this name, of which at most 1,024 bytes are kept. `None`: there
    /// are too many.
    pub(crate) fn open(
        &self,
        kind: ProbeKind,
        name: &[u8],
        clock: TickSource,
    ) -> Option<&'static Cell> {
        let name = text(name);
        let mut named = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (kind, name.clone());
        if let Some(&number) = named.numbers.get(&key) {
            return named.cells.get(number as usize).map(|&(_, cell)| cell);
        }
        let number = named.cells.len();
        if number >= MAX_PROBES {
            return None;
        }
        let cell: &'static Cell = Box::leak(Box::new(Cell::new(kind, number as u32, clock)));
        if let Some(place) = self.by_number.as_ref().and_then(|places| places.get(number)) {
            place.0.store(std::ptr::from_ref(cell).cast_mut(), Ordering::Release);
        }
        named.numbers.insert(key, number as u32);
        named.cells.push((name, cell));
        self.in_use.store(true, Ordering::Release);
        Some(cell)
    }

    /// The probe with this number. Callable from hooks.
    pub(crate) fn cell(&self, number: u64) -> Option<&'static Cell> {
        let place = self.by_number.as_ref()?.get(usize::try_from(number).ok()?)?;
        // SAFETY: NULL, or a cell that `open` has leaked.
        unsafe { place.0.load(Ordering::Acquire).as_ref() }
    }

    /// Adds a line to the log, or a stop. Beyond [`MAX_NOTES`] in a tick they are lost and counted.
    pub(crate) fn note(&self, ticks: u64, note: Note) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.waiting.len() < MAX_NOTES {
            notes.waiting.push((ticks, note));
        } else {
            self.lost_notes.fetch_add(1, Ordering::Relaxed);
        }
        self.in_use.store(true, Ordering::Release);
    }

    /// Whether the program has ever used a probe or the log.
    pub(super) fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::Acquire)
    }

    /// Calls `with` for each probe from `first` on: its number, name and cell.
    pub(super) fn for_each_from(
        &self,
        first: usize,
        mut with: impl FnMut(u32, &str, &'static Cell),
    ) {
        let named = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, cell) in named.cells.iter().skip(first) {
            with(cell.number, name, cell);
        }
    }

    /// The lines and stops since the last call.
    pub(super) fn take_notes(&self) -> Vec<(u64, Note)> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut notes.waiting)
    }

    /// Drops the lines and stops that were made before this tick: after a fork, the parent
    /// records those.
    pub(crate) fn forget_notes_before(&self, ticks: u64) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.waiting.retain(|&(at, _)| at >= ticks);
    }

    pub(super) fn lost_notes(&self) -> u64 {
        self.lost_notes.load(Ordering::Relaxed)
    }

    /// Keeps everyone else out until what is returned is dropped, as far as possible until the
    /// deadline.
    pub(crate) fn lock_until(&self, deadline: Instant) -> RegistryLock<'_> {
        RegistryLock {
            _probes: lock_until(&self.probes, deadline),
            _notes: lock_until(&self.notes, deadline),
        }
    }
}

/// A text of the program's, as far as it is kept.
pub(crate) fn text(bytes: &[u8]) -> String {
    let kept = bytes.get(..MAX_TEXT).unwrap_or(bytes);
    String::from_utf8_lossy(kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_and_kind_is_the_same_probe() {
        let registry = ProbeRegistry::default();
        assert!(!registry.is_in_use());
        let first = registry.open(ProbeKind::Count, b"requests", TickSource::detect()).unwrap();
        let again = registry.open(ProbeKind::Count, b"requests", TickSource::detect()).unwrap();
        let other = registry.open(ProbeKind::Timer, b"requests", TickSource::detect()).unwrap();
        assert!(std::ptr::eq(first, again) && !std::ptr::eq(first, other));
        assert_eq!((first.number, other.number), (0, 1));
        assert!(registry.is_in_use());
    }

    #[test]
    fn a_probe_for_each_request_does_not_fill_the_memory() {
        let registry = ProbeRegistry::default();
        for request in 0..MAX_PROBES as u32 {
            assert!(
                registry
                    .open(ProbeKind::Count, &request.to_le_bytes(), TickSource::detect())
                    .is_some()
            );
        }
        assert!(registry.open(ProbeKind::Count, b"one more", TickSource::detect()).is_none());
    }

    #[test]
    fn lines_beyond_the_limit_are_counted() {
        let registry = ProbeRegistry::default();
        (0..MAX_NOTES as u64 + 3).for_each(|at| registry.note(at, Note::Log("x".into())));
        assert_eq!((registry.take_notes().len(), registry.lost_notes()), (MAX_NOTES, 3));
        assert!(registry.take_notes().is_empty());
    }
}
