//! The joined dominator tree as call paths: the frames of a stack are what holds a block, from
//! the kind of root down to its kind, and its value is what the blocks of the node take. So the
//! sum below a frame is what it retains.

use heaptap_graph::{RetainedId, RetainedNode, RetainedTree};

use super::SnapshotInput;

/// About the most nodes, as of call paths of a trace.
pub(super) const MOST_STACKS: usize = 250_000;

/// The stacks of a snapshot.
pub(super) struct RetainedStacks<'a> {
    input: &'a SnapshotInput<'a>,
    tree: RetainedTree,
    /// Bytes outside the heap of the blocks of each node itself.
    outside: Vec<u64>,
}

impl<'a> RetainedStacks<'a> {
    pub(super) fn new(input: &'a SnapshotInput<'a>) -> RetainedStacks<'a> {
        let tree = input.retained_tree();
        let outside = own_outside(&tree);
        RetainedStacks { input, tree, outside }
    }

    /// The nodes that have blocks or memory outside the heap, with their numbers. What several blocks keep
    /// outside the heap counts at what retains all of them.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (RetainedId, &RetainedNode)> {
        let is_shown =
            |id: RetainedId, node: &RetainedNode| node.blocks > 0 || self.outside(id) > 0;
        (0..).zip(self.tree.nodes()).filter(move |(id, node)| is_shown(*id, node))
    }

    /// From the kind of root down to the node; the program by itself.
    pub(super) fn path(&self, node: RetainedId) -> Vec<RetainedId> {
        if node == RetainedTree::PROGRAM { vec![node] } else { self.tree.path(node) }
    }

    /// Escaped.
    pub(super) fn name(&self, node: RetainedId) -> String {
        let node = self.tree.node(node);
        node.map_or_else(String::new, |node| self.input.retained_name(node.kind))
    }

    pub(super) fn outside(&self, node: RetainedId) -> u64 {
        self.outside.get(node as usize).copied().unwrap_or_default()
    }

    /// What to say if blocks of several kinds had to be joined.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = self.input.mapped_note();
        notes.extend(self.input.others_note(&self.tree));
        notes
    }
}

/// What nodes have outside the heap without those below them.
pub(super) fn own_outside(tree: &RetainedTree) -> Vec<u64> {
    let mut own: Vec<u64> = tree.nodes().iter().map(|node| node.outside.allocated).collect();
    for node in tree.nodes().iter().skip(1) {
        let above = &mut own[node.parent as usize];
        *above = above.saturating_sub(node.outside.allocated);
    }
    own
}
