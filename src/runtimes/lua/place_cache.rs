//! The codes of places that a state's stacks have met, by function and instruction.
//!
//! A function is known by its address only as long as it lives: [`PlaceCache::forget`] is called
//! when memory of a function's size is freed, and what has that address later is another one, with
//! another number. Both tables have one slot for each hash: what does not fit is asked for again.
//! Used in hooks of one state, by one thread at a time.

use super::layout::Proto;
use super::places::Text;
use crate::sys::memory::Region;

/// Functions, of three words each: address, number, and the texts of file and name.
const FUNCTIONS: usize = 1 << 12;
/// Places, of two words each: key and code.
const PLACES: usize = 1 << 13;

/// Instructions beyond are not cached.
const INSTRUCTION_BITS: u32 = 24;

pub(super) struct PlaceCache {
    functions: Region,
    places: Region,
    /// The number of the function that was met last.
    last: u64,
}

/// A function that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownFunction {
    /// Never given twice.
    number: u64,
    pub(super) file: Text,
    pub(super) name: Text,
}

impl PlaceCache {
    /// `None` if there is no memory.
    pub(super) fn new() -> Option<PlaceCache> {
        let functions = Region::new(FUNCTIONS * 3)?;
        Some(PlaceCache { functions, places: Region::new(PLACES * 2)?, last: 0 })
    }

    #[inline]
    pub(super) fn function(&self, proto: Proto) -> Option<KnownFunction> {
        let at = slot(proto.address() as u64, FUNCTIONS) * 3;
        let [address, number, texts] = *self.functions.get(at..)?.first_chunk()?;
        let (file, name) = (Text::from_bits(texts), Text::from_bits(texts >> 32));
        (address == proto.address() as u64).then_some(KnownFunction { number, file, name })
    }

    /// Remembers a function that was not known.
    pub(super) fn add_function(&mut self, proto: Proto, file: Text, name: Text) -> KnownFunction {
        self.last += 1;
        let number = self.last;
        let at = slot(proto.address() as u64, FUNCTIONS) * 3;
        if let Some(entry) = self.functions.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *entry = [proto.address() as u64, number, file.to_bits() | name.to_bits() << 32];
        }
        KnownFunction { number, file, name }
    }

    /// What was at this address is freed.
    #[inline]
    pub(super) fn forget(&mut self, address: usize) {
        let at = slot(address as u64, FUNCTIONS) * 3;
        if let Some(known) = self.functions.get_mut(at)
            && *known == address as u64
        {
            *known = 0;
        }
    }

    /// The code of an instruction.
    #[inline]
    pub(super) fn code(&self, function: KnownFunction, index: usize) -> Option<u64> {
        let key = key(function, index)?;
        let [known, code] = *self.places.get(slot(key, PLACES) * 2..)?.first_chunk()?;
        (known == key).then_some(code)
    }

    pub(super) fn add_code(&mut self, function: KnownFunction, index: usize, code: u64) {
        let Some(key) = key(function, index) else { return };
        let rest = self.places.get_mut(slot(key, PLACES) * 2..);
        if let Some(entry) = rest.and_then(|rest| rest.first_chunk_mut()) {
            *entry = [key, code];
        }
    }
}

#[inline]
fn key(function: KnownFunction, index: usize) -> Option<u64> {
    let fits = index >> INSTRUCTION_BITS == 0 && function.number >> (64 - INSTRUCTION_BITS) == 0;
    fits.then_some(function.number << INSTRUCTION_BITS | index as u64)
}

/// Fibonacci hashing (Knuth, *The Art of Computer Programming* 3, 6.4).
#[inline]
fn slot(key: u64, slots: usize) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - slots.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proto(address: usize) -> Proto {
        // SAFETY: only its address is used.
        unsafe { Proto::at(address) }
    }

    #[test]
    fn what_is_freed_is_another_function_next_time() {
        let mut cache = PlaceCache::new().unwrap();
        let (function, text) = (proto(0x5000), Text::from_bits(3));
        assert_eq!(cache.function(function), None);
        let first = cache.add_function(function, text, Text::from_bits(9));
        cache.add_code(first, 7, 40);
        assert_eq!(cache.function(function), Some(first));
        assert_eq!((cache.code(first, 7), cache.code(first, 8)), (Some(40), None));
        cache.forget(0x5008);
        assert_eq!(cache.function(function), Some(first));
        cache.forget(0x5000);
        assert_eq!(cache.function(function), None);
        let second = cache.add_function(function, text, text);
        assert_eq!(cache.code(second, 7), None);
    }

    #[test]
    fn no_entry_stands_for_another() {
        let mut cache = PlaceCache::new().unwrap();
        let all = (1..20_000).map(|number| proto(number * 128));
        for function in all.clone() {
            let text = Text::from_bits(function.address() as u64);
            let known = cache.add_function(function, text, text);
            cache.add_code(known, 1, function.address() as u64);
        }
        let mut found = 0;
        for function in all {
            let Some(known) = cache.function(function) else { continue };
            assert_eq!(known.file, Text::from_bits(function.address() as u64));
            assert!(cache.code(known, 1).is_none_or(|code| code == function.address() as u64));
            found += 1;
        }
        assert!(found > FUNCTIONS / 4, "{found}");
        assert_eq!(cache.code(KnownFunction { number: 1, ..known_for_test() }, 1 << 24), None);
    }

    fn known_for_test() -> KnownFunction {
        KnownFunction { number: 1, file: Text::from_bits(1), name: Text::from_bits(1) }
    }
}
