//! Dominators by Semi-NCA: L. Georgiadis, "Linear-Time Algorithms for Dominators and Related
//! Problems", Princeton 2005, section 2.3.
//!
//! All numbers are those of the depth-first order. First the semidominator of each node, from the
//! last to the first, with path compression; then the dominator of each is the nearest
//! ancestor in the tree that is not below its semidominator.

use super::numbers::{Numbers, Rows};

/// The immediate dominator of each number; the program's own is 0. The tables are those of the
/// depth-first search: here memory is at its most, so each is given up as soon as it can be.
pub(super) fn immediate_dominators(parent: Numbers, predecessors: Rows) -> Numbers {
    let semi = semidominators(&parent, &predecessors);
    drop(predecessors);
    // In place: a node is above those that it dominates.
    let mut dominator = parent;
    for number in 1..dominator.len() as u32 {
        let mut candidate = dominator.get(number);
        while candidate > semi.get(number) {
            candidate = dominator.get(candidate);
        }
        dominator.set(number, candidate);
    }
    dominator
}

fn semidominators(parent: &Numbers, predecessors: &Rows) -> Numbers {
    let mut forest = Forest {
        ancestor: parent.clone(),
        label: Numbers::ascending(parent.len()),
        semi: Numbers::ascending(parent.len()),
        path: Vec::new(),
    };
    for number in (1..parent.len() as u32).rev() {
        let mut semi = parent.get(number);
        for &predecessor in predecessors.row(number) {
            let best = forest.best(predecessor, number + 1);
            semi = semi.min(forest.semi.get(best));
        }
        forest.semi.set(number, semi);
    }
    forest.semi
}

/// The nodes whose semidominators are known, as trees.
struct Forest {
    /// An ancestor in the tree of the search; compressed.
    ancestor: Numbers,
    /// Of the nodes from the ancestor, which is left out, down to each: the one with the least semidominator.
    label: Numbers,
    semi: Numbers,
    /// The nodes whose paths are being compressed.
    path: Vec<u32>,
}

impl Forest {
    /// On the path to a node from the root of its tree: the node with the least semidominator.
    /// Nodes from `linked` on are in trees with their parents.
    fn best(&mut self, node: u32, linked: u32) -> u32 {
        let mut top = node;
        while self.ancestor.get(top) >= linked {
            self.path.push(top);
            top = self.ancestor.get(top);
        }
        while let Some(below) = self.path.pop() {
            let (of_top, own) = (self.label.get(top), self.label.get(below));
            if self.semi.get(of_top) < self.semi.get(own) {
                self.label.set(below, of_top);
            }
            self.ancestor.set(below, self.ancestor.get(top));
            top = below;
        }
        self.label.get(node)
    }
}
