//! What one site had reachable at each moment.

use crate::cohorts::{Amount, Record};
use crate::thinning::scramble;
use crate::truths::{Truth, Truths};

/// The evidence on one site.
pub(super) struct SiteLife<'a> {
    truths: &'a Truths,
    /// What was seen and went: the first moment with it, the first without it.
    gone: Vec<((usize, usize), Amount)>,
    /// Birth and amount of each block that is alive at the end, the oldest first.
    alive: Vec<(u64, Amount)>,
    records: Vec<Record>,
    /// What a sample of the lowest rate counts.
    lowest: u64,
    /// The end of the trace.
    end: u64,
}

/// A set of blocks: those that are seen at a moment and were seen already at an earlier one.
/// The whole size at a moment is the set in which the two are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) at: usize,
    pub(super) since: usize,
}

impl Seen {
    pub(super) fn all(at: usize) -> Seen {
        Seen { at, since: at }
    }
}

/// What is in one of two sets and not in the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    pub(super) came: Amount,
    pub(super) went: Amount,
}

impl Change {
    pub(super) fn net(&self) -> f64 {
        self.came.count() - self.went.count()
    }

    /// The standard deviation of [`Change::net`], if blocks come and go by chance: the two are
    /// different blocks, so their variances add.
    pub(super) fn noise(&self) -> f64 {
        (self.came.squares + self.went.squares).sqrt()
    }

    /// Whether the site grew, by so many standard deviations.
    pub(super) fn is_growth(&self, sigmas: f64) -> bool {
        self.net() > 0.0 && self.net() >= sigmas * self.noise()
    }
}

impl<'a> SiteLife<'a> {
    pub(super) fn new(
        truths: &'a Truths,
        gone: Vec<((usize, usize), Amount)>,
        mut alive: Vec<(u64, Amount)>,
        records: Vec<Record>,
        (lowest, end): (u64, u64),
    ) -> SiteLife<'a> {
        alive.sort_unstable_by_key(|&(birth, _)| birth);
        SiteLife { truths, gone, alive, records, lowest, end }
    }

    pub(super) fn moments(&self) -> &'a [Truth] {
        self.truths.moments()
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn records(&self) -> &[Record] {
        &self.records
    }

    /// The blocks that are alive at the end and were born in this time.
    pub(super) fn alive_from(&self, from: u64, to: u64) -> &[(u64, Amount)] {
        let first = self.alive.partition_point(|&(birth, _)| birth < from);
        let behind = self.alive.partition_point(|&(birth, _)| birth < to);
        self.alive.get(first..behind).unwrap_or_default()
    }

    /// All that is alive at the end.
    pub(super) fn at_end(&self) -> Amount {
        self.alive.iter().map(|&(_, amount)| amount).sum()
    }

    /// When the oldest of it was born.
    pub(super) fn oldest_birth(&self) -> Option<u64> {
        self.alive.first().map(|&(birth, _)| birth)
    }

    /// Birth and count of the blocks of [`SiteLife::alive_from`] as if all had been sampled at the lowest
    /// rate: of the others a part is left out, by chance. So where the rate falls, births do not.
    pub(super) fn births(&self, from: u64, to: u64) -> Vec<(u64, f64)> {
        let lowest = self.lowest as f64;
        let chosen = |&&(birth, amount): &&(u64, Amount)| {
            let chance = scramble(birth ^ amount.sampled.count.rotate_left(32)) as f64;
            amount.count() >= lowest || chance < amount.count() / lowest * 2_f64.powi(64)
        };
        let alive = self.alive_from(from, to).iter().filter(chosen);
        alive.map(|&(birth, amount)| (birth, amount.count().max(lowest))).collect()
    }

    /// What was seen: the moments of each block, and its amount.
    fn seen(&self) -> impl Iterator<Item = (usize, usize, Amount)> + '_ {
        let gone = self.gone.iter().map(|&((came, went), amount)| (came, went, amount));
        let never = self.moments().len();
        let seen = move |&(birth, amount): &(u64, Amount)| {
            let came = self.truths.first_after(birth);
            (came < never).then_some((came, never, amount))
        };
        gone.chain(self.alive.iter().filter_map(seen))
    }

    /// How much is in a set.
    pub(super) fn size(&self, set: Seen) -> Amount {
        let mut sum = Amount::default();
        let inside = |&(came, went, _): &(usize, usize, Amount)| came <= set.since && went > set.at;
        self.seen().filter(inside).for_each(|(_, _, amount)| sum.add(amount));
        sum
    }

    /// The live size at each moment.
    pub(super) fn sizes(&self) -> Vec<Amount> {
        let mut sizes = vec![Amount::default(); self.moments().len()];
        for (came, went, amount) in self.seen() {
            let seen = sizes.get_mut(came..went).unwrap_or_default();
            seen.iter_mut().for_each(|size| size.add(amount));
        }
        sizes
    }

    /// What came and went from one set to a later one.
    pub(super) fn change(&self, from: Seen, to: Seen) -> Change {
        let mut change = Change::default();
        for (came, went, amount) in self.seen() {
            let (before, after) =
                (came <= from.since && went > from.at, came <= to.since && went > to.at);
            match (before, after) {
                (false, true) => change.came.add(amount),
                (true, false) => change.went.add(amount),
                _ => {}
            }
        }
        change
    }

    /// What was in any of these sets, and what of it is still seen at a later moment.
    pub(super) fn kept_of(&self, sets: &[Seen], until: usize) -> (Amount, Amount) {
        let (mut all, mut kept) = (Amount::default(), Amount::default());
        for (came, went, amount) in self.seen() {
            if sets.iter().any(|set| came <= set.since && went > set.at) {
                all.add(amount);
                if went > until {
                    kept.add(amount);
                }
            }
        }
        (all, kept)
    }

    /// What was seen and went between two moments, of what was seen since a number of moments at least:
    /// what goes is as old as that.
    pub(super) fn lost(&self, from: usize, to: usize, lag: usize) -> f64 {
        let gone = |&&((came, went), _): &&((usize, usize), Amount)| {
            went > from && went <= to && came + lag < went
        };
        self.gone.iter().filter(gone).map(|(_, amount)| amount.count()).sum()
    }

    /// The age that a tenth of what is seen at a moment has at least, in microseconds.
    pub(super) fn oldest_tenth(&self, at: usize) -> u64 {
        let moments = self.moments();
        let mut by_moment = vec![0.0; moments.len()];
        for (came, went, amount) in self.seen() {
            if came <= at && went > at {
                by_moment[came] += amount.count();
            }
        }
        let all: f64 = by_moment.iter().sum();
        let mut sum = 0.0;
        for (truth, count) in moments.iter().zip(by_moment) {
            sum += count;
            if count > 0.0 && sum * 10.0 >= all {
                return moments.get(at).map_or(0, |now| now.at.saturating_sub(truth.at));
            }
        }
        0
    }
}
