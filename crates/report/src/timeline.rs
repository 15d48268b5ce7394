//! Allocated and live samples over time.
//!
//! There are at most [`BUCKETS`] buckets. When the trace outgrows them, they are
//! joined in pairs, so that a trace of any length fits, and its length need not be
//! known.

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
    pub live: u64,
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

    /// A function from a time to the samples allocated up to it.
    pub(crate) fn progress(&self) -> impl Fn(u64) -> f64 + use<> {
        let (width, mut sum) = (self.width(), 0);
        let mut sums = vec![0];
        sums.extend(self.buckets.iter().map(|bucket| {
            sum += bucket.allocated;
            sum
        }));
        move |time| {
            let index = ((time / width) as usize).min(sums.len() - 1);
            let next = sums.get(index + 1).copied().unwrap_or(sum);
            let within = (time % width) as f64 / width as f64;
            sums[index] as f64 + within * (next - sums[index]) as f64
        }
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
        let live = self.buckets.last().map_or(0, |bucket| bucket.live);
        let quiet = Bucket { allocated: 0, most_live: live, live };
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, quiet);
        }
        let last = self.buckets.len() - 1;
        &mut self.buckets[last]
    }

    fn halve(&mut self) {
        self.shift += 1;
        let pairs = self.buckets.chunks(2).map(|pair| Bucket {
            allocated: pair.iter().map(|bucket| bucket.allocated).sum(),
            most_live: pair.iter().map(|bucket| bucket.most_live).max().unwrap_or(0),
            live: pair.last().map_or(0, |bucket| bucket.live),
        });
        self.buckets = pairs.collect();
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
        assert_eq!(
            [progress(0), progress(120), progress(4000), progress(9999)],
            [0.0, 3.0, 3.0, 4.0]
        );
        assert!((0..9999).all(|time| progress(time) <= progress(time + 1)));
    }

    #[test]
    fn nothing_is_lost_when_buckets_are_joined() {
        let mut line = Timeline::new();
        for step in 0..5000_u64 {
            let bucket = line.at(step * step);
            bucket.allocated += 1;
            bucket.live = step;
            bucket.most_live = bucket.most_live.max(step);
        }
        assert!(line.buckets().len() <= BUCKETS);
        let allocated: u64 = line.buckets().iter().map(|bucket| bucket.allocated).sum();
        assert_eq!(allocated, 5000);
        for (index, bucket) in line.buckets().iter().enumerate() {
            let end = (index as u64 + 1) * line.width();
            let last = (0..5000_u64).rev().find(|step| step * step < end).unwrap();
            assert_eq!((bucket.live, bucket.most_live), (last, last), "bucket {index}");
        }
    }
}
