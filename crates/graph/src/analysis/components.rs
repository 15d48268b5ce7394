//! Strongly connected components: R. Tarjan, "Depth-First Search and Linear Graph Algorithms", 1972.
//!
//! Without recursion: the path of the search is a chain of parents.

use crate::dominators::{NONE, Numbers};

/// The component of each of `count` nodes, of which `successor` returns the neighbours one by one.
/// Numbers of components are those of one of their nodes.
pub fn components(count: u32, successor: impl Fn(u32, u32) -> Option<u32>) -> Vec<u32> {
    let mut search = Search::new(count as usize);
    for node in 0..count {
        if search.order.get(node) == NONE {
            search.from(node, &successor);
        }
    }
    search.component
}

struct Search {
    /// When a node was found.
    order: Numbers,
    /// The earliest node on the path that a node reaches, by its order.
    low: Numbers,
    parent: Numbers,
    /// The neighbour to look at next.
    next: Numbers,
    component: Vec<u32>,
    /// Nodes that have no component yet, in the order in which they were found.
    open: Vec<u32>,
    found: u32,
}

impl Search {
    fn new(count: usize) -> Search {
        Search {
            order: Numbers::new(count, NONE),
            low: Numbers::new(count, NONE),
            parent: Numbers::new(count, NONE),
            next: Numbers::new(count, 0),
            component: vec![NONE; count],
            open: Vec::new(),
            found: 0,
        }
    }

    fn enter(&mut self, node: u32, parent: u32) {
        self.order.set(node, self.found);
        self.low.set(node, self.found);
        self.parent.set(node, parent);
        self.open.push(node);
        self.found += 1;
    }

    fn from(&mut self, start: u32, successor: &impl Fn(u32, u32) -> Option<u32>) {
        self.enter(start, NONE);
        let mut at = start;
        while at != NONE {
            let index = self.next.get(at);
            self.next.set(at, index.wrapping_add(1));
            match successor(at, index) {
                Some(node) if self.order.get(node) == NONE => {
                    self.enter(node, at);
                    at = node;
                }
                Some(node) => {
                    let is_open = self.component.get(node as usize) == Some(&NONE);
                    if is_open {
                        self.low.set(at, self.low.get(at).min(self.order.get(node)));
                    }
                }
                None => at = self.leave(at),
            }
        }
    }

    /// Returns to the parent.
    fn leave(&mut self, node: u32) -> u32 {
        let low = self.low.get(node);
        if low == self.order.get(node) {
            while let Some(member) = self.open.pop() {
                if let Some(component) = self.component.get_mut(member as usize) {
                    *component = node;
                }
                if member == node {
                    break;
                }
            }
        }
        let parent = self.parent.get(node);
        if parent != NONE {
            self.low.set(parent, self.low.get(parent).min(low));
        }
        parent
    }
}
