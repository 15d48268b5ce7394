//! Exports a heap snapshot in the formats of other tools.
//!
//! One file for each format, as for traces: each defines a [`SnapshotFormat`] and writes from a
//! [`SnapshotInput`]. Only what is alive is written. Names in a snapshot are hostile text, which
//! every format escapes.

mod dot;
mod folded;
mod heapsnapshot;
mod hprof;
mod pprof;
mod stacks;

use std::io::{self, Write};

use heaptap_graph::{
    BlockKind, DominatorTree, HeapGraph, HolderId, HolderTree, KindId, Kinds, Names, RetainedKind,
    RetainedTree,
};
use heaptap_report::escape::Escaped;

/// The formats of heap snapshots, in the order in which the help lists them.
pub static SNAPSHOT_FORMATS: [&SnapshotFormat; 5] =
    [&heapsnapshot::FORMAT, &hprof::FORMAT, &folded::FORMAT, &pprof::FORMAT, &dot::FORMAT];

/// A format of another tool.
pub struct SnapshotFormat {
    /// Its name on the command line. Unique among [`SNAPSHOT_FORMATS`].
    pub name: &'static str,
    /// The tools that read it: one line of help.
    pub help: &'static str,
    /// Whether the output is not text, so that it must not go to a terminal.
    pub is_binary: bool,
    /// Whether the graph must be loaded with the fields of pointers.
    pub has_fields: bool,
    /// The most nodes, unless the user sets another number.
    pub nodes: usize,
    write: fn(&SnapshotInput<'_>, &mut dyn Write) -> io::Result<Vec<String>>,
}

impl SnapshotFormat {
    /// The format of this name.
    pub fn named(name: &str) -> Option<&'static SnapshotFormat> {
        SNAPSHOT_FORMATS.into_iter().find(|format| format.name == name)
    }

    /// Writes the export in many small pieces: `out` should be buffered. Returns sentences
    /// about what was joined or left out.
    pub fn write(&self, input: &SnapshotInput<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
        (self.write)(input, out)
    }
}

/// The input of every format.
pub struct SnapshotInput<'a> {
    /// The blocks.
    pub graph: &'a HeapGraph,
    /// What holds the roots.
    pub holders: &'a HolderTree,
    /// What each of them retains.
    pub tree: &'a DominatorTree,
    /// What the blocks are called.
    pub kinds: &'a Kinds,
    /// The most nodes; where there would be more, blocks that are alike and held alike are joined.
    pub nodes: usize,
}

impl SnapshotInput<'_> {
    /// The dominator tree with alike blocks joined, of at most about [`SnapshotInput::nodes`] nodes.
    fn retained_tree(&self) -> RetainedTree {
        let bytes = |block| self.graph.bytes(block);
        let kind = |block| self.kinds.of(self.graph, block);
        RetainedTree::new(self.tree, self.nodes, bytes, kind, |_, _| None)
    }

    /// The name of a kind, escaped.
    fn kind_name(&self, kind: KindId) -> String {
        let unknown = BlockKind::Closure(0);
        let kind = self.kinds.kind(kind).unwrap_or(unknown);
        escaped(&Names::new(self.graph).kind(kind))
    }

    /// The name of a holder by itself, escaped.
    fn holder_name(&self, holder: HolderId) -> String {
        escaped(&Names::new(self.graph).holder(self.holders.name(holder)))
    }

    /// The name of a node of the joined tree, escaped.
    fn retained_name(&self, kind: RetainedKind) -> String {
        match kind {
            RetainedKind::Holder(holder) => self.holder_name(holder),
            RetainedKind::Blocks(kind) => self.kind_name(kind),
            RetainedKind::Others => "(other blocks)".to_owned(),
        }
    }

    /// What to say of mapped files, which no format counts.
    fn mapped_note(&self) -> Vec<String> {
        let mapped = self.tree.retained_outside(DominatorTree::PROGRAM).mapped;
        let note =
            "bytes of mapped files are not in the export; `heaptap heap` shows who holds them";
        (mapped > 0).then(|| format!("{mapped} {note}")).into_iter().collect()
    }

    /// What to say of a joined tree in which blocks of different kinds are one node.
    fn others_note(&self, tree: &RetainedTree) -> Option<String> {
        let others = tree.nodes().iter().filter(|node| node.kind == RetainedKind::Others);
        let blocks: u64 = others.map(|node| node.blocks).sum();
        (blocks > 0).then(|| {
            format!(
                "more than {} nodes: {blocks} blocks of different kinds are joined to \
                 \"(other blocks)\" below what holds them; --nodes sets another limit",
                self.nodes
            )
        })
    }
}

fn escaped(name: &str) -> String {
    Escaped(name.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for format in SNAPSHOT_FORMATS {
            let found = SnapshotFormat::named(format.name).unwrap();
            assert!(std::ptr::eq(found, format), "{}", format.name);
        }
        assert!(SnapshotFormat::named("xml").is_none());
    }
}
