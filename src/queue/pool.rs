//! The buffers' memory, and where those are that no lane has.
#![allow(unsafe_code, reason = "gives out parts of shared memory that the protocol keeps apart")]

use super::current::{Current, MAX_COMMITTED};
use super::empties::Empties;
use super::sync::{Queue, Watch};
use crate::sys::memory::{MappedArray, Zeroable};
use core::cell::UnsafeCell;
use core::ptr::NonNull;

/// Words in a buffer: 64 KiB.
pub(crate) const BUFFER_WORDS: usize = 8192;

/// See [`Pool::batch`].
const BATCH: usize = 8;

/// Buffers that a word of a lane can tell apart.
pub(super) const MAX_BUFFERS: usize = 1 << 16;

/// A word that the pool's users share by agreement.
#[repr(transparent)]
struct Word(UnsafeCell<u64>);

// SAFETY: a u64 inside, for which zero is a number.
unsafe impl Zeroable for Word {}
// SAFETY: it is read and written through `Pool` only, whose contracts exclude
// that both happen at once.
unsafe impl Sync for Word {}

/// A buffer on its way to the consumer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handed {
    pub(super) lane: u16,
    /// The lane's word at that time: claimed, with its final length.
    pub(super) current: Current,
}

pub(super) struct Pool {
    words: MappedArray<Word>,
    watch: Watch,
    pub(super) buffers: usize,
    pub(super) buffer_words: usize,
    pub(super) empties: Empties,
    /// Room for all buffers.
    pub(super) fulls: Queue<Handed>,
}

impl Pool {
    /// All buffers empty. `None` without memory, or for sizes that lane words
    /// cannot hold.
    pub(super) fn new(buffers: usize, buffer_words: usize) -> Option<Self> {
        if buffers == 0 || buffers > MAX_BUFFERS || buffer_words > MAX_COMMITTED {
            return None;
        }
        Some(Self {
            words: MappedArray::new(buffers * buffer_words)?,
            watch: Watch::new(buffers * buffer_words),
            buffers,
            buffer_words,
            empties: Empties::all(buffers),
            fulls: Queue::new(buffers),
        })
    }

    /// How many full buffers are worth a wake-up of the writer: few, so that the
    /// same few are filled again and again, whose memory is there already.
    pub(super) fn batch(&self) -> usize {
        self.quarter().min(BATCH)
    }

    /// A quarter of the buffers: what runs low.
    pub(super) fn quarter(&self) -> usize {
        self.buffers.div_ceil(4)
    }

    /// An eighth of the buffers: kept for lanes that have none waiting to be read.
    pub(super) fn reserve(&self) -> usize {
        self.buffers / 8
    }

    /// The first so many lanes keep their buffers while they are idle, so that
    /// their producers need not claim them anew, by an atomic exchange, for each
    /// record. That is few buffers: no more than an eighth.
    pub(super) fn settled_lanes(&self) -> usize {
        self.buffers / 8
    }

    /// The place of words `from..from + count` of a buffer, if it has them.
    fn place(&self, index: u16, from: usize, count: usize) -> Option<(usize, *mut u64)> {
        if from.checked_add(count)? > self.buffer_words {
            return None;
        }
        let start = usize::from(index) * self.buffer_words + from;
        let words = self.words.get(start..start + count)?;
        Some((start, UnsafeCell::raw_get(words.as_ptr().cast())))
    }

    /// The first word of a buffer, to be written by who has claimed it and read as
    /// far as it says.
    pub(super) fn words_of(&self, index: u16) -> Option<NonNull<u64>> {
        self.place(index, 0, self.buffer_words).and_then(|(_, words)| NonNull::new(words))
    }

    /// Says to a watching loom that the words are being written.
    #[inline(always)]
    pub(super) fn writing(&self, index: u16, from: usize, count: usize) {
        self.watch.wrote(usize::from(index) * self.buffer_words + from, count);
    }

    /// Words to read; empty if the buffer has not so many.
    ///
    /// # Safety
    /// The words were released by who wrote them, acquired by the caller, and
    /// are not written again while the slice lives.
    pub(super) unsafe fn to_read(&self, index: u16, from: usize, count: usize) -> &[u64] {
        let Some((start, words)) = self.place(index, from, count) else { return &[] };
        self.watch.read(start, count);
        // SAFETY: `place` found `count` words of the mapping there; the caller
        // vouches that nobody writes them.
        unsafe { core::slice::from_raw_parts(words, count) }
    }

    /// Says to a watching loom that the words are read until now.
    pub(super) fn have_read(&self, index: u16, from: usize, count: usize) {
        if let Some((start, _)) = self.place(index, from, count) {
            self.watch.read(start, count);
        }
    }
}
