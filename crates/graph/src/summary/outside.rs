//! What custom blocks keep outside the heap, in bounded memory.

use std::collections::BTreeMap;

use heaptap_heap::{CustomBlock, OutsideArea};

use crate::graph::{AreaRange, OutsideBytes, for_each_area};

/// At most this number of ranges are compared with each other.
const MOST_RANGES: usize = 1 << 20;

/// Sums while a file is read.
#[derive(Debug, Default)]
pub(super) struct OutsideSums {
    /// By the operations of the block.
    ranges: Vec<AreaRange<u64>>,
    /// What did not fit, each block's in full.
    rest: BTreeMap<u64, OutsideBytes>,
    /// What blocks say that they show.
    shown: BTreeMap<u64, u64>,
    all_shown: u64,
}

impl OutsideSums {
    pub(super) fn add_custom(&mut self, custom: CustomBlock, most_kinds: usize) {
        let CustomBlock { operations, outside_bytes } = custom;
        self.all_shown = self.all_shown.saturating_add(outside_bytes);
        if self.shown.contains_key(&operations) || self.shown.len() < most_kinds {
            let sum = self.shown.entry(operations).or_default();
            *sum = sum.saturating_add(outside_bytes);
        }
    }

    pub(super) fn add_area(&mut self, area: &OutsideArea, most_kinds: usize) {
        self.ranges.extend(AreaRange::new(area, area.operations));
        if self.ranges.len() >= MOST_RANGES {
            self.join(most_kinds);
        }
    }

    /// Slices become the area that they are of. If that does not help, areas are as good as counted.
    fn join(&mut self, most_kinds: usize) {
        let mut joined: Vec<AreaRange<u64>> = Vec::new();
        for_each_area(&mut self.ranges, |area, ranges| {
            let start = ranges.first().map_or(0, |range| range.start);
            let end = start.saturating_add(area.bytes);
            let mut owners: Vec<u64> = ranges.iter().map(|range| range.owner).collect();
            owners.sort_unstable();
            owners.dedup();
            let kind = area.kind;
            joined.extend(owners.into_iter().map(|owner| AreaRange { start, end, kind, owner }));
        });
        if joined.len() > MOST_RANGES / 2 {
            count(&mut joined, &mut self.rest, most_kinds);
            joined.clear();
        }
        self.ranges = joined;
    }

    /// All, and by operations.
    pub(super) fn finish(
        mut self,
        most_kinds: usize,
    ) -> (OutsideBytes, BTreeMap<u64, OutsideBytes>) {
        let mut by_kind = std::mem::take(&mut self.rest);
        let mut all = by_kind.values().copied().fold(OutsideBytes::default(), OutsideBytes::plus);
        all = all.plus(count(&mut self.ranges, &mut by_kind, most_kinds));
        // Of kinds without areas, all that they show is their own.
        let with_areas = self.shown.iter().filter(|(kind, _)| by_kind.contains_key(kind));
        let elsewhere = with_areas.fold(0u64, |sum, (_, shown)| sum.saturating_add(*shown));
        let own = self.all_shown.saturating_sub(elsewhere);
        for (kind, allocated) in self.shown {
            by_kind.entry(kind).or_insert(OutsideBytes { allocated, mapped: 0 });
        }
        (all.plus(OutsideBytes { allocated: own, mapped: 0 }), by_kind)
    }
}

/// Adds areas to the sums of their kinds, each area once for a kind; returns the sum of the areas.
fn count(
    ranges: &mut [AreaRange<u64>],
    by_kind: &mut BTreeMap<u64, OutsideBytes>,
    most_kinds: usize,
) -> OutsideBytes {
    let mut all = OutsideBytes::default();
    for_each_area(ranges, |area, ranges| {
        all = all.plus(area.into());
        let mut owners: Vec<u64> = ranges.iter().map(|range| range.owner).collect();
        owners.sort_unstable();
        owners.dedup();
        for owner in owners {
            if by_kind.contains_key(&owner) || by_kind.len() < most_kinds {
                let sum = by_kind.entry(owner).or_default();
                *sum = sum.plus(area.into());
            }
        }
    });
    all
}
