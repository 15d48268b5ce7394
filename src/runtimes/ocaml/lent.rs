//! Memory that is lent to the runtime to prove a layout.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Words that the runtime's own functions work on.
pub(super) struct Lent(Vec<AtomicUsize>);

impl Lent {
    /// `mark`: what the word with an index holds, a different number for each.
    pub(super) fn new(words: usize, mark: impl Fn(usize) -> usize) -> Lent {
        Lent((0..words).map(|index| AtomicUsize::new(mark(index))).collect())
    }

    pub(super) fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// The word with this index; 0 if there is none.
    pub(super) fn get(&self, index: usize) -> usize {
        self.0.get(index).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, index: usize, value: usize) {
        if let Some(word) = self.0.get(index) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// What `work` changes: which words, and to what. They are put back.
    pub(super) fn changes(&self, work: impl FnOnce(usize)) -> Vec<(usize, usize)> {
        let values = || self.0.iter().map(|word| word.load(Ordering::Relaxed));
        let before: Vec<usize> = values().collect();
        work(self.address());
        let pairs = values().enumerate().zip(&before);
        let changed: Vec<_> =
            pairs.filter(|((_, now), before)| now != *before).map(|(word, _)| word).collect();
        changed.iter().for_each(|&(index, _)| self.set(index, before[index]));
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_seen_and_undone() {
        extern "C" fn third(state: usize) {
            // SAFETY: lent memory of more words.
            unsafe { (state as *mut usize).wrapping_add(2).write(7) };
        }
        let lent = Lent::new(8, |index| index << 8);
        assert_eq!(lent.changes(|state| third(state)), [(2, 7)]);
        assert_eq!(lent.changes(|state| third(state)), [(2, 7)]);
        lent.set(2, 7);
        assert_eq!(lent.changes(|state| third(state)), []);
    }
}
