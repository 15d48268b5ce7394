//! Debug events as they are in the runtime's heap when code is loaded.
//!
//! The runtime is about to read the same fields of the same values
//! (`process_debug_events`, `runtime/backtrace_byt.c`, 4.14.1 and 5.3.0). It does
//! not check their shapes; this does. Only what is needed is read: events of the
//! toplevel refer to whole typing environments.

use super::tree::Tree;
use crate::runtimes::ocaml::values::{STRING, header};
use crate::tracer::WORD;

/// Values in the heap.
pub(super) struct Heap {
    _private: (),
}

impl Heap {
    /// # Safety
    /// Until it is dropped, the runtime moves and frees nothing, and all arguments of its
    /// methods are values of the runtime.
    pub(super) unsafe fn standing_still() -> Heap {
        Heap { _private: () }
    }

    /// The tag and the number of words of a block; `None` for an integer.
    pub(super) fn shape(&self, value: usize) -> Option<(u8, usize)> {
        if value & (WORD - 1) != 0 || value == 0 {
            return None;
        }
        // SAFETY: by the contract of `standing_still` a value, and not an integer.
        let header = unsafe { header(value) };
        Some((header.tag(), header.size()))
    }

    /// A word of a block that is at least this long.
    pub(super) fn word(&self, block: usize, index: usize) -> usize {
        // SAFETY: within a block, by the contract of `standing_still`.
        unsafe { (block as *const usize).wrapping_add(index).read() }
    }
}

impl Tree for Heap {
    type Value = usize;

    fn field(&self, value: usize, index: usize) -> Option<usize> {
        let (tag, size) = self.shape(value)?;
        (tag == 0 && index < size).then(|| self.word(value, index))
    }

    fn int(&self, value: usize) -> Option<i64> {
        (value & 1 == 1).then_some(value as i64 >> 1)
    }

    /// The last byte is the number of padding bytes before it
    /// (`caml_string_length`, `runtime/str.c`).
    fn string(&self, value: usize) -> Option<&[u8]> {
        let (tag, size) = self.shape(value)?;
        if tag != STRING || size == 0 {
            return None;
        }
        let last = size.checked_mul(WORD)?.checked_sub(1)?;
        // SAFETY: the last byte of a block of this size.
        let padding = unsafe { (value as *const u8).wrapping_add(last).read() };
        let length = last.checked_sub(usize::from(padding))?;
        // SAFETY: within the same block, which does not change while `self` lives.
        Some(unsafe { std::slice::from_raw_parts(value as *const u8, length) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::events::Events;
    use super::*;

    /// Blocks as the runtime makes them, in memory that stays.
    struct Blocks;

    impl Blocks {
        fn block(&self, tag: u8, fields: &[usize]) -> usize {
            let words: Vec<usize> = std::iter::once(fields.len() << 10 | usize::from(tag))
                .chain(fields.iter().copied())
                .collect();
            let words: &'static [usize] = words.leak();
            words.as_ptr() as usize + WORD
        }

        fn string(&self, text: &[u8]) -> usize {
            let size = text.len() / WORD + 1;
            let mut bytes = text.to_vec();
            bytes.resize(size * WORD, 0);
            bytes[size * WORD - 1] = (size * WORD - 1 - text.len()) as u8;
            let words: Vec<usize> = bytes
                .chunks_exact(WORD)
                .map(|word| usize::from_le_bytes(word.try_into().unwrap()))
                .collect();
            self.block(STRING, &words)
        }

        fn int(&self, int: i64) -> usize {
            (int << 1 | 1) as usize
        }

        /// At `offset`, in "a.ml", line 3, characters 5 to 9, of `A.f`.
        fn event(&self, offset: i64) -> usize {
            let file = self.string(b"a.ml");
            let from = self.block(0, &[file, self.int(3), self.int(10), self.int(15)]);
            let to = self.block(0, &[file, self.int(3), self.int(10), self.int(19)]);
            let location = self.block(0, &[from, to, self.int(0)]);
            let module = self.string(b"A");
            let definition = self.string(b"A.f");
            self.block(0, &[self.int(offset), module, location, self.int(0), definition])
        }

        fn list(&self, items: &[usize]) -> usize {
            items.iter().rev().fold(self.int(0), |rest, &item| self.block(0, &[item, rest]))
        }
    }

    fn read(array: usize) -> Events {
        // SAFETY: values that are made by the tests, and stay.
        Events::of_units(&unsafe { Heap::standing_still() }, array)
    }

    #[test]
    fn events_are_read_from_all_lists() {
        let blocks = Blocks;
        let first = blocks.list(&[blocks.event(8), blocks.event(4)]);
        let second = blocks.list(&[blocks.event(100)]);
        let events = read(blocks.block(0, &[first, blocks.list(&[]), second]));
        for offset in [4, 8, 100] {
            let event = events.find(offset).unwrap();
            assert_eq!((&event.file[..], &event.definition[..]), (&b"a.ml"[..], &b"A.f"[..]));
            assert_eq!((event.line, event.start_char, event.end_char), (3, 5, 9));
        }
        assert!(events.find(12).is_none());
    }

    /// What is not an event is left out, and the others are there.
    #[test]
    fn other_shapes_are_left_out() {
        let blocks = Blocks;
        let good = blocks.event(8);
        let short = blocks.block(0, &[blocks.int(16), blocks.int(0)]);
        let tagged = blocks.block(7, &[blocks.int(16); 5]);
        let number = blocks.int(16);
        let no_place = blocks.block(0, &[blocks.int(16); 5]);
        let list = blocks.list(&[short, tagged, number, no_place, good]);
        let events = read(blocks.block(0, &[list, blocks.int(1), good]));
        assert!(events.find(8).is_some());
        assert!(events.find(16).is_none());
        for nothing in [blocks.int(0), blocks.block(0, &[]), blocks.string(b"text")] {
            assert!(read(nothing).find(8).is_none());
        }
    }

    #[test]
    fn strings_are_as_long_as_they_say() {
        let blocks = Blocks;
        // SAFETY: values that are made by the tests, and stay.
        let heap = unsafe { Heap::standing_still() };
        for text in [&b""[..], b"1234567", b"12345678", b"a\0b"] {
            assert_eq!(heap.string(blocks.string(text)), Some(text));
        }
        assert_eq!(heap.string(blocks.block(STRING, &[usize::MAX])), None);
        assert_eq!(heap.string(blocks.block(0, &[0])), None);
    }
}
