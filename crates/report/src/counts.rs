//! The counts of a call path.

/// Counts of the blocks of a path, in samples.
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
