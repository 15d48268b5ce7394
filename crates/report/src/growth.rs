//! The live size of each allocating frame and frame of own code, over time.
//!
//! The live samples of all such pairs are summed up at up to [`POINTS`] evenly spaced
//! times. When the trace outgrows them, every second point is dropped. A program has
//! thousands of pairs, but may have millions of call paths: a series for each path would
//! bound their number.

use hashbrown::HashMap;

use crate::cohorts::{Cohorts, LARGE};
use crate::counts::Counts;
use crate::estimate::Sampled;
use crate::paths::{PathMoves, is_stand_in};
use crate::sweeps::{SLOTS, Sweeps};

/// The most points: one at the end of each slot of [`Sweeps`].
pub(crate) const POINTS: usize = SLOTS;

/// The frames of a path that may be its site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SitePair {
    /// The frame that allocates.
    pub(crate) innermost: u32,
    /// The innermost frame of own code; the one that allocates if there is none.
    pub(crate) own: u32,
}

/// Live samples of all pairs of frames, at evenly spaced times.
#[derive(Default)]
pub(crate) struct Growth {
    width: u64,
    /// The live samples by series. A series beyond the end did not exist yet.
    points: Vec<Vec<u64>>,
    /// The series of each path. A path beyond the end has none.
    of_paths: Vec<u32>,
    /// The series of each pair.
    numbers: HashMap<SitePair, u32>,
    /// When something old was collected: in microseconds, and in samples allocated before.
    pub(crate) by_time: Sweeps,
    pub(crate) by_progress: Sweeps,
    /// What was reachable when the collector's cycles began, if these are known.
    pub(crate) cohorts: Cohorts,
}

/// The first width.
const WIDTH: u64 = 1024;

impl Growth {
    pub(crate) fn new() -> Self {
        Growth {
            width: WIDTH,
            points: Vec::new(),
            of_paths: Vec::new(),
            numbers: HashMap::new(),
            by_time: Sweeps::new(WIDTH),
            by_progress: Sweeps::new(1),
            cohorts: Cohorts::default(),
        }
    }

    /// That of a trace which lasts this long, with no points yet. They are as far apart
    /// as they would be in a reading.
    pub(crate) fn for_duration(duration: u64) -> Self {
        let mut growth = Growth::new();
        while duration / growth.width > POINTS as u64 {
            growth.width *= 2;
        }
        growth
    }

    /// How many points there are until this time.
    pub(crate) fn points_until(&self, time: u64) -> usize {
        (time / self.width) as usize
    }

    /// Adds the next point.
    pub(crate) fn push(&mut self, live: impl Iterator<Item = u64>) {
        self.points.push(live.collect());
    }

    /// Microseconds between points. The first point is that far from the start.
    pub(crate) fn width(&self) -> u64 {
        self.width
    }

    /// Whether a point is to be taken before the first event at `time`.
    pub(crate) fn is_due(&self, time: u64) -> bool {
        time / self.width > self.points.len() as u64
    }

    /// The path with the next number, or one after it, has these frames.
    pub(crate) fn add_path(&mut self, path: u32, frames: SitePair) {
        let next = self.numbers.len() as u32;
        let series = *self.numbers.entry(frames).or_insert(next);
        self.of_paths.resize(path as usize + 1, series);
    }

    /// How many series of paths there are.
    pub(crate) fn series_count(&self) -> usize {
        self.numbers.len()
    }

    /// The series of a path that was added.
    pub(crate) fn series_of_path(&self, path: u32) -> u32 {
        self.of_paths.get(path as usize).copied().unwrap_or(0)
    }

    /// Takes all points up to `time`: what is alive of each path now.
    pub(crate) fn take(&mut self, time: u64, counts: &[Counts]) {
        while time / self.width > POINTS as u64 {
            self.width *= 2;
            let mut odd = false;
            self.points.retain(|_| {
                odd = !odd;
                !odd
            });
        }
        let due = (time / self.width) as usize;
        if due > self.points.len() {
            let now = self.live_by_series(counts);
            self.points.resize(due, now);
        }
    }

    fn live_by_series(&self, counts: &[Counts]) -> Vec<u64> {
        let mut live = vec![0_u64; self.numbers.len()];
        for (&series, counts) in self.of_paths.iter().zip(counts) {
            let sum = &mut live[series as usize];
            *sum = sum.saturating_add(counts.live);
        }
        live
    }

    /// Records that an old object was collected at `time`, after so many samples were
    /// allocated.
    pub(crate) fn old_died(&mut self, time: u64, progress: u64) {
        self.by_time.record(time);
        self.by_progress.record(progress);
    }

    /// Records that an object of so many samples was allocated, which may be the largest of its site.
    #[inline]
    pub(crate) fn born(&mut self, path: u32, birth: u64, samples: u64, sampled: Sampled) {
        if samples >= LARGE {
            self.cohorts.large(self.series_of_path(path), birth, sampled);
        }
    }

    /// Renumbers paths. The frames that may be their sites are the last that they lose.
    pub(crate) fn move_paths(&mut self, moves: &PathMoves) {
        let mut of_paths = vec![0; moves.count];
        for (&series, &to) in self.of_paths.iter().zip(&moves.to) {
            of_paths[to as usize] = series;
        }
        self.of_paths = of_paths;
    }

    /// The live samples of a series at each point.
    pub(crate) fn series(&self, number: u32) -> impl Iterator<Item = u64> {
        self.points.iter().map(move |point| point.get(number as usize).copied().unwrap_or(0))
    }

    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }
}

/// The number of a frame's series in a history by site. All that stands for no frame of the trace is
/// one series.
pub(crate) fn series_of(frame: u32) -> u32 {
    if is_stand_in(frame) { 0 } else { frame + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_even_whatever_the_length() {
        let mut growth = Growth::new();
        growth.add_path(0, SitePair { innermost: 7, own: 3 });
        for step in 0..10_000_u64 {
            let time = step * 1000;
            if growth.is_due(time) {
                // What was alive just before this time.
                growth.take(time, &[Counts { live: time, ..Counts::default() }]);
            }
        }
        assert!(growth.len() > POINTS / 2 && growth.len() <= POINTS);
        for (index, at) in growth.series(0).enumerate() {
            let due = (index as u64 + 1) * growth.width();
            assert!(at >= due && at < due + 1000, "point {index} was taken at {at}");
        }
        assert_eq!(growth.series(1).sum::<u64>(), 0);
    }
    #[test]
    fn paths_of_the_same_frames_are_one_series() {
        let mut growth = Growth::new();
        let pairs = [(4, 1), (9, 1), (4, 1), (4, 2)];
        let pairs = pairs.map(|(innermost, own)| SitePair { innermost, own });
        let counts: Vec<Counts> =
            (1..=4).map(|live| Counts { live, ..Counts::default() }).collect();
        pairs.iter().enumerate().for_each(|(path, &pair)| growth.add_path(path as u32, pair));
        growth.take(WIDTH, &counts);
        let live =
            |growth: &Growth, path| growth.series(growth.series_of_path(path)).collect::<Vec<_>>();
        assert_eq!([0, 1, 2, 3].map(|path| live(&growth, path)), [[4], [2], [4], [4]]);
        assert_eq!(
            (growth.series_count(), growth.series_of_path(0)),
            (3, growth.series_of_path(2))
        );
        // The first and the third are joined.
        growth.move_paths(&PathMoves { to: vec![1, 0, 1, 2], count: 3 });
        assert_eq!([0, 1, 2].map(|path| live(&growth, path)), [[2], [4], [4]]);
    }
}
