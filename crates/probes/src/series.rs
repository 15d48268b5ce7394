//! A quantity over time, and how many points of it become fewer.

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
}
