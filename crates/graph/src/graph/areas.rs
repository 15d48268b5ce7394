//! Memory outside the heap, and the blocks that keep it.
//!
//! An array that is outside the heap and its slices have the same memory: it is there once, and goes when the
//! last of them does. Areas that overlap are one. A block without a record of its area, as in older
//! files and those of hosts, has one of its own.

use heaptap_heap::{OutsideArea, OutsideKind};

/// A custom block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CustomNode {
    /// Its block.
    pub block: u32,
    /// The address of its operations, which stands for its kind.
    pub operations: u64,
    /// The bytes that it shows outside the heap. What it keeps is in [`HeapGraph::areas_of`](super::HeapGraph::areas_of).
    pub outside_bytes: u64,
}

/// The number of an area in its [`HeapGraph`](super::HeapGraph).
pub type AreaId = u32;

/// Memory outside the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Its length.
    pub bytes: u64,
    /// Where it comes from.
    pub kind: OutsideKind,
}

/// Bytes outside the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutsideBytes {
    /// Allocated by the program.
    pub allocated: u64,
    /// Files that are mapped.
    pub mapped: u64,
}

impl OutsideBytes {
    /// The sum.
    pub fn plus(self, other: OutsideBytes) -> OutsideBytes {
        OutsideBytes {
            allocated: self.allocated.saturating_add(other.allocated),
            mapped: self.mapped.saturating_add(other.mapped),
        }
    }

    /// Without a part of it.
    pub fn minus(self, part: OutsideBytes) -> OutsideBytes {
        OutsideBytes {
            allocated: self.allocated.saturating_sub(part.allocated),
            mapped: self.mapped.saturating_sub(part.mapped),
        }
    }

    /// Whether there are none.
    pub fn is_zero(self) -> bool {
        self == OutsideBytes::default()
    }
}

impl From<Area> for OutsideBytes {
    fn from(area: Area) -> OutsideBytes {
        match area.kind {
            OutsideKind::Allocated => OutsideBytes { allocated: area.bytes, mapped: 0 },
            OutsideKind::Mapped => OutsideBytes { allocated: 0, mapped: area.bytes },
        }
    }
}

/// A range of addresses, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AreaRange<T> {
    pub(crate) start: u64,
    /// Past the last.
    pub(crate) end: u64,
    pub(crate) kind: OutsideKind,
    pub(crate) owner: T,
}

impl<T> AreaRange<T> {
    /// `None` if it is empty.
    pub(crate) fn new(area: &OutsideArea, owner: T) -> Option<AreaRange<T>> {
        let &OutsideArea { start, bytes, kind, .. } = area;
        (bytes > 0).then(|| AreaRange { start, end: start.saturating_add(bytes), kind, owner })
    }
}

/// Calls `found` with each area and the ranges of which it is made.
pub(crate) fn for_each_area<T: Ord>(
    ranges: &mut [AreaRange<T>],
    mut found: impl FnMut(Area, &[AreaRange<T>]),
) {
    ranges.sort_unstable();
    let mut rest = &*ranges;
    while let Some(&AreaRange { start, mut end, kind, .. }) = rest.first() {
        let mut count = 0;
        while let Some(range) = rest.get(count).filter(|range| range.start < end) {
            end = end.max(range.end);
            count += 1;
        }
        // An area is not empty, so that the first range is in it.
        let (own, behind) = rest.split_at(count.max(1).min(rest.len()));
        found(Area { bytes: end - start, kind }, own);
        rest = behind;
    }
}

/// The areas of a heap.
#[derive(Debug, Default)]
pub(crate) struct AreaTable {
    areas: Vec<Area>,
    /// Blocks and the areas that they keep, ascending, each pair once.
    kept: Vec<(u32, AreaId)>,
    /// The same the other way round.
    keepers: Vec<(AreaId, u32)>,
}

impl AreaTable {
    /// From the ranges of blocks, and for customs without one from what they say.
    pub(super) fn new(mut ranges: Vec<AreaRange<u32>>, customs: &[CustomNode]) -> AreaTable {
        let mut table = AreaTable::default();
        let mut has_range: Vec<u32> = ranges.iter().map(|range| range.owner).collect();
        has_range.sort_unstable();
        for_each_area(&mut ranges, |area, ranges| {
            let id = table.areas.len() as AreaId;
            table.areas.push(area);
            table.kept.extend(ranges.iter().map(|range| (range.owner, id)));
        });
        for custom in customs {
            if custom.outside_bytes > 0 && has_range.binary_search(&custom.block).is_err() {
                table.kept.push((custom.block, table.areas.len() as AreaId));
                let (bytes, kind) = (custom.outside_bytes, OutsideKind::Allocated);
                table.areas.push(Area { bytes, kind });
            }
        }
        table.kept.sort_unstable();
        table.kept.dedup();
        table.keepers = table.kept.iter().map(|&(block, area)| (area, block)).collect();
        table.keepers.sort_unstable();
        table
    }

    pub(super) fn areas(&self) -> &[Area] {
        &self.areas
    }

    pub(super) fn bytes(&self, area: AreaId) -> OutsideBytes {
        self.areas.get(area as usize).copied().map(OutsideBytes::from).unwrap_or_default()
    }

    /// Pairs of a block and an area that it keeps, by ascending block.
    pub(super) fn kept(&self) -> &[(u32, AreaId)] {
        &self.kept
    }

    pub(super) fn of(&self, block: u32) -> impl Iterator<Item = AreaId> {
        let from = self.kept.partition_point(|pair| pair.0 < block);
        let pairs = self.kept.get(from..).unwrap_or_default();
        pairs.iter().take_while(move |pair| pair.0 == block).map(|pair| pair.1)
    }

    /// Pairs of an area and a block that keeps it, by ascending area.
    pub(super) fn keepers(&self) -> &[(AreaId, u32)] {
        &self.keepers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64, owner: u32) -> AreaRange<u32> {
        AreaRange { start, end, kind: OutsideKind::Allocated, owner }
    }

    #[test]
    fn what_overlaps_is_one_area_and_what_touches_is_not() {
        let ranges = vec![
            range(500, 600, 4),
            range(100, 200, 1),
            range(150, 160, 2),
            range(190, 300, 3),
            range(300, 310, 5),
            range(u64::MAX - 5, u64::MAX, 6),
        ];
        let custom = |block, outside_bytes| CustomNode { block, operations: 1, outside_bytes };
        let customs = [custom(1, 100), custom(2, 10), custom(7, 42), custom(8, 0)];
        let table = AreaTable::new(ranges, &customs);
        let sizes: Vec<u64> = table.areas().iter().map(|area| area.bytes).collect();
        assert_eq!(sizes, [200, 10, 100, 5, 42]);
        assert_eq!(table.kept(), [(1, 0), (2, 0), (3, 0), (4, 2), (5, 1), (6, 3), (7, 4)]);
        assert_eq!(table.of(3).collect::<Vec<_>>(), [0]);
        assert_eq!(table.keepers().first(), Some(&(0, 1)));
    }
}
