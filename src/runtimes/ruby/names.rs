//! The names of functions and their files, which outlive the functions.
//!
//! The writer asks what a code means when the function may be gone: code that was evaluated is
//! collected like any object. So a hook copies the names of a function that it meets for the first
//! time, and the code of a frame says where they are: it is never used for anything else.
//!
//! A text is its length in bytes and the bytes; a function is the places of its two texts. Both are
//! written once, before a code that leads to them is recorded, and never change. Texts and functions are
//! found by their contents, in hash tables with linear probing.
//!
//! Hooks write, under the runtime's lock; the writer thread reads.

use std::sync::atomic::{AtomicU64, Ordering};

use heaptap_trace::{Location, LocationList};

use crate::sys::memory::{MappedArray, Region};

/// The words of the memory for names: 32 MiB, of which untouched pages take nothing.
const WORDS: usize = 4 << 20;

/// The entries of a hash table, a power of two.
const ENTRIES: usize = 1 << 18;

/// The longest name, which is cut.
const LONGEST: usize = 4096;

/// The bits of a code that are the line.
const LINE_BITS: u32 = 24;

/// The place of a text or of a function, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) u32);

/// Memory that is written once, word by word, and never unmapped.
#[derive(Clone, Copy)]
struct Memory(&'static [AtomicU64]);

impl Memory {
    fn new() -> Option<Memory> {
        let words = MappedArray::<AtomicU64>::new(WORDS)?.into_raw();
        // SAFETY: as many zeroed words, which are never unmapped.
        Some(Memory(unsafe { std::slice::from_raw_parts(words, WORDS) }))
    }

    /// A word; 0 beyond the memory.
    fn word(self, at: usize) -> u64 {
        self.0.get(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn put(self, at: usize, word: u64) {
        if let Some(place) = self.0.get(at) {
            place.store(word, Ordering::Relaxed);
        }
    }

    fn text(self, place: Place) -> impl Iterator<Item = u8> {
        let at = place.0 as usize;
        let length = (self.word(at) as usize).min(LONGEST);
        let words = (at + 1..).map(move |at| self.word(at).to_le_bytes());
        words.flatten().take(length)
    }
}

/// What the writer thread finds codes with.
#[derive(Clone, Copy)]
pub(super) struct Reader(Memory);

impl Reader {
    /// Adds the location of a frame with this code.
    pub(super) fn locate(self, code: u64, list: &mut LocationList) {
        let line = (code & ((1 << LINE_BITS) - 1)) as u32;
        let function = self.0.word((code >> LINE_BITS) as usize);
        let (file, name) = texts_of(function);
        let [file, definition] = [file, name].map(|it| self.0.text(it).collect::<Vec<u8>>());
        let (file, definition) = (&file[..], &definition[..]);
        list.add(Location { file, line, start_char: 0, end_char: 0, definition });
    }
}

/// The file and the name of a function, as it is written.
fn texts_of(function: u64) -> (Place, Place) {
    (Place((function >> 32) as u32), Place(function as u32))
}

/// All names.
pub(super) struct Names {
    memory: Memory,
    /// The words that are written.
    used: usize,
    texts: Region,
    functions: Region,
}

impl Names {
    /// `None` without memory.
    pub(super) fn new() -> Option<Names> {
        let (texts, functions) = (Region::new(ENTRIES)?, Region::new(ENTRIES)?);
        // No place is 0.
        Some(Names { memory: Memory::new()?, used: 1, texts, functions })
    }

    pub(super) fn reader(&self) -> Reader {
        Reader(self.memory)
    }

    /// The code of a frame in a function.
    pub(super) fn code(function: Place, line: u32) -> u64 {
        u64::from(function.0) << LINE_BITS | u64::from(line.min((1 << LINE_BITS) - 1))
    }

    /// The file of a function.
    pub(super) fn file_of(&self, function: Place) -> Place {
        texts_of(self.memory.word(function.0 as usize)).0
    }

    /// The function of this name in this file. `None` if there is no room for more.
    pub(super) fn function(&mut self, file: Place, name: Place) -> Option<Place> {
        let function = u64::from(file.0) << 32 | u64::from(name.0);
        let hash = mix(function);
        let memory = self.memory;
        let is_same = |place: Place| memory.word(place.0 as usize) == function;
        let slot = match probe(&self.functions, hash, is_same)? {
            Probed::Found(place) => return Some(place),
            Probed::Free(slot) => slot,
        };
        let place = self.take(1)?;
        memory.put(place.0 as usize, function);
        set(&mut self.functions, slot, hash, place);
        Some(place)
    }

    /// The text that consists of these parts. `None` if there is no room for more.
    pub(super) fn text(&mut self, parts: &[&[u8]]) -> Option<Place> {
        let bytes = || parts.iter().flat_map(|part| part.iter().copied()).take(LONGEST);
        let hash = bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let hash = mix(hash);
        let memory = self.memory;
        let is_same = |place| memory.text(place).eq(bytes());
        let slot = match probe(&self.texts, hash, is_same)? {
            Probed::Found(place) => return Some(place),
            Probed::Free(slot) => slot,
        };
        let length = bytes().count();
        let place = self.take(1 + length.div_ceil(8))?;
        let mut at = place.0 as usize;
        memory.put(at, length as u64);
        let mut rest = bytes();
        for _ in 0..length.div_ceil(8) {
            at += 1;
            memory.put(at, u64::from_le_bytes(std::array::from_fn(|_| rest.next().unwrap_or(0))));
        }
        set(&mut self.texts, slot, hash, place);
        Some(place)
    }

    /// Words that nothing was written to.
    fn take(&mut self, words: usize) -> Option<Place> {
        let place = self.used;
        self.used = place.checked_add(words).filter(|&end| end <= WORDS)?;
        u32::try_from(place).ok().map(Place)
    }
}

/// What a hash table says.
enum Probed {
    Found(Place),
    /// It is not there, and would be in this slot.
    Free(usize),
}

/// An entry is the upper half of the hash and the place; 0 if it is free. `None`: the table is as good as full.
fn probe(table: &[u64], hash: u64, is_same: impl Fn(Place) -> bool) -> Option<Probed> {
    /// The most entries that are looked at.
    const MOST: usize = 256;
    for step in 0..MOST {
        let slot = (hash as usize).wrapping_add(step) & (ENTRIES - 1);
        let entry = *table.get(slot)?;
        if entry == 0 {
            return Some(Probed::Free(slot));
        }
        let place = Place(entry as u32);
        if entry >> 32 == hash >> 32 && is_same(place) {
            return Some(Probed::Found(place));
        }
    }
    None
}

fn set(table: &mut [u64], slot: usize, hash: u64, place: Place) {
    if let Some(entry) = table.get_mut(slot) {
        *entry = hash >> 32 << 32 | u64::from(place.0);
    }
}

/// Spreads a number over all bits (the finaliser of Murmur hashing, 64 bits).
fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_contents() {
        let mut names = Names::new().unwrap();
        let file = names.text(&[b"a.rb"]).unwrap();
        let name = names.text(&[b"A", b"#", b"f"]).unwrap();
        assert_eq!(names.text(&[b"A#f"]), Some(name));
        assert_ne!(file, name);
        let function = names.function(file, name).unwrap();
        assert_eq!(names.function(file, name), Some(function));
        assert_ne!(names.function(name, file), Some(function));
        assert_eq!(names.file_of(function), file);
    }

    #[test]
    fn a_code_is_located() {
        let mut names = Names::new().unwrap();
        let texts = [names.text(&[b"/x/a.rb"]).unwrap(), names.text(&[b""]).unwrap()];
        let function = names.function(texts[0], texts[1]).unwrap();
        let mut list = LocationList::default();
        names.reader().locate(Names::code(function, 70_000), &mut list);
        // A code that nobody has made.
        names.reader().locate(u64::MAX >> 4, &mut list);
        let found: Vec<_> = list.iter().map(|it| (it.file.to_vec(), it.line)).collect();
        assert_eq!(found[0], (b"/x/a.rb".to_vec(), 70_000));
        assert_eq!(found[1].0, b"");
    }

    #[test]
    fn a_name_of_any_length_is_kept_or_cut() {
        let mut names = Names::new().unwrap();
        for length in [0, 1, 7, 8, 9, LONGEST, LONGEST + 1] {
            let text = vec![b'x'; length];
            let place = names.text(&[&text]).unwrap();
            assert!(names.memory.text(place).eq(text.into_iter().take(LONGEST)));
        }
    }

    #[test]
    fn when_there_is_no_room_it_says_so() {
        let mut names = Names::new().unwrap();
        names.used = WORDS - 1;
        assert_eq!(names.text(&[b"does not fit"]), None);
        assert!(names.text(&[b""]).is_some());
        assert_eq!(names.text(&[b"nor this"]), None);
    }
}
