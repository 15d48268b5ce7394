//! The counts of a call path.

use std::ops::Deref;

use crate::estimate::Sampled;

/// Counts of the blocks of a path: samples, or, of a trace with several rates, what they stand for
/// ([`crate::Rates`]).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Allocated.
    pub allocated: u64,
    /// Moved to the old generation.
    pub promoted: u64,
    /// Alive at the end.
    pub live: u64,
    /// Alive at the end, and seen by a collection: not young.
    pub survived: u64,
    /// Alive when their trace ended, of traces that ended before the last event.
    pub ended: u64,
    /// Of those that are not tracked any more, the samples that a collection had seen.
    pub(crate) ended_old: u64,
    /// Of `ended`, the samples whose process went on in another file: any number of them may
    /// have been collected since.
    pub carried: u64,
    /// Alive when the most was alive.
    pub peak: u64,
    /// Alive at the time that was asked for.
    pub at: u64,
    /// Collected.
    pub died: u64,
    /// The lifetimes of those: samples × microseconds.
    pub lifetime: f64,
    /// The number of blocks allocated, estimated from the samples.
    pub blocks: f64,
    /// The number of the peak for which `peak` is up to date.
    pub(crate) peak_number: u64,
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: &Counts) {
        self.allocated = self.allocated.saturating_add(other.allocated);
        self.promoted = self.promoted.saturating_add(other.promoted);
        self.live = self.live.saturating_add(other.live);
        self.survived = self.survived.saturating_add(other.survived);
        self.ended = self.ended.saturating_add(other.ended);
        self.ended_old = self.ended_old.saturating_add(other.ended_old);
        self.carried = self.carried.saturating_add(other.carried);
        self.peak = self.peak.saturating_add(other.peak);
        self.at = self.at.saturating_add(other.at);
        self.died = self.died.saturating_add(other.died);
        self.lifetime += other.lifetime;
        self.blocks += other.blocks;
    }

    /// Adds counts that are settled for the same peak.
    pub(crate) fn take(&mut self, other: &Counts) {
        self.add(other);
        self.peak_number = other.peak_number;
    }

    /// To be called before `live` changes. Until its first change after a peak, `live`
    /// is what was alive at that peak.
    pub(crate) fn settle(&mut self, peak_number: u64) {
        if self.peak_number != peak_number {
            self.peak = self.live;
            self.peak_number = peak_number;
        }
    }
}

/// Counts of any paths, with their variances. These are counts of the same things in a unit of
/// their own, and 0 in a trace with one rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub(crate) counts: Counts,
    pub(crate) variances: Counts,
}

impl Tally {
    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        self.counts.add(&other.counts);
        self.variances.add(&other.variances);
    }

    /// One of the counts with its variance.
    pub(crate) fn sampled(&self, of: impl Fn(&Counts) -> u64) -> Sampled {
        Sampled { count: of(&self.counts), variance: of(&self.variances) }
    }
}

impl Deref for Tally {
    type Target = Counts;

    fn deref(&self) -> &Counts {
        &self.counts
    }
}

/// The counts of paths by number, with their variances.
#[derive(Clone, Default)]
pub(crate) struct Tallies {
    pub(crate) counts: Vec<Counts>,
    /// As many, or none of a trace with one rate.
    pub(crate) variances: Vec<Counts>,
    /// Whether there are variances.
    are_mixed: bool,
}

impl Tallies {
    /// Of no paths.
    pub(crate) fn new(are_mixed: bool) -> Tallies {
        Tallies { are_mixed, ..Tallies::default() }
    }

    /// So many that are all the same.
    pub(crate) fn filled(are_mixed: bool, number: usize, with: Counts) -> Tallies {
        let variances = if are_mixed { vec![with; number] } else { Vec::new() };
        Tallies { counts: vec![with; number], variances, are_mixed }
    }

    pub(crate) fn are_mixed(&self) -> bool {
        self.are_mixed
    }

    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    pub(crate) fn resize(&mut self, number: usize) {
        self.counts.resize(number, Counts::default());
        if self.are_mixed {
            self.variances.resize(number, Counts::default());
        }
    }

    /// Those of a path.
    #[inline]
    pub(crate) fn get(&self, path: usize) -> Tally {
        let variances = self.variances.get(path).copied().unwrap_or_default();
        Tally { counts: self.counts[path], variances }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Tally> {
        (0..self.len()).map(|path| self.get(path))
    }

    /// Changes the counts of a path by so much, and its variances in the same way.
    #[inline]
    pub(crate) fn change(&mut self, path: usize, by: Sampled, change: impl Fn(&mut Counts, u64)) {
        if let Some(counts) = self.counts.get_mut(path) {
            change(counts, by.count);
        }
        if let Some(variances) = self.variances.get_mut(path) {
            change(variances, by.variance);
        }
    }

    /// All counts and all variances.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Counts> {
        self.counts.iter_mut().chain(&mut self.variances)
    }

    /// Adds a tally that is settled for the same peak.
    pub(crate) fn take(&mut self, path: usize, tally: &Tally) {
        self.counts[path].take(&tally.counts);
        if let Some(variances) = self.variances.get_mut(path) {
            variances.take(&tally.variances);
        }
    }
}
