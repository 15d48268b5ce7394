//! What there is to tell of blocks and was not told yet.

use std::ops::Deref;

use crate::queue::EndWord;
use crate::sys::memory::Mapped;

/// So many are told together: room for each alone would cost more than the
/// telling.
const MANY: usize = if cfg!(test) { 4 } else { 512 };

/// Promotions and collections, in the order in which they happened.
pub(crate) struct Ends {
    words: Mapped<EndWord>,
    /// At this length they are to be told.
    due: usize,
}

impl Ends {
    /// None when there is no memory.
    pub(super) fn new(capacity: usize) -> Option<Ends> {
        Some(Ends { words: Mapped::new(capacity)?, due: MANY })
    }

    /// Makes room for so many more; false when there is no memory.
    pub(super) fn reserve(&mut self, more: usize) -> bool {
        self.words.reserve(more)
    }

    /// Adds one, for which there is room; if there are many now, `tell` may take
    /// some.
    #[inline]
    pub(super) fn add(&mut self, end: EndWord, tell: &mut impl FnMut(&mut Ends)) {
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
    pub(crate) fn forget(&mut self, told: usize) {
        let told = told.min(self.words.len());
        let left = self.words.len() - told;
        self.words.copy_within(told.., 0);
        self.words.truncate(left);
        self.due = left + MANY;
    }

    /// Takes over all of another, for which there is room.
    pub(super) fn adopt(&mut self, other: &mut Ends) {
        other.words.iter().for_each(|&end| self.push(end));
        other.clear();
    }

    pub(super) fn clear(&mut self) {
        self.forget(self.words.len());
    }
}

impl Deref for Ends {
    type Target = [EndWord];

    fn deref(&self) -> &[EndWord] {
        &self.words
    }
}
