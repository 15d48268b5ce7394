//! Strings that are there more than once.
//!
//! A snapshot has them only if it was taken with the contents of strings, and only those that are included to their end
//! are compared.

use heaptap_graph::HeapAnalysis;

use super::keepers::Keepers;
use crate::figures::heap::titles::Titles;

/// Copies of strings, and the holder that has most of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DuplicateStrings {
    pub holder: String,
    /// Strings that are there more than once, and how often they are there in all.
    pub strings: u64,
    pub copies: u64,
    /// What one of each would save.
    pub saved_bytes: u64,
}

/// How often a string is there.
#[derive(Clone, Copy, Default)]
struct Copies {
    blocks: u64,
    bytes: u64,
}

impl DuplicateStrings {
    pub(super) fn of(
        analysis: &HeapAnalysis,
        titles: &Titles<'_>,
        keepers: &Keepers<'_>,
    ) -> Option<DuplicateStrings> {
        let graph = &analysis.graph;
        // Those that are garbage save nothing.
        let held = || {
            let strings = graph.strings().iter();
            strings.filter_map(|&(block, hash)| Some((block, hash, keepers.of(block)?)))
        };
        let mut by_hash: hashbrown::HashMap<u64, Copies> = hashbrown::HashMap::new();
        for (block, hash, _) in held() {
            let copies = by_hash.entry(hash).or_default();
            copies.blocks += 1;
            copies.bytes = copies.bytes.saturating_add(graph.bytes(block));
        }
        by_hash.retain(|_, copies| copies.blocks > 1);
        let mut by_holder: hashbrown::HashMap<_, u64> = hashbrown::HashMap::new();
        for (block, _, holder) in held().filter(|(_, hash, _)| by_hash.contains_key(hash)) {
            let sum = by_holder.entry(holder).or_default();
            *sum = sum.saturating_add(graph.bytes(block));
        }
        let (holder, _) = by_holder.into_iter().max_by_key(|&(holder, bytes)| (bytes, holder))?;
        let saved = |copies: &Copies| copies.bytes - copies.bytes / copies.blocks;
        Some(DuplicateStrings {
            holder: titles.keeper(holder),
            strings: by_hash.len() as u64,
            copies: by_hash.values().map(|copies| copies.blocks).sum(),
            saved_bytes: by_hash.values().map(saved).fold(0, u64::saturating_add),
        })
    }
}
