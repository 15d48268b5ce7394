//! Which block ids were used, to detect one that is used twice.

use std::collections::BTreeMap;

/// A set of ids as ranges. Domains take ids in blocks and use them up in
/// order, so there are few ranges however many ids.
#[derive(Default)]
pub(crate) struct UsedIds {
    /// Start → end of each range; ranges neither overlap nor touch.
    ranges: BTreeMap<u64, u64>,
}

/// More ranges than any sound trace has; beyond this nothing is added.
const MAX_RANGES: usize = 1 << 16;

impl UsedIds {
    /// The range that begins at or below an id, and the next one.
    fn around(&self, id: u64) -> [Option<(u64, u64)>; 2] {
        let before = self.ranges.range(..=id).next_back();
        let after = self.ranges.range(id.saturating_add(1)..).next();
        [before, after].map(|range| range.map(|(&start, &end)| (start, end)))
    }

    /// Whether some of the ids from `first` to below `next` were used.
    pub(crate) fn overlap(&self, first: u64, next: u64) -> bool {
        let [before, after] = self.around(first);
        first < next
            && (before.is_some_and(|(_, end)| end > first)
                || after.is_some_and(|(start, _)| start < next))
    }

    /// Whether this id was used.
    pub(crate) fn contains(&self, id: u64) -> bool {
        self.ranges.range(..=id).next_back().is_some_and(|(_, &end)| id < end)
    }

    /// Adds the ids from `first` to below `next`, which do not overlap.
    pub(crate) fn add(&mut self, first: u64, next: u64) {
        if first >= next || self.ranges.len() >= MAX_RANGES {
            return;
        }
        let [before, after] = self.around(first);
        let start = before.filter(|&(_, end)| end == first).map_or(first, |(start, _)| start);
        let end = after.filter(|&(start, _)| start == next).map_or(next, |(start, end)| {
            self.ranges.remove(&start);
            end
        });
        self.ranges.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::UsedIds;

    #[test]
    fn overlaps_are_found_and_adjacent_ranges_merge() {
        let mut used = UsedIds::default();
        used.add(10, 20);
        used.add(30, 40);
        for (first, next) in [(19, 21), (25, 31), (0, 100), (10, 11), (10, 20), (39, 40)] {
            assert!(used.overlap(first, next), "{first}..{next}");
        }
        for (first, next) in [(0, 10), (20, 30), (40, 50), (5, 5), (15, 15)] {
            assert!(!used.overlap(first, next), "{first}..{next}");
        }
        for (id, is_used) in [(9, false), (10, true), (19, true), (20, false), (40, false)] {
            assert_eq!(used.contains(id), is_used, "{id}");
        }
        used.add(20, 30);
        assert_eq!(used.ranges.len(), 1);
        assert!(used.overlap(25, 26));
        used.add(0, 10);
        assert_eq!(used.ranges.iter().collect::<Vec<_>>(), [(&0, &40)]);
    }
}
