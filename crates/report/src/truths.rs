//! Moments at which it is known what was reachable.
//!
//! A collector that marks from a snapshot of the roots keeps, in each cycle, what was reachable when
//! the cycle began and what was allocated since. So a block that was born before a cycle began and is
//! alive when its marking is done was reachable at the beginning. Nothing else that a trace has says
//! so much: what is alive between two cycles may wait for the collector.

use std::sync::Arc;

/// The most moments that are kept. With more, those that are close together are left out.
const MOST_TRUTHS: usize = 48;

/// A moment, in microseconds since the start of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// What was born before this and is alive after [`Truth::known`] was reachable at this moment.
    pub at: u64,
    /// When marking was done.
    pub known: u64,
}

/// Such moments, in their order: both times rise from each to the next.
#[derive(Clone, Debug, Default)]
pub struct Truths(Option<Arc<[Truth]>>);

impl Truths {
    /// None.
    pub(crate) const NONE: Truths = Truths(None);

    /// Of these moments, in any order, those that are after the start and not too close together.
    /// The last one is always kept.
    pub fn new(moments: impl IntoIterator<Item = Truth>) -> Truths {
        let mut all: Vec<Truth> =
            moments.into_iter().filter(|truth| truth.at > 0 && truth.known >= truth.at).collect();
        all.sort_by_key(|truth| (truth.known, truth.at));
        // Of two cycles, the later one says more about an earlier moment only if it began later.
        let mut rising: Vec<Truth> = Vec::with_capacity(all.len());
        for truth in all {
            if rising.last().is_none_or(|last| truth.at > last.at && truth.known > last.known) {
                rising.push(truth);
            }
        }
        if rising.len() > MOST_TRUTHS {
            let end = rising.last().map_or(0, |last| last.at) as u128 + 1;
            let slot = |truth: &Truth| u128::from(truth.at) * MOST_TRUTHS as u128 / end;
            let next = rising.iter().skip(1).map(Some).chain([None]);
            let is_last = rising
                .iter()
                .zip(next)
                .map(|(truth, next)| next.is_none_or(|next| slot(next) != slot(truth)));
            let kept: Vec<bool> = is_last.collect();
            let mut kept = kept.into_iter();
            rising.retain(|_| kept.next().unwrap_or(true));
        }
        Truths(Some(rising.into()))
    }

    pub(crate) fn moments(&self) -> &[Truth] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The first moment at which a block that is born at this time can be seen.
    #[inline]
    pub(crate) fn first_after(&self, birth: u64) -> usize {
        self.moments().partition_point(|truth| truth.at <= birth)
    }

    /// The first moment at which a block that is found dead at this time is not seen any more.
    #[inline]
    pub(crate) fn first_without(&self, death: u64) -> usize {
        self.moments().partition_point(|truth| truth.known < death)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_rise_and_are_bounded() {
        let truth = |at, known| Truth { at, known };
        let truths =
            Truths::new([truth(30, 40), truth(0, 5), truth(10, 20), truth(12, 11), truth(8, 25)]);
        assert_eq!(truths.moments(), [truth(10, 20), truth(30, 40)]);
        assert_eq!([9, 10, 29, 30].map(|birth| truths.first_after(birth)), [0, 1, 1, 2]);
        assert_eq!([20, 21, 40, 41].map(|death| truths.first_without(death)), [0, 1, 1, 2]);
        let many = Truths::new((1..10_000).map(|at| truth(at, at + 1)));
        assert!(many.moments().len() <= MOST_TRUTHS && many.moments().len() > MOST_TRUTHS / 2);
        assert_eq!(many.moments().last(), Some(&truth(9_999, 10_000)));
        let hostile = Truths::new((0..100).map(|at| truth(u64::MAX - at, u64::MAX)));
        assert!(hostile.moments().len() <= 1);
    }
}
