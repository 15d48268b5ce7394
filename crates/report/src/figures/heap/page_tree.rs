//! The dominator tree as the web page draws it: bounded, small cells joined.

use std::collections::HashMap;

use heaptap_graph::{HeapAnalysis, RetainedId, RetainedKind, RetainedNode, RetainedTree};
use serde::Serialize;

use super::titles::Titles;

/// More cells than a screen has room for.
const MOST_CELLS: usize = 20_000;
/// The depth that the page shows; what is below is part of its parent.
const MOST_LEVELS: u32 = 200;
/// A cell with less than one part in this many is joined with its small siblings.
const SMALLEST_PART: u64 = 5000;

/// A cell that is still to be added.
struct OpenCell {
    /// One, unless it is joined.
    nodes: Vec<RetainedId>,
    /// The cell above.
    parent: i64,
    level: u32,
    is_joined: bool,
}

/// Cells in preorder; the first is the program. The fields are columns.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "DominatorTree"))]
pub struct PageTree {
    names: Vec<String>,
    /// The cell above; -1 for the program.
    parent: Vec<i64>,
    /// Into `names`; -1 for joined cells.
    name: Vec<i64>,
    /// 1 for a holder, 0 for blocks.
    #[cfg_attr(feature = "typescript", ts(type = "(0 | 1)[]"))]
    holder: Vec<u8>,
    /// Bytes of the cell and all below.
    retained: Vec<u64>,
    /// Bytes of its own blocks.
    own: Vec<u64>,
    blocks: Vec<u64>,
    /// Bytes outside the heap of the cell and all below.
    outside: Vec<u64>,
    /// Of joined cells: how many.
    joined: Vec<u64>,
}

impl PageTree {
    pub fn new(analysis: &HeapAnalysis) -> PageTree {
        let titles = Titles::new(analysis);
        let retained = &analysis.retained;
        let children = retained.children();
        let smallest = analysis.reachable_bytes() / SMALLEST_PART;
        let mut tree = PageTree::default();
        let mut numbers: HashMap<String, i64> = HashMap::new();
        let program =
            OpenCell { nodes: vec![RetainedTree::PROGRAM], parent: -1, level: 0, is_joined: false };
        // The next one last.
        let mut open = vec![program];
        while let Some(OpenCell { nodes, parent, level, is_joined }) = open.pop() {
            let cell = tree.parent.len() as i64;
            let Some(&id) = nodes.first().filter(|_| !is_joined) else {
                tree.push(parent, -1, &nodes, retained);
                continue;
            };
            let name = if parent < 0 { "program".to_owned() } else { titles.retained(id) };
            let next = tree.names.len() as i64;
            let number = *numbers.entry(name.clone()).or_insert(next);
            if number == next {
                tree.names.push(name);
            }
            tree.push(parent, number, &nodes, retained);
            let below = children.get(id as usize).map_or(&[][..], Vec::as_slice);
            let has_room = level < MOST_LEVELS && tree.parent.len() + open.len() < MOST_CELLS;
            let is_large = |id: &&RetainedId| {
                let node = retained.node(**id);
                has_room
                    && node.is_some_and(|node| node.retained.max(node.outside.allocated) > smallest)
            };
            let (large, small): (Vec<RetainedId>, Vec<RetainedId>) =
                below.iter().partition(|id| is_large(id));
            let below =
                |nodes, is_joined| OpenCell { nodes, parent: cell, level: level + 1, is_joined };
            // Small ones come after large ones.
            if !small.is_empty() {
                open.push(below(small, true));
            }
            open.extend(large.into_iter().rev().map(|id| below(vec![id], false)));
        }
        tree
    }

    /// A cell for all of these nodes together.
    fn push(&mut self, parent: i64, name: i64, nodes: &[RetainedId], retained: &RetainedTree) {
        let nodes: Vec<_> = nodes.iter().filter_map(|id| retained.node(*id)).collect();
        let is_holder = nodes.iter().any(|node| matches!(node.kind, RetainedKind::Holder(_)));
        let sum = |size: fn(&RetainedNode) -> u64| {
            nodes.iter().map(|node| size(node)).fold(0, u64::saturating_add)
        };
        self.parent.push(parent);
        self.name.push(name);
        self.holder.push(u8::from(is_holder && name >= 0));
        self.retained.push(sum(|node| node.retained));
        self.own.push(sum(|node| node.bytes));
        self.blocks.push(sum(|node| node.blocks));
        self.outside.push(sum(|node| node.outside.allocated));
        self.joined.push(if name < 0 { nodes.len() as u64 } else { 0 });
    }
}
