//! Finds the children of nodes by their site.
//!
//! The nodes of a stack that was new as a whole have consecutive numbers, so most
//! children are found next to their parent, or in the short list that begins there.
//! Only the others are in an index. [`crate::paths`] finds its nodes in the same way.

use hashbrown::HashMap;

const NONE: u32 = u32::MAX;

/// How many siblings are looked at before the index.
const MOST_SIBLINGS: usize = 4;

/// The links between the children of a node.
#[derive(Default)]
pub(super) struct Children {
    /// For each node, another child of the same parent, or `NONE`. The child with the
    /// number after its parent's begins a list of them; the latest is the second.
    siblings: Vec<u32>,
    /// The children whose number is not the one after their parent's, by parent and site.
    index: HashMap<(u32, u32), u32>,
}

impl Children {
    /// The child of `node` with this site. `nodes` has the parent and site of each node.
    pub(super) fn find(&self, nodes: &[(u32, u32)], node: u32, site: u32) -> Option<u32> {
        let mut child = node + 1;
        let &(parent, first) = nodes.get(child as usize)?;
        if parent == node {
            if first == site {
                return Some(child);
            }
            for turn in 0.. {
                child = self.sibling(child);
                if child == NONE {
                    return None;
                }
                if nodes[child as usize].1 == site {
                    return Some(child);
                }
                if turn == MOST_SIBLINGS {
                    break;
                }
            }
        }
        self.index.get(&(node, site)).copied()
    }

    /// Adds a child that is not there, and returns its number.
    pub(super) fn add(&mut self, nodes: &mut Vec<(u32, u32)>, node: u32, site: u32) -> u32 {
        let child = nodes.len() as u32;
        nodes.push((node, site));
        self.siblings.resize(nodes.len(), NONE);
        let first = node + 1;
        if child == first {
            return child;
        }
        self.index.insert((node, site), child);
        if nodes[first as usize].0 == node {
            self.siblings[child as usize] = self.siblings[first as usize];
            self.siblings[first as usize] = child;
        }
        child
    }

    fn sibling(&self, node: u32) -> u32 {
        self.siblings[node as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thinning::scramble;

    #[test]
    fn a_child_is_found_whatever_was_added_in_between() {
        let (mut children, mut nodes) = (Children::default(), vec![(0, NONE)]);
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        for turn in 0..20_000_u64 {
            let mut node = 0;
            for depth in 0..scramble(turn) % 8 {
                let choices = [2, 40, 3, 1][(depth % 4) as usize];
                let site = (scramble(turn << 8 | depth) % choices) as u32;
                let found = children.find(&nodes, node, site);
                assert_eq!(found, known.get(&(node, site)).copied());
                let child = found.unwrap_or_else(|| children.add(&mut nodes, node, site));
                known.insert((node, site), child);
                node = child;
            }
        }
        assert_eq!(nodes.len(), known.len() + 1);
        assert!(children.index.len() < known.len(), "first children need no index");
    }
}
