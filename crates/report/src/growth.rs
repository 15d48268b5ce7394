//! The live size of each path over time. A table of blocks gives that of each frame that
//! allocates instead.
//!
//! The live samples of all paths are copied at up to [`POINTS`] evenly spaced
//! times. When the trace outgrows them, every second point is dropped.

use crate::paths::PathMoves;
use crate::sweeps::{SLOTS, Sweeps};

/// The most points: one at the end of each slot of [`Sweeps`].
pub(crate) const POINTS: usize = SLOTS;

/// Live samples of all paths at evenly spaced times.
#[derive(Default)]
pub(crate) struct Growth {
    width: u64,
    /// The live samples by path. A path beyond the end did not exist yet.
    points: Vec<Vec<u32>>,
    /// When something old was collected: in microseconds, and in samples allocated before.
    pub(crate) by_time: Sweeps,
    pub(crate) by_progress: Sweeps,
}

/// The first width.
const WIDTH: u64 = 1024;

impl Growth {
    pub(crate) fn new() -> Self {
        Growth {
            width: WIDTH,
            points: Vec::new(),
            by_time: Sweeps::new(WIDTH),
            by_progress: Sweeps::new(1),
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
    pub(crate) fn push(&mut self, live: impl Iterator<Item = u32>) {
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

    /// Takes all points up to `time`.
    pub(crate) fn take(&mut self, time: u64, live: impl Fn() -> Vec<u32>) {
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
            let now = live();
            self.points.resize(due, now);
        }
    }

    /// Records that an old object was collected at `time`, after so many samples were
    /// allocated.
    pub(crate) fn old_died(&mut self, time: u64, progress: u64) {
        self.by_time.record(time);
        self.by_progress.record(progress);
    }

    /// Renumbers paths.
    pub(crate) fn move_paths(&mut self, moves: &PathMoves) {
        for point in &mut self.points {
            let mut new = vec![0_u32; moves.count];
            for (&samples, &to) in point.iter().zip(&moves.to) {
                let into = &mut new[to as usize];
                *into = into.saturating_add(samples);
            }
            *point = new;
        }
    }

    /// The live samples of a path at each point.
    pub(crate) fn series(&self, path: u32) -> impl Iterator<Item = u64> {
        self.points
            .iter()
            .map(move |point| u64::from(point.get(path as usize).copied().unwrap_or(0)))
    }

    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_even_whatever_the_length() {
        let mut growth = Growth::new();
        for step in 0..10_000_u64 {
            let time = step * 1000;
            if growth.is_due(time) {
                // What was alive just before this time.
                growth.take(time, || vec![time as u32]);
            }
        }
        assert!(growth.len() > POINTS / 2 && growth.len() <= POINTS);
        for (index, at) in growth.series(0).enumerate() {
            let due = (index as u64 + 1) * growth.width();
            assert!(at >= due && at < due + 1000, "point {index} was taken at {at}");
        }
        assert_eq!(growth.series(1).sum::<u64>(), 0);
    }
}
