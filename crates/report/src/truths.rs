//! Moments at which it is known what was reachable.
//!
//! A collector that marks from a snapshot of the roots keeps, in each cycle, what was reachable when
//! the cycle began and what was allocated since. So a block that was born before a cycle began and is
//! alive when its marking is done was reachable at the beginning. Nothing else that a trace has says
//! so much: what is alive between two cycles may wait for the collector.
//!
//! A heap snapshot says it of the moment at which it was taken: what is in it and not reachable is dead, though
//! the collector has not found that yet.

use std::sync::Arc;

use hashbrown::HashMap;

/// The most moments that are kept. With more, those that are close together are left out.
const MOST_TRUTHS: usize = 48;

/// The most snapshots that are moments.
const MOST_SNAPSHOTS: usize = 64;

/// A moment, in microseconds since the start of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// What was born before this and is alive after [`Truth::known`] was reachable at this moment.
    pub at: u64,
    /// When marking was done. Of a snapshot, it is the moment itself.
    pub known: u64,
}

impl Truth {
    pub(crate) fn is_snapshot(&self) -> bool {
        self.at == self.known
    }
}

/// Such moments, in their order: both times rise from each to the next.
#[derive(Clone, Debug, Default)]
pub struct Truths {
    moments: Option<Arc<[Truth]>>,
    /// Blocks that a snapshot has found dead, with the moment of the first that did.
    garbage: Option<Arc<HashMap<u64, u64>>>,
}

impl Truths {
    /// None.
    pub(crate) const NONE: Truths = Truths { moments: None, garbage: None };

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
            let end = u128::from(rising.last().map_or(0, |last| last.at)) + 1;
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
        Truths { moments: Some(rising.into()), garbage: None }
    }

    /// The same with heap snapshots: when each was taken, and the ids of the blocks in it that were not
    /// reachable. Cycles that had begun before and were not done say less, and are left out.
    #[must_use]
    pub fn with_snapshots(&self, snapshots: impl IntoIterator<Item = (u64, Vec<u64>)>) -> Truths {
        let mut snapshots: Vec<(u64, Vec<u64>)> = snapshots.into_iter().collect();
        snapshots.sort_by_key(|&(at, _)| at);
        let (mut moments, mut garbage) = (self.moments().to_vec(), HashMap::new());
        for (at, dead) in snapshots.into_iter().filter(|&(at, _)| at > 0).take(MOST_SNAPSHOTS) {
            moments.retain(|truth| truth.known < at || truth.at > at);
            moments.push(Truth { at, known: at });
            for id in dead {
                garbage.entry(id).or_insert(at);
            }
        }
        moments.sort_by_key(|truth| truth.at);
        Truths { moments: Some(moments.into()), garbage: Some(garbage.into()) }
    }

    /// Since when a block is known to be dead, if a snapshot has found that.
    #[inline]
    pub(crate) fn garbage_since(&self, id: u64) -> Option<u64> {
        self.garbage.as_ref()?.get(&id).copied()
    }

    /// When a block was dead for certain that the collector has found dead at this time.
    #[inline]
    pub(crate) fn death(&self, id: u64, time: u64) -> u64 {
        self.garbage_since(id).map_or(time, |known| known.min(time))
    }

    pub(crate) fn moments(&self) -> &[Truth] {
        self.moments.as_deref().unwrap_or_default()
    }

    /// The first moment at which a block is seen, and the first at which it is not any more; `None` if it is at none.
    #[inline]
    pub(crate) fn seen(&self, birth: u64, death: u64) -> Option<(usize, usize)> {
        let (came, went) = (self.first_after(birth), self.first_without(death));
        (came < went).then_some((came, went))
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
        let snapshots = truths.with_snapshots([(35, vec![4, 5]), (50, vec![5, 6])]);
        assert_eq!(snapshots.moments(), [truth(10, 20), truth(35, 35), truth(50, 50)]);
        let deaths = [4, 5, 6, 7].map(|id| snapshots.death(id, 48));
        assert_eq!(deaths, [35, 35, 48, 48]);
        assert_eq!([35, 36].map(|death| snapshots.first_without(death)), [1, 2]);
        let hostile = Truths::new((0..100).map(|at| truth(u64::MAX - at, u64::MAX)));
        assert!(hostile.moments().len() <= 1);
    }
}
