//! Promotions and collections that are not in the event buffer yet.

use std::mem;
use std::ops::Deref;

use heaptap_trace::End;

use crate::queue::{BlockId, BlockRun, EndWord};
use crate::sys::memory::MappedVec;

/// How many ends are flushed at a time: reserving space for each one separately would cost
/// more than writing it.
const BATCH: usize = if cfg!(test) { 4 } else { 512 };

/// Encoded promotions and collections, in the order in which they happened.
pub(crate) struct PendingEnds {
    words: MappedVec<EndWord>,
    /// The length at which the next flush is due.
    flush_at: usize,
}

impl PendingEnds {
    /// `None` without memory.
    pub(super) fn new(capacity: usize) -> Option<PendingEnds> {
        Some(PendingEnds { words: MappedVec::new(capacity)?, flush_at: BATCH })
    }

    /// Reserves memory for `more` ends. False if there is none.
    pub(super) fn reserve(&mut self, more: usize) -> bool {
        self.words.reserve(more)
    }

    /// Appends an end, for which memory was reserved. Calls `flush`, which may remove ends,
    /// when a batch is complete.
    #[inline]
    fn push_and_flush(&mut self, end: EndWord, flush: &mut impl FnMut(&mut PendingEnds)) {
        self.push(end);
        if self.words.len() >= self.flush_at {
            flush(self);
            // If the event buffer was full, does not try again for each end.
            self.flush_at = self.words.len() + BATCH;
        }
    }

    /// Appends an end, for which memory was reserved.
    #[inline]
    pub(crate) fn push(&mut self, end: EndWord) {
        let added = self.words.push(end);
        debug_assert!(added, "not reserved");
    }

    /// Removes the first `count` ends.
    pub(crate) fn remove_first(&mut self, count: usize) {
        let count = count.min(self.words.len());
        let left = self.words.len() - count;
        self.words.copy_within(count.., 0);
        self.words.truncate(left);
        self.flush_at = left + BATCH;
    }

    /// Moves all ends of `other` to the end of this list. Memory was reserved.
    pub(super) fn adopt(&mut self, other: &mut PendingEnds) {
        other.words.iter().for_each(|&end| self.push(end));
        other.clear();
    }

    pub(super) fn clear(&mut self) {
        self.remove_first(self.words.len());
    }
}

/// Merges the ends that a sweep finds: consecutive blocks with the same end share a word.
pub(super) struct RunMerger<'a, F> {
    ends: &'a mut PendingEnds,
    /// Called when a batch is complete; may remove ends.
    flush: F,
    /// The run that is not among `ends` yet.
    last: Option<(End, BlockRun)>,
}

impl<'a, F: FnMut(&mut PendingEnds)> RunMerger<'a, F> {
    pub(super) fn new(ends: &'a mut PendingEnds, flush: F) -> Self {
        RunMerger { ends, flush, last: None }
    }

    /// Adds the end of a block, for which memory was reserved.
    #[inline]
    pub(super) fn add(&mut self, end: End, block: BlockId) {
        if let Some((last, run)) = &mut self.last
            && *last == end
            && run.grow(block)
        {
            return;
        }
        self.start_run(Some((end, BlockRun::one(block))));
    }

    /// Appends the last run to the ends and starts the next one.
    #[inline]
    fn start_run(&mut self, next: Option<(End, BlockRun)>) {
        if let Some((end, run)) = mem::replace(&mut self.last, next) {
            self.ends.push_and_flush(EndWord::new(end, run), &mut self.flush);
        }
    }

    /// Appends the last run.
    pub(super) fn finish(mut self) {
        self.start_run(None);
    }
}

impl Deref for PendingEnds {
    type Target = [EndWord];

    fn deref(&self) -> &[EndWord] {
        &self.words
    }
}
