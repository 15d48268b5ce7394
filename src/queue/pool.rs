//! The memory of all buffers, the free list and the queue of full buffers.
#![allow(unsafe_code, reason = "shares buffers between threads by the queue's protocol")]

use super::current_buffer::{CurrentBuffer, MAX_COMMITTED};
use super::free_list::FreeList;
use super::sync::{Queue, Watch};
use crate::sys::memory::{MappedArray, Zeroable};
use core::cell::UnsafeCell;
use core::ptr::NonNull;

/// Words in a buffer: 64 KiB.
pub(crate) const BUFFER_WORDS: usize = 8192;

/// See [`Pool::batch`].
const BATCH: usize = 8;

/// The most buffers whose indices fit a lane's word.
const MAX_BUFFERS: usize = 1 << 16;

/// A word of a buffer.
#[repr(transparent)]
struct Word(UnsafeCell<u64>);

// SAFETY: a `u64`, for which zero is a valid value and which needs no drop.
unsafe impl Zeroable for Word {}
// SAFETY: words are accessed through `Pool` only. Writers hold the buffer's claim and
// write beyond its committed length; readers read below it (`Pool::words`).
unsafe impl Sync for Word {}

/// Words `from..from + count` of one buffer.
#[derive(Clone, Copy)]
pub(super) struct WordRange {
    /// The buffer's index.
    pub(super) index: u16,
    pub(super) from: usize,
    pub(super) count: usize,
}

/// A buffer that was handed over to the consumer.
#[derive(Clone, Copy, Debug)]
pub(super) struct FullBuffer {
    pub(super) lane: u16,
    /// The lane's word at the hand-over: claimed, with the final length.
    pub(super) current: CurrentBuffer,
}

pub(super) struct Pool {
    words: MappedArray<Word>,
    watch: Watch,
    pub(super) buffers: usize,
    pub(super) buffer_words: usize,
    pub(super) free: FreeList,
    /// Has capacity for all buffers.
    pub(super) full: Queue<FullBuffer>,
}

impl Pool {
    /// A pool with all buffers free. `None` without memory, or for sizes that do not
    /// fit a lane's word.
    pub(super) fn new(buffers: usize, buffer_words: usize) -> Option<Self> {
        if buffers == 0 || buffers > MAX_BUFFERS || buffer_words > MAX_COMMITTED {
            return None;
        }
        Some(Self {
            words: MappedArray::new(buffers * buffer_words)?,
            watch: Watch::new(buffers * buffer_words),
            buffers,
            buffer_words,
            free: FreeList::full(buffers),
            full: Queue::new(buffers),
        })
    }

    /// How many full buffers are worth waking the writer for. Few, so that the same
    /// buffers are filled again while their memory is in the cache.
    pub(super) fn batch(&self) -> usize {
        self.low_mark().min(BATCH)
    }

    /// The pool runs low if no more buffers than this are free: a quarter of them.
    pub(super) fn low_mark(&self) -> usize {
        self.buffers.div_ceil(4)
    }

    /// How many buffers are reserved for lanes with nothing waiting to be read.
    pub(super) fn reserve(&self) -> usize {
        self.buffers / 8
    }

    /// How many lanes, from the first, are pinned: they keep their buffers while idle.
    /// At most an eighth of the buffers.
    pub(super) fn pinned_lanes(&self) -> usize {
        self.buffers / 8
    }

    /// The position of a range in the pool and its first word; `None` if the buffer
    /// has no such words.
    fn locate(&self, range: WordRange) -> Option<(usize, *mut u64)> {
        let WordRange { index, from, count } = range;
        if from.checked_add(count)? > self.buffer_words {
            return None;
        }
        let start = usize::from(index) * self.buffer_words + from;
        let words = self.words.get(start..start + count)?;
        Some((start, UnsafeCell::raw_get(words.as_ptr().cast())))
    }

    /// The first word of a buffer. Only the thread that holds the buffer's claim may
    /// write through it, and only beyond the committed length.
    pub(super) fn first_word(&self, index: u16) -> Option<NonNull<u64>> {
        let all = WordRange { index, from: 0, count: self.buffer_words };
        self.locate(all).and_then(|(_, words)| NonNull::new(words))
    }

    /// Tells loom that the words are being written. Nothing otherwise.
    #[inline]
    pub(super) fn note_write(&self, range: WordRange) {
        self.watch.wrote(usize::from(range.index) * self.buffer_words + range.from, range.count);
    }

    /// Words to read; empty if the buffer has no such words.
    ///
    /// # Safety
    /// The words are below a committed length that the caller has loaded with acquire
    /// order, and the buffer is not recycled while the slice lives.
    pub(super) unsafe fn words(&self, range: WordRange) -> &[u64] {
        let Some((start, words)) = self.locate(range) else { return &[] };
        self.watch.read(start, range.count);
        // SAFETY: `locate` checked that `count` words of the mapping begin there. They
        // are committed and the buffer is not recycled (this function's contract), so
        // nobody writes them.
        unsafe { core::slice::from_raw_parts(words, range.count) }
    }

    /// Tells loom that the words were read until now. Nothing otherwise.
    pub(super) fn note_read(&self, range: WordRange) {
        if let Some((start, _)) = self.locate(range) {
            self.watch.read(start, range.count);
        }
    }
}
