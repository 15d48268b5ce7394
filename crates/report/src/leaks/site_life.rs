//! What one site had reachable at each moment.

use crate::cohorts::{Amount, Record};
use crate::truths::{Truth, Truths};

/// The evidence on one site.
pub(super) struct SiteLife<'a> {
    truths: &'a Truths,
    /// What was seen and went: the first moment with it, the first without it.
    gone: Vec<((usize, usize), Amount)>,
    /// Birth and samples of each block that is alive at the end, the oldest first.
    alive: Vec<(u64, f64)>,
    records: Vec<Record>,
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
        self.came.samples - self.went.samples
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
        mut alive: Vec<(u64, f64)>,
        records: Vec<Record>,
        end: u64,
    ) -> SiteLife<'a> {
        alive.sort_unstable_by_key(|&(birth, _)| birth);
        SiteLife { truths, gone, alive, records, end }
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
    pub(super) fn alive_from(&self, from: u64, to: u64) -> &[(u64, f64)] {
        let first = self.alive.partition_point(|&(birth, _)| birth < from);
        let behind = self.alive.partition_point(|&(birth, _)| birth < to);
        self.alive.get(first..behind).unwrap_or_default()
    }

    /// All of them that were born since.
    pub(super) fn alive_since(&self, from: u64) -> &[(u64, f64)] {
        let first = self.alive.partition_point(|&(birth, _)| birth < from);
        self.alive.get(first..).unwrap_or_default()
    }

    /// What was seen: the moments of each block, and its amount.
    fn seen(&self) -> impl Iterator<Item = (usize, usize, Amount)> + '_ {
        let gone = self.gone.iter().map(|&((came, went), amount)| (came, went, amount));
        let never = self.moments().len();
        let seen = move |&(birth, samples): &(u64, f64)| {
            let came = self.truths.first_after(birth);
            (came < never).then(|| (came, never, Amount::of(samples)))
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

    /// What was seen and went between two moments, of what was seen since a number of moments at least:
    /// what goes is as old as that.
    pub(super) fn lost(&self, from: usize, to: usize, lag: usize) -> f64 {
        let gone = |&&((came, went), _): &&((usize, usize), Amount)| {
            went > from && went <= to && came + lag < went
        };
        self.gone.iter().filter(gone).map(|(_, amount)| amount.samples).sum()
    }

    /// The age that a tenth of what is seen at a moment has at least, in microseconds.
    pub(super) fn oldest_tenth(&self, at: usize) -> u64 {
        let moments = self.moments();
        let mut by_moment = vec![0.0; moments.len()];
        for (came, went, amount) in self.seen() {
            if came <= at && went > at {
                by_moment[came] += amount.samples;
            }
        }
        let all: f64 = by_moment.iter().sum();
        let mut sum = 0.0;
        for (truth, samples) in moments.iter().zip(by_moment) {
            sum += samples;
            if samples > 0.0 && sum * 10.0 >= all {
                return moments.get(at).map_or(0, |now| now.at.saturating_sub(truth.at));
            }
        }
        0
    }
}
