//! What there is to tell of blocks and was not told yet.

use std::mem;
use std::ops::Deref;

use heaptap_trace::End;

use crate::queue::{BlockId, BlockRun, EndWord};
use crate::sys::memory::MappedVec;

/// So many are told together: room for each alone would cost more than the
/// telling.
const MANY: usize = if cfg!(test) { 4 } else { 512 };

/// Promotions and collections, in the order in which they happened.
pub(crate) struct PendingEnds {
    words: MappedVec<EndWord>,
    /// At this length they are to be told.
    due: usize,
}

impl PendingEnds {
    /// None when there is no memory.
    pub(super) fn new(capacity: usize) -> Option<PendingEnds> {
        Some(PendingEnds { words: MappedVec::new(capacity)?, due: MANY })
    }

    /// Makes room for so many more; false when there is no memory.
    pub(super) fn reserve(&mut self, more: usize) -> bool {
        self.words.reserve(more)
    }

    /// Adds one, for which there is room; if there are many now, `tell` may take
    /// some.
    #[inline]
    fn add(&mut self, end: EndWord, tell: &mut impl FnMut(&mut PendingEnds)) {
        self.push(end);
        if self.words.len() >= self.due {
            tell(self);
            // Those that could not be told are not tried again with each.
            self.due = self.words.len() + MANY;
        }
    }

    /// Adds one, for which there is room.
    #[inline]
    pub(crate) fn push(&mut self, end: EndWord) {
        let added = self.words.push(end);
        debug_assert!(added, "not reserved");
    }

    /// The first `told` were told.
    pub(crate) fn remove_first(&mut self, told: usize) {
        let told = told.min(self.words.len());
        let left = self.words.len() - told;
        self.words.copy_within(told.., 0);
        self.words.truncate(left);
        self.due = left + MANY;
    }

    /// Takes over all of another, for which there is room.
    pub(super) fn adopt(&mut self, other: &mut PendingEnds) {
        other.words.iter().for_each(|&end| self.push(end));
        other.clear();
    }

    pub(super) fn clear(&mut self) {
        self.remove_first(self.words.len());
    }
}

/// What a sweep finds, on its way to the [`PendingEnds`]: blocks that follow each other and
/// end alike are told together.
pub(super) struct Swept<'a, T> {
    ends: &'a mut PendingEnds,
    /// Is called when there are many, and may take some.
    tell: T,
    /// What is not among the ends yet.
    last: Option<(End, BlockRun)>,
}

impl<'a, T: FnMut(&mut PendingEnds)> Swept<'a, T> {
    pub(super) fn new(ends: &'a mut PendingEnds, tell: T) -> Self {
        Swept { ends, tell, last: None }
    }

    /// Adds one, for which there is room.
    #[inline(always)]
    pub(super) fn add(&mut self, end: End, block: BlockId) {
        if let Some((last, run)) = &mut self.last
            && *last == end
            && run.grow(block)
        {
            return;
        }
        self.pass_on(Some((end, BlockRun::one(block))));
    }

    /// Passes on what was found and goes on with what comes next.
    #[inline(always)]
    fn pass_on(&mut self, next: Option<(End, BlockRun)>) {
        if let Some((end, run)) = mem::replace(&mut self.last, next) {
            self.ends.add(EndWord::new(end, run), &mut self.tell);
        }
    }

    /// Passes on what is left.
    pub(super) fn finish(mut self) {
        self.pass_on(None);
    }
}

impl Deref for PendingEnds {
    type Target = [EndWord];

    fn deref(&self) -> &[EndWord] {
        &self.words
    }
}
