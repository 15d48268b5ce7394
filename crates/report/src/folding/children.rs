//! Finds the children of nodes by their site.
//!
//! Most nodes have few children, which are in a list. Only those of the others are in an index
//! too. [`crate::paths`] finds its nodes in the same way.

use hashbrown::HashMap;

const NONE: u32 = u32::MAX;

/// The most children of a node that are found by their list alone.
const MOST_LISTED: usize = 6;

/// The links of a node.
#[derive(Clone, Copy)]
struct Links {
    /// The first child, or `NONE`. It begins the list of all children; the latest is the
    /// second.
    first_child: u32,
    /// The next child of the same parent, or `NONE`.
    sibling: u32,
}

const NO_LINKS: Links = Links { first_child: NONE, sibling: NONE };

/// The links between the children of a node.
#[derive(Default)]
pub(super) struct Children {
    /// Of each node, up to the last one that is a child.
    links: Vec<Links>,
    /// The children of nodes that have more than [`MOST_LISTED`], by parent and site.
    index: HashMap<(u32, u32), u32>,
}

impl Children {
    /// The child of `node` with this site. `nodes` has the parent and site of each node.
    pub(super) fn find(&self, nodes: &[(u32, u32)], node: u32, site: u32) -> Option<u32> {
        for (listed, child) in self.of(node).enumerate() {
            if listed == MOST_LISTED {
                return self.index.get(&(node, site)).copied();
            }
            if nodes[child as usize].1 == site {
                return Some(child);
            }
        }
        None
    }

    /// Adds a child that is not there, and returns its number.
    pub(super) fn add(&mut self, nodes: &mut Vec<(u32, u32)>, node: u32, site: u32) -> u32 {
        let child = nodes.len() as u32;
        nodes.push((node, site));
        self.links.resize(nodes.len(), NO_LINKS);
        let listed = self.of(node).take(MOST_LISTED + 1).count();
        match self.links[node as usize].first_child {
            NONE => self.links[node as usize].first_child = child,
            first => {
                let second = std::mem::replace(&mut self.links[first as usize].sibling, child);
                self.links[child as usize].sibling = second;
            }
        }
        if listed > MOST_LISTED {
            self.index.insert((node, site), child);
        } else if listed == MOST_LISTED {
            let children: Vec<u32> = self.of(node).collect();
            self.index.extend(children.into_iter().map(|child| (nodes[child as usize], child)));
        }
        child
    }

    /// The children of a node.
    fn of(&self, node: u32) -> impl Iterator<Item = u32> {
        let links = |node: u32| self.links.get(node as usize).copied().unwrap_or(NO_LINKS);
        let child = |node: u32| (node != NONE).then_some(node);
        std::iter::successors(child(links(node).first_child), move |&last| {
            child(links(last).sibling)
        })
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
        assert!(!children.index.is_empty(), "some nodes have many children");
        assert!(children.index.len() < known.len(), "a few children need no index");
    }
}
