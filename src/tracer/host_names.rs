//! What the host has named: functions of its interpreter, places, and kinds of blocks.
//!
//! An interpreter's functions come and go, and a frame's code is explained when its sample is
//! written, by when the function may be dead. So the host describes a function once, here, and gets
//! a range of codes that is never given away again: the code of an instruction is the first one
//! plus its index. Functions with the same names and lines share their codes, so that a program
//! that loads the same text again and again does not fill the memory.
//!
//! Not for hooks: adding takes a lock and allocates. The writer thread asks.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use heaptap_trace::{Location, LocationList};

use crate::sys::lock::lock_until;

/// The codes of functions: above all addresses that a program can have, and with room for a kind.
const CODES: Range<u64> = 1 << 47..1 << 48;

/// A function, as its host describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostFunction {
    pub(crate) file: Vec<u8>,
    pub(crate) name: Vec<u8>,
    /// The line of each instruction, by its index; 0 if it is not known.
    pub(crate) lines: Vec<u32>,
}

/// All names of a session's host.
#[derive(Default)]
pub(crate) struct HostNames {
    named: Mutex<Named>,
}

#[derive(Default)]
struct Named {
    /// The first code of each function. Not a hash map, which would ask the system for random
    /// bytes.
    codes: BTreeMap<Arc<HostFunction>, u64>,
    /// By its first code.
    functions: BTreeMap<u64, Arc<HostFunction>>,
    /// How many codes were given away.
    used: u64,
    kinds: BTreeMap<u8, Vec<u8>>,
}

/// See [`HostNames::lock_until`].
pub(crate) struct HostNamesLock<'a> {
    _guard: MutexGuard<'a, Named>,
}

impl HostNames {
    /// The most bytes of a kind's name; the rest is cut off.
    const MAX_NAME: usize = 1_024;

    /// The code of a function's first instruction. `None` if there are no codes left.
    pub(crate) fn add(&self, function: HostFunction) -> Option<u64> {
        let mut named = self.lock();
        if let Some(&first) = named.codes.get(&function) {
            return Some(first);
        }
        let codes = (function.lines.len() as u64).max(1);
        let first = CODES.start.checked_add(named.used)?;
        if codes > CODES.end.checked_sub(first)? {
            return None;
        }
        named.used += codes;
        let function = Arc::new(function);
        named.codes.insert(Arc::clone(&function), first);
        named.functions.insert(first, function);
        Some(first)
    }

    /// Adds the place of a code to the list. False if it is not one of a function.
    pub(crate) fn locate(&self, code: u64, list: &mut LocationList) -> bool {
        if !CODES.contains(&code) {
            return false;
        }
        let found = {
            let named = self.lock();
            let last = named.functions.range(..=code).next_back();
            last.map(|(&first, function)| (first, Arc::clone(function)))
        };
        let Some((first, function)) = found else { return false };
        let index = usize::try_from(code - first).unwrap_or(usize::MAX);
        let Some(&line) = function.lines.get(index) else { return false };
        let (file, definition) = (&function.file[..], &function.name[..]);
        list.add(Location { file, line, start_char: 0, end_char: 0, definition });
        true
    }

    /// Names a kind of blocks. False if it has another name.
    pub(crate) fn name_kind(&self, kind: u8, name: &[u8]) -> bool {
        let name = name.get(..Self::MAX_NAME).unwrap_or(name);
        self.lock().kinds.entry(kind).or_insert_with(|| name.to_vec()) == name
    }

    /// The name of a kind.
    pub(crate) fn kind(&self, kind: u8) -> Option<Vec<u8>> {
        self.lock().kinds.get(&kind).cloned()
    }

    /// Keeps everyone else out until what is returned is dropped. `None` if the lock is still held
    /// at the deadline.
    pub(crate) fn lock_until(&self, deadline: Instant) -> Option<HostNamesLock<'_>> {
        Some(HostNamesLock { _guard: lock_until(&self.named, deadline)? })
    }

    fn lock(&self) -> MutexGuard<'_, Named> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, lines: &[u32]) -> HostFunction {
        HostFunction { file: b"a.lua".to_vec(), name: name.into(), lines: lines.to_vec() }
    }

    fn line_of(names: &HostNames, code: u64) -> Option<(Vec<u8>, u32)> {
        let mut list = LocationList::default();
        let found = names.locate(code, &mut list);
        let place = list.iter().next().map(|it| (it.definition.to_vec(), it.line));
        assert_eq!(found, place.is_some());
        place
    }

    #[test]
    fn every_instruction_has_its_line() {
        let names = HostNames::default();
        let one = names.add(function("one", &[3, 3, 5])).unwrap();
        let two = names.add(function("two", &[9])).unwrap();
        assert_eq!(line_of(&names, one + 2), Some((b"one".to_vec(), 5)));
        assert_eq!(line_of(&names, two), Some((b"two".to_vec(), 9)));
        assert_eq!(line_of(&names, two + 1), None);
        assert_eq!(line_of(&names, one - 1), None);
        assert_eq!(line_of(&names, 0x1000), None);
    }

    #[test]
    fn a_function_that_is_loaded_again_has_the_same_codes() {
        let names = HostNames::default();
        let first = names.add(function("f", &[1, 2])).unwrap();
        for _ in 0..1_000 {
            assert_eq!(names.add(function("f", &[1, 2])), Some(first));
        }
        assert_ne!(names.add(function("f", &[1, 3])), Some(first));
        assert_eq!(names.lock().functions.len(), 2);
    }

    #[test]
    fn a_kind_has_one_name() {
        let names = HostNames::default();
        assert!(names.name_kind(3, b"table"));
        assert!(names.name_kind(3, b"table"));
        assert!(!names.name_kind(3, b"string"));
        assert_eq!(names.kind(3).unwrap(), b"table");
        assert_eq!(names.kind(4), None);
    }
}
