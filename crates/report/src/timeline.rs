//! Allocated and live samples over time.
//!
//! There are at most [`BUCKETS`] buckets. When the trace outgrows them, they are
//! joined in pairs, so that a trace of any length fits, and its length need not be
//! known.

use crate::estimate::Sampled;

/// The most buckets.
pub(crate) const BUCKETS: usize = 1024;

/// A bucket of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Samples allocated in it.
    pub allocated: u64,
    /// The largest number of live samples in it.
    pub most_live: u64,
    /// The number of live samples at its end.
    pub live: Sampled,
}

/// Buckets of equal width, from the start of the trace.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// A bucket is 2^shift microseconds wide.
    shift: u32,
    /// Never empty.
    buckets: Vec<Bucket>,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Timeline { shift: 0, buckets: vec![Bucket::default()] }
    }

    /// Buckets of this width; `None` if that is no power of two, or if there are none or
    /// too many.
    pub(crate) fn of(width: u64, buckets: Vec<Bucket>) -> Option<Self> {
        let is_one = width.is_power_of_two() && (1..=BUCKETS).contains(&buckets.len());
        is_one.then(|| Timeline { shift: width.trailing_zeros(), buckets })
    }

    /// Microseconds in a bucket.
    pub fn width(&self) -> u64 {
        1 << self.shift
    }

    /// The buckets; the last one may not be over.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// The samples allocated up to each time.
    pub(crate) fn progress(&self) -> Progress {
        let mut sums = vec![0_u64];
        for bucket in &self.buckets {
            sums.push(sums[sums.len() - 1].saturating_add(bucket.allocated));
        }
        Progress { width: self.width(), sums }
    }

    /// The bucket of this time, which is not before that of the last call.
    #[inline]
    pub(crate) fn at(&mut self, time: u64) -> &mut Bucket {
        let last = self.buckets.len() - 1;
        if time >> self.shift > last as u64 {
            return self.extend(time);
        }
        &mut self.buckets[last]
    }

    fn extend(&mut self, time: u64) -> &mut Bucket {
        while time >> self.shift >= BUCKETS as u64 {
            self.halve();
        }
        let index = (time >> self.shift) as usize;
        let live = self.buckets.last().map(|bucket| bucket.live).unwrap_or_default();
        let quiet = Bucket { allocated: 0, most_live: live.count, live };
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, quiet);
        }
        let last = self.buckets.len() - 1;
        &mut self.buckets[last]
    }

    fn halve(&mut self) {
        self.shift += 1;
        let pairs = self.buckets.chunks(2).map(|pair| Bucket {
            allocated: pair.iter().fold(0, |sum, bucket| bucket.allocated.saturating_add(sum)),
            most_live: pair.iter().map(|bucket| bucket.most_live).max().unwrap_or(0),
            live: pair.last().map(|bucket| bucket.live).unwrap_or_default(),
        });
        self.buckets = pairs.collect();
    }
}

/// How far a program has come, by what it allocates: a clock that stops while the program
/// does. It is linear within a bucket.
pub(crate) struct Progress {
    width: u64,
    /// The samples allocated before each bucket, and before the end.
    sums: Vec<u64>,
}

impl Progress {
    /// The samples allocated up to this time.
    pub(crate) fn at(&self, time: u64) -> f64 {
        let index = ((time / self.width) as usize).min(self.sums.len() - 1);
        let next = self.sums.get(index + 1).copied().unwrap_or(self.sums[index]);
        let within = (time % self.width) as f64 / self.width as f64;
        self.sums[index] as f64 + within * (next - self.sums[index]) as f64
    }

    /// The first time at which so many samples were allocated, or the end.
    pub(crate) fn time_of(&self, samples: u64) -> u64 {
        let index = self.sums.partition_point(|&sum| sum < samples).min(self.sums.len() - 1);
        let Some(before) = index.checked_sub(1) else { return 0 };
        let (from, to) = (self.sums[before], self.sums[index]);
        let within = samples.min(to).saturating_sub(from) as f64 / (to - from).max(1) as f64;
        self.width.saturating_mul(before as u64).saturating_add((within * self.width as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_what_was_allocated_before() {
        let mut line = Timeline::new();
        for time in [0, 100, 100, 5000] {
            line.at(time).allocated += 1;
        }
        let progress = line.progress();
        assert_eq!([0, 120, 4000, 9999].map(|time| progress.at(time)), [0.0, 3.0, 3.0, 4.0]);
        assert!((0..9999).all(|time| progress.at(time) <= progress.at(time + 1)));
        assert_eq!([0, 1].map(|samples| progress.time_of(samples)), [0, line.width()]);
        for samples in 1..=4 {
            // That many, and fewer just before.
            let time = progress.time_of(samples);
            assert!(progress.at(time) <= samples as f64 && progress.at(time + 1) >= samples as f64);
            assert!(progress.at(time - 1) < samples as f64);
        }
        assert_eq!(progress.time_of(5), line.buckets().len() as u64 * line.width());
    }

    #[test]
    fn nothing_is_lost_when_buckets_are_joined() {
        let mut line = Timeline::new();
        for step in 0..5000_u64 {
            let bucket = line.at(step * step);
            bucket.allocated += 1;
            bucket.live = Sampled { count: step, variance: 2 * step };
            bucket.most_live = bucket.most_live.max(step);
        }
        assert!(line.buckets().len() <= BUCKETS);
        let allocated: u64 = line.buckets().iter().map(|bucket| bucket.allocated).sum();
        assert_eq!(allocated, 5000);
        for (index, bucket) in line.buckets().iter().enumerate() {
            let end = (index as u64 + 1) * line.width();
            let last = (0..5000_u64).rev().find(|step| step * step < end).unwrap();
            let found = (bucket.live.count, bucket.live.variance, bucket.most_live);
            assert_eq!(found, (last, 2 * last, last), "bucket {index}");
        }
    }
}
