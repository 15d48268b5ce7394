//! Places in Lua code, kept for good.
//!
//! A code in a trace is explained long after the sample, when the function may have been
//! collected and its memory may be another's. So a hook that meets a place for the first time
//! copies what there is to say of it, and the code is where the copy is. Places are told apart by
//! their contents: a chunk that is loaded again and again has one set of them.
//!
//! Records are in an array of words that only grows, and are found through a hash table of their
//! offsets (open addressing with linear probing, Knuth, *The Art of Computer Programming* 3, 6.4).
//! A record is written before its offset is published, and never changes. Any thread, without
//! locks: two that add the same record at once both find the one that was first.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use heaptap_trace::{Location, LocationList};

use crate::sys::memory::MappedArray;

/// The words of all records: some hundred thousand places. Pages that are not used cost nothing.
const WORDS: usize = if crate::SMALL_LIMITS { 1 << 8 } else { 1 << 21 };
/// The slots of the hash table; at most half of them are used.
const SLOTS: usize = if crate::SMALL_LIMITS { 1 << 7 } else { 1 << 18 };

/// The longest text that is kept, in bytes.
pub(super) const MOST_BYTES: usize = 240;
const MOST_WORDS: usize = 1 + MOST_BYTES / 8;

/// A text, by the offset of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text(u32);

impl Text {
    pub(super) fn to_bits(self) -> u64 {
        u64::from(self.0)
    }

    /// The inverse.
    pub(super) fn from_bits(bits: u64) -> Text {
        Text(bits as u32)
    }
}

/// What the first word of a record's contents says.
const IS_TEXT: u64 = 1 << 63;

pub(super) struct Places {
    /// Records: a hash, the number of words behind it, and these.
    words: MappedArray<AtomicU64>,
    /// How many of them are taken.
    taken: AtomicUsize,
    /// Offsets of records; 0 where there is none.
    slots: MappedArray<AtomicU64>,
    used: AtomicUsize,
}

impl Places {
    /// `None` if there is no memory.
    pub(super) fn new() -> Option<Places> {
        Some(Places {
            words: MappedArray::new(WORDS)?,
            // No record is at 0.
            taken: AtomicUsize::new(1),
            slots: MappedArray::new(SLOTS)?,
            used: AtomicUsize::new(0),
        })
    }

    /// The code of a place. `None` if there is no room for it.
    pub(super) fn place(&self, file: Text, name: Text, line: u32) -> Option<u64> {
        let offset = self.add(&[u64::from(line), file.to_bits() | name.to_bits() << 32])?;
        Some(offset as u64)
    }

    /// A text, of which the first [`MOST_BYTES`] are kept. `None` if there is no room for it.
    pub(super) fn text(&self, bytes: &[u8]) -> Option<Text> {
        let bytes = bytes.get(..MOST_BYTES).unwrap_or(bytes);
        let mut words = [0; MOST_WORDS];
        words[0] = IS_TEXT | bytes.len() as u64;
        for (word, part) in words.iter_mut().skip(1).zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            *word = u64::from_le_bytes(whole);
        }
        let count = 1 + bytes.len().div_ceil(8);
        self.add(words.get(..count)?).map(|offset| Text(offset as u32))
    }

    /// The offset of the record with these contents.
    fn add(&self, contents: &[u64]) -> Option<usize> {
        let hash = hash(contents);
        let start = (hash >> (u64::BITS - SLOTS.trailing_zeros())) as usize;
        let mut made = None;
        for step in 0..SLOTS {
            let slot = self.slots.get((start + step) % SLOTS)?;
            let mut found = slot.load(Ordering::Acquire);
            if found == 0 {
                let offset = match made {
                    Some(offset) => offset,
                    None => *made.insert(self.write(hash, contents)?),
                };
                let exchanged =
                    slot.compare_exchange(0, offset as u64, Ordering::AcqRel, Ordering::Acquire);
                match exchanged {
                    Ok(_) => return Some(offset),
                    Err(other) => found = other,
                }
            }
            if self.is(found as usize, hash, contents) {
                return Some(found as usize);
            }
        }
        None
    }

    /// Writes a record, which nobody knows yet.
    fn write(&self, hash: u64, contents: &[u64]) -> Option<usize> {
        if self.used.fetch_add(1, Ordering::Relaxed) >= SLOTS / 2 {
            self.used.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let count = contents.len() + 2;
        let advance = |taken: usize| (taken + count <= self.words.len()).then_some(taken + count);
        let offset = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance).ok()?;
        let record = self.words.get(offset..offset + count)?;
        let values = [hash, contents.len() as u64].into_iter().chain(contents.iter().copied());
        record.iter().zip(values).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        Some(offset)
    }

    fn word(&self, at: usize) -> u64 {
        self.words.get(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn is(&self, offset: usize, hash: u64, contents: &[u64]) -> bool {
        self.word(offset) == hash
            && self.word(offset + 1) == contents.len() as u64
            && contents.iter().enumerate().all(|(at, word)| self.word(offset + 2 + at) == *word)
    }

    /// Explains a code. On the writer thread, which received it from a hook.
    pub(super) fn locate(&self, code: u64, list: &mut LocationList) {
        let offset = usize::try_from(code).unwrap_or(0);
        let texts = self.word(offset.saturating_add(3));
        let (file, definition) = (self.bytes(texts as u32), self.bytes((texts >> 32) as u32));
        let line = self.line(code);
        let (file, definition) = (&file[..], &definition[..]);
        list.add(Location { file, line, start_char: 0, end_char: 0, definition });
    }

    /// The line of a code.
    pub(super) fn line(&self, code: u64) -> u32 {
        self.word(usize::try_from(code).unwrap_or(0).saturating_add(2)) as u32
    }

    fn bytes(&self, text: u32) -> Vec<u8> {
        let offset = text as usize;
        let length = (self.word(offset + 2) & !IS_TEXT) as usize;
        let words = (0..length.div_ceil(8)).map(|at| self.word(offset + 3 + at));
        let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        bytes.truncate(length);
        bytes
    }
}

/// Fibonacci hashing of one word after the other (Knuth, same section).
fn hash(contents: &[u64]) -> u64 {
    contents.iter().fold(contents.len() as u64, |hash, word| {
        (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(places: &Places, code: u64) -> (Vec<u8>, u32, Vec<u8>) {
        let mut list = LocationList::default();
        places.locate(code, &mut list);
        let found = list.iter().next().expect("a location");
        (found.file.to_vec(), found.line, found.definition.to_vec())
    }

    #[test]
    fn equal_places_have_one_code() {
        let places = Places::new().unwrap();
        let (file, name) = (places.text(b"a.lua").unwrap(), places.text(b"make_tables").unwrap());
        let first = places.place(file, name, 7).unwrap();
        let second = places.place(file, name, 8).unwrap();
        assert_ne!(first, second);
        assert_eq!(places.text(b"a.lua"), Some(file));
        assert_eq!(places.place(file, name, 7), Some(first));
        assert_eq!(explained(&places, first), (b"a.lua".into(), 7, b"make_tables".into()));
        assert_eq!(explained(&places, second).1, 8);
        let empty = places.text(b"").unwrap();
        let place = places.place(empty, empty, 0).unwrap();
        assert_eq!(explained(&places, place), (vec![], 0, vec![]));
    }

    #[test]
    fn long_texts_are_cut_and_too_many_places_refused() {
        let places = Places::new().unwrap();
        let text = places.text(&[b'x'; 1000]).unwrap();
        let place = places.place(text, text, 1).unwrap();
        assert_eq!(explained(&places, place).0.len(), MOST_BYTES);
        let refused = (0..100).find(|&line| places.place(text, text, line).is_none());
        assert!(refused.is_some_and(|line| line > 10), "{refused:?}");
        assert_eq!(places.place(text, text, 1), Some(place), "what is known stays");
    }

    #[test]
    fn what_is_no_code_is_explained_as_nothing() {
        let places = Places::new().unwrap();
        for code in [0, 5, u64::MAX, 1 << 40] {
            assert_eq!(explained(&places, code).1, 0);
        }
    }

    #[test]
    fn threads_that_add_the_same_places_agree() {
        let places = Places::new().unwrap();
        let all = |()| (0..20).map(|line| places.place(Text(1), Text(1), line)).collect::<Vec<_>>();
        std::thread::scope(|scope| {
            let threads = [(); 2].map(|()| scope.spawn(|| all(())));
            let [first, second] = threads.map(|thread| thread.join().unwrap());
            assert_eq!(first, second);
        });
    }
}
