//! One entry of a backtrace: tag and slot in its first two bytes, what the tag
//! calls for behind them.

use crate::cache::Slot;
use crate::event::Code;
use crate::rules::{MAX_ENTRY, MAX_PREDICTED};

/// The most frames that one entry stands for.
pub(crate) const ENTRY_FRAMES: usize = 1 + MAX_PREDICTED;

/// An entry as it was read, with what happens to lie behind it.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The first four bytes.
    head: u32,
    /// The third byte and the seven after it.
    body: u64,
}

impl Entry {
    /// An entry that is a hit, from its first four bytes.
    #[inline(always)]
    pub(crate) fn hit(head: [u8; 4]) -> Entry {
        Entry { head: u32::from_le_bytes(head), body: 0 }
    }

    /// The entry at the start of `bytes`; `None` if it reaches beyond them.
    pub(crate) fn read(bytes: &[u8]) -> Option<Entry> {
        match bytes.first_chunk() {
            Some(entry) => Entry::of(entry),
            None => Entry::read_near_end(bytes),
        }
    }

    #[inline(always)]
    fn of(bytes: &[u8; MAX_ENTRY]) -> Option<Entry> {
        let head = u32::from_le_bytes(*bytes.first_chunk()?);
        let body = u64::from_le_bytes(*bytes.last_chunk()?);
        Some(Entry { head, body })
    }

    /// The same with fewer bytes left than the longest entry has.
    #[cold]
    #[inline(never)]
    fn read_near_end(bytes: &[u8]) -> Option<Entry> {
        let mut padded = [0; MAX_ENTRY];
        padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Entry::of(&padded).filter(|entry| entry.size() <= bytes.len())
    }

    #[inline(always)]
    pub(crate) fn slot(self) -> Slot {
        self.head as u16 >> 2
    }

    /// Whether it fills the slot with a code.
    #[inline(always)]
    pub(crate) fn is_miss(self) -> bool {
        self.head & 3 == 3
    }

    /// The code of a miss.
    #[inline(always)]
    pub(crate) fn code(self) -> Code {
        self.body
    }

    /// How many predictions to follow: none, one, or what the third byte says.
    /// Without a branch among hits, for their tag cannot be foreseen.
    #[inline(always)]
    pub(crate) fn predicted(self) -> u8 {
        if self.is_miss() {
            return 0;
        }
        let many = self.head >> 1 & 1;
        (self.head >> 16 & 0u32.wrapping_sub(many) | self.head & 1) as u8
    }

    /// How many bytes it takes.
    #[inline(always)]
    pub(crate) fn size(self) -> usize {
        if self.is_miss() { MAX_ENTRY } else { 2 + (self.head >> 1 & 1) as usize }
    }
}
