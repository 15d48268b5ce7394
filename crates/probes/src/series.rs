//! A quantity over time, and how many points of it become fewer.

use crate::event::Spacing;

/// How far apart the rows of a file are, and where. Those of an ordinary file are a tick apart
/// wherever a quantity changed.
#[derive(Clone, Debug, Default)]
pub struct Spacings {
    /// Each with its first time.
    parts: Vec<(u64, Spacing)>,
}

impl Spacings {
    /// The most parts: a writer makes a few.
    const MOST: usize = 256;

    /// How long a time a row at this time stands for, in nanoseconds; 0 for just its own.
    #[must_use]
    pub fn at(&self, time: u64) -> u64 {
        let inside = self.parts.iter().filter(|(from, part)| (*from..=part.until).contains(&time));
        // What happened before the part begins is in the rows before it.
        inside.map(|(from, part)| part.ns.min(time - from)).max().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, from: u64, part: Spacing) {
        if self.parts.len() < Self::MOST {
            self.parts.push((from, part));
        }
    }
}

/// A quantity over time.
#[derive(Clone, Debug)]
pub struct Series<T> {
    /// In order of time. Never empty runs: a quantity that did not change has no point.
    pub points: Vec<(u64, T)>,
}

impl<T> Default for Series<T> {
    fn default() -> Self {
        Series { points: Vec::new() }
    }
}

impl<T: Merge + Clone> Series<T> {
    /// The last point.
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.points.last().map(|(_, value)| value)
    }

    /// The value at a moment: that of the last point that is not later.
    #[must_use]
    pub fn at(&self, time: u64) -> Option<&T> {
        let behind = self.points.partition_point(|&(at, _)| at <= time);
        self.points.get(behind.checked_sub(1)?).map(|(_, value)| value)
    }

    /// What a total was at a moment. Where rows are apart, it is taken to have grown evenly in the time
    /// that a row stands for: so it grows between any two moments, and all growth adds up to the last.
    /// Before the time of the first point it is not known.
    pub fn total_at(
        &self,
        time: u64,
        spacing: &Spacings,
        total: impl Fn(&T) -> Option<u64>,
    ) -> Option<u64> {
        let behind = self.points.partition_point(|&(at, _)| at <= time);
        let before = behind.checked_sub(1).and_then(|at| self.points.get(at));
        let known = before.and_then(|(_, point)| total(point));
        let Some((next_at, next)) = self.points.get(behind) else { return known };
        let stands_from = next_at.saturating_sub(spacing.at(*next_at));
        let begin = before.map_or(stands_from, |(at, _)| stands_from.max(*at));
        let at_begin = known.unwrap_or(0);
        let Some(growth) = total(next).and_then(|next| next.checked_sub(at_begin)) else {
            return known;
        };
        if time <= begin {
            return known;
        }
        let (passed, whole) = (u128::from(time - begin), u128::from(next_at - begin));
        // Less than the growth, since the next point is later than the moment.
        Some(at_begin + (u128::from(growth) * passed / whole) as u64)
    }

    pub(crate) fn push(&mut self, time: u64, value: T) {
        // One clock writes a file, but a damaged file may say anything.
        let time = self.points.last().map_or(time, |&(last, _)| time.max(last));
        self.points.push((time, value));
    }

    /// Merges each point with an even number, but for the last one, into the next.
    pub(crate) fn thin(&mut self) {
        let mut kept = Vec::with_capacity(self.points.len() / 2 + 1);
        for pair in self.points.chunks(2) {
            match pair {
                [(_, first), (time, second)] => {
                    let mut merged = second.clone();
                    merged.merge(first);
                    kept.push((*time, merged));
                }
                rest => kept.extend_from_slice(rest),
            }
        }
        self.points = kept;
    }
}

/// Takes over what an earlier point of a series alone knows.
pub trait Merge {
    /// Merges the point before this one into it. Totals need nothing.
    fn merge(&mut self, _before: &Self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sample;

    #[test]
    fn a_moment_has_the_last_value_before_it() {
        let mut series = Series::default();
        series.push(10, Sample::Count(1));
        series.push(20, Sample::Count(2));
        assert_eq!(series.at(9), None);
        assert_eq!(series.at(10), Some(&Sample::Count(1)));
        assert_eq!(series.at(25), Some(&Sample::Count(2)));
    }

    #[test]
    fn a_total_grows_evenly_in_the_time_that_a_row_stands_for() {
        let mut series = Series::default();
        series.push(1_000, Sample::Count(10));
        series.push(2_000, Sample::Count(20));
        series.push(9_000, Sample::Count(30));
        let count = |sample: &Sample| match sample {
            Sample::Count(total) => Some(*total),
            _ => None,
        };
        let none = Spacings::default();
        let at = |time, spacing: &Spacings| series.total_at(time, spacing, count);
        assert_eq!(
            (at(999, &none), at(1_999, &none), at(2_000, &none)),
            (None, Some(10), Some(20))
        );
        let mut spacing = Spacings::default();
        spacing.add(0, Spacing { until: 9_500, ns: 1_000 });
        assert_eq!((at(1_000, &spacing), at(1_500, &spacing)), (Some(10), Some(15)));
        assert_eq!((at(0, &spacing), at(500, &spacing)), (None, Some(5)));
        // It rested before the row's own time began.
        assert_eq!((at(7_999, &spacing), at(8_500, &spacing)), (Some(20), Some(25)));
        assert_eq!((at(9_000, &spacing), at(u64::MAX, &spacing)), (Some(30), Some(30)));
        // A hostile file: totals that fall, and a spacing longer than all time.
        spacing.add(0, Spacing { until: u64::MAX, ns: u64::MAX });
        series.push(u64::MAX, Sample::Count(0));
        assert_eq!(series.total_at(10_000, &spacing, count), Some(30));
    }
}
