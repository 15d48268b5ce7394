//! The biggest sets of blocks as a picture: the joined dominator tree in the language of Graphviz.
//!
//! Those nodes are drawn that retain most; what is left out below a node is a part of "others".
//! An edge is as wide as what it leads to retains. Since a node retains at least what each node
//! below it does, the nodes that are drawn are connected.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use heaptap_graph::{RetainedId, RetainedNode, RetainedTree};

use super::{SnapshotFormat, SnapshotInput};

pub(super) const FORMAT: SnapshotFormat = SnapshotFormat {
    name: "dot",
    help: "Of a heap snapshot: what retains most as a graph, for Graphviz",
    is_binary: false,
    has_fields: false,
    nodes: 40,
    write,
};

/// The tree from which nodes are chosen.
const MOST_JOINED: usize = 1_000_000;
/// The width of an edge to everything, in points.
const WIDEST: f64 = 12.0;

fn write(input: &SnapshotInput<'_>, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let joined = SnapshotInput { nodes: MOST_JOINED.max(input.nodes), ..*input };
    let tree = joined.retained_tree();
    let picture = Picture::new(&joined, &tree, input.nodes);
    out.write_all(picture.text().as_bytes())?;
    Ok(Vec::new())
}

struct Picture<'a> {
    input: &'a SnapshotInput<'a>,
    tree: &'a RetainedTree,
    /// By number; parents come before their children.
    drawn: BTreeMap<RetainedId, &'a RetainedNode>,
    /// What is left out, by the node that it is below.
    others: BTreeMap<RetainedId, LeftOut>,
}

#[derive(Default)]
struct LeftOut {
    blocks: u64,
    retained: u64,
}

impl<'a> Picture<'a> {
    fn new(input: &'a SnapshotInput<'a>, tree: &'a RetainedTree, most: usize) -> Picture<'a> {
        let mut order: Vec<RetainedId> = (0..tree.nodes().len() as RetainedId).collect();
        // A parent has a lower number than those below it that retain the same.
        order.sort_by_key(|id| {
            (std::cmp::Reverse(tree.node(*id).map_or(0, |node| node.retained)), *id)
        });
        order.truncate(most);
        let drawn: BTreeMap<_, _> =
            order.into_iter().filter_map(|id| Some((id, tree.node(id)?))).collect();
        let mut others: BTreeMap<RetainedId, LeftOut> = BTreeMap::new();
        // The drawn node above each node.
        let mut above: Vec<RetainedId> = Vec::with_capacity(tree.nodes().len());
        for (id, node) in (0..).zip(tree.nodes()) {
            if drawn.contains_key(&id) {
                above.push(id);
                continue;
            }
            let top = above.get(node.parent as usize).copied().unwrap_or_default();
            above.push(top);
            let left_out = others.entry(top).or_default();
            left_out.blocks += node.blocks;
            left_out.retained = left_out.retained.saturating_add(node.bytes);
        }
        Picture { input, tree, drawn, others }
    }

    fn text(&self) -> String {
        let mut text = String::from(
            "digraph heap {\n  rankdir=LR;\n  node [shape=box, fontname=\"Helvetica\", fontsize=10];\n",
        );
        for (id, node) in &self.drawn {
            let name = self.input.retained_name(node.kind);
            let label = label(&name, node.blocks, node.retained);
            // Writing to a string does not fail.
            let _ = writeln!(text, "  n{id} [label={label}];");
        }
        if !self.others.is_empty() {
            let blocks = self.others.values().map(|left_out| left_out.blocks).sum();
            let retained = self.others.values().map(|left_out| left_out.retained).sum();
            let _ = writeln!(
                text,
                "  others [label={}, style=dashed];",
                label("others", blocks, retained)
            );
        }
        for (id, node) in self.drawn.iter().filter(|(id, _)| **id != RetainedTree::PROGRAM) {
            self.edge(&mut text, node.parent, &format!("n{id}"), node.retained);
        }
        for (id, left_out) in &self.others {
            self.edge(&mut text, *id, "others", left_out.retained);
        }
        text += "}\n";
        text
    }

    fn edge(&self, text: &mut String, from: RetainedId, to: &str, retained: u64) {
        let all = self.tree.node(RetainedTree::PROGRAM).map_or(0, |node| node.retained).max(1);
        let width = (WIDEST * retained as f64 / all as f64).max(0.3);
        let _ = writeln!(text, "  n{from} -> {to} [penwidth={width:.2}];");
    }
}

/// A quoted label of three lines.
fn label(name: &str, blocks: u64, retained: u64) -> String {
    let blocks = if blocks == 1 { "1 block".to_owned() } else { format!("{blocks} blocks") };
    format!("\"{}\\n{blocks}\\n{retained} bytes\"", quoted(name))
}

/// Graphviz gives a meaning to backslashes and quotes in a string, and to character references.
fn quoted(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '&' => text.push_str("&amp;"),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_stays_in_its_quotes() {
        let text = label("a\"]; b\\N &lt;", 1, 24);
        assert_eq!(text, "\"a\\\"]; b\\\\N &amp;lt;\\n1 block\\n24 bytes\"");
    }
}
