//! A depth-first order of what is alive.

use super::flow::FlowGraph;
use super::numbers::{NONE, Numbers, Rows};

/// The nodes that the program reaches, numbered in depth-first order; the program is 0.
pub(super) struct DepthFirst {
    /// From a node to its number; [`NONE`] if it is garbage.
    pub(super) number: Numbers,
    /// From a number to its node.
    pub(super) node: Numbers,
    /// The number from which each was reached; the program's own is 0.
    pub(super) parent: Numbers,
}

impl DepthFirst {
    /// The stack is `parent`, so that depth takes no memory of its own.
    pub(super) fn new(flow: &FlowGraph<'_>) -> DepthFirst {
        let mut order = DepthFirst {
            number: Numbers::new(flow.nodes(), NONE),
            node: Numbers::default(),
            parent: Numbers::default(),
        };
        // The successor to look at next, by number.
        let mut next = Numbers::default();
        order.add(flow.program(), 0);
        next.push(0);
        let mut at = 0;
        loop {
            let index = next.get(at);
            next.set(at, index.wrapping_add(1));
            match flow.successor(order.node.get(at), index) {
                Some(node) if order.number.get(node) == NONE => {
                    at = order.add(node, at);
                    next.push(0);
                }
                Some(_) => {}
                None if at == 0 => return order,
                None => at = order.parent.get(at),
            }
        }
    }

    fn add(&mut self, node: u32, parent: u32) -> u32 {
        let number = self.node.len() as u32;
        self.number.set(node, number);
        self.node.push(node);
        self.parent.push(parent);
        number
    }

    pub(super) fn len(&self) -> usize {
        self.node.len()
    }

    /// The numbers from which edges lead to each number.
    pub(super) fn predecessors(&self, flow: &FlowGraph<'_>) -> Option<Rows> {
        Rows::new(self.len(), |pair| {
            for number in 0..self.len() as u32 {
                let (first, second) = flow.successors(self.node.get(number));
                for target in first.iter().chain(second) {
                    pair(self.number.get(*target), number);
                }
            }
        })
    }
}
