//! Tables whose slots are mostly empty.
//!
//! A hash table of the standard library grows with its elements and never shrinks. Its slots are known by their type;
//! without types nothing is said, since numbers look like empty slots.

use heaptap_graph::HeapAnalysis;

use super::keepers::Keepers;
use crate::figures::heap::titles::Titles;

/// The empty slots of the holder that has most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmptySlots {
    pub holder: String,
    /// Of the holder's tables that are mostly empty.
    pub slots: u64,
    pub filled: u64,
    /// The same of all holders: what tables of the size that their elements need would save.
    pub saved_bytes: u64,
}

/// Slots that are pointers to elements or immediate when they are empty, by the end of the type's name.
const SLOTS: [&str; 2] = ["bucketlist array", "option array"];
/// Smaller tables are not worth a word, and one is mostly empty if less than this share of it is filled. A hash table
/// that has just doubled has a third to two fifths filled.
const LEAST_WORDS: u64 = 512;
const MOSTLY_EMPTY: f64 = 0.25;

impl EmptySlots {
    pub(super) fn of(
        analysis: &HeapAnalysis,
        titles: &Titles<'_>,
        keepers: &Keepers<'_>,
    ) -> Option<EmptySlots> {
        let graph = &analysis.graph;
        let names = graph.given_names();
        let is_table = |block: u32| {
            let name = names.of(block).and_then(|name| names.text(name));
            name.is_some_and(|name| SLOTS.iter().any(|slots| name.ends_with(slots)))
        };
        let mut by_holder: hashbrown::HashMap<_, (u64, u64)> = hashbrown::HashMap::new();
        // The names of all blocks would take longer than the rest.
        let large = keepers.blocks().filter(|&(block, _)| graph.words(block) >= LEAST_WORDS);
        for (block, holder) in large.filter(|&(block, _)| is_table(block)) {
            let (slots, filled) = (graph.words(block), graph.targets(block).len() as u64);
            if (filled as f64) < MOSTLY_EMPTY * slots as f64 {
                let sum = by_holder.entry(holder).or_default();
                *sum = (sum.0.saturating_add(slots), sum.1.saturating_add(filled));
            }
        }
        let saved = |(slots, filled): (u64, u64)| slots.saturating_sub(filled.saturating_mul(2));
        let all = by_holder.values().map(|sums| saved(*sums)).fold(0, u64::saturating_add);
        let most = by_holder.into_iter().max_by_key(|&(holder, sums)| (saved(sums), holder));
        most.map(|(holder, (slots, filled))| EmptySlots {
            holder: titles.keeper(holder),
            slots,
            filled,
            saved_bytes: all.saturating_mul(8),
        })
    }
}
