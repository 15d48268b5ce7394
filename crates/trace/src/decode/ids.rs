//! Which object ids were given out, so that none is given out twice.

use std::collections::BTreeMap;

/// A set of ids as ranges. Domains take ids in blocks and use them up in
/// order, so there are few ranges however many ids.
#[derive(Default)]
pub(crate) struct UsedIds {
    /// Start → end of each range; ranges neither overlap nor touch.
    ranges: BTreeMap<u64, u64>,
}

/// More ranges than any sound trace has; beyond this we stop remembering.
const MAX_RANGES: usize = 1 << 16;

impl UsedIds {
    /// Adds the ids from `first` to below `next`; false if some are there.
    pub(crate) fn add(&mut self, first: u64, next: u64) -> bool {
        if first >= next || self.ranges.len() >= MAX_RANGES {
            return true;
        }
        let before = self.ranges.range(..=first).next_back().map(|(&start, &end)| (start, end));
        let after = self.ranges.range(first..).next().map(|(&start, &end)| (start, end));
        if before.is_some_and(|(_, end)| end > first)
            || after.is_some_and(|(start, _)| start < next)
        {
            return false;
        }
        let mut range = (first, next);
        if let Some((start, end)) = before
            && end == first
        {
            range.0 = start;
        }
        if let Some((start, end)) = after
            && start == next
        {
            self.ranges.remove(&start);
            range.1 = end;
        }
        self.ranges.insert(range.0, range.1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::UsedIds;

    #[test]
    fn ids_are_given_out_once_and_ranges_grow_together() {
        let mut used = UsedIds::default();
        assert!(used.add(10, 20));
        assert!(used.add(30, 40));
        assert!(!used.add(19, 21));
        assert!(!used.add(25, 31));
        assert!(!used.add(0, 100));
        assert!(used.add(5, 5));
        assert!(used.add(20, 30));
        assert_eq!(used.ranges.len(), 1);
        assert!(!used.add(10, 11));
        assert!(used.add(0, 10));
    }
}
