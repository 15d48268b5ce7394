//! The dominator tree with blocks that are alike joined, so that a person can read it.
//!
//! Blocks become one node if their path of kinds from the holder down is the same. A block whose dominator has
//! its kind belongs to the same node, so a list or a tree is one node with the number of its
//! blocks; and a kind comes at most twice on a path, so recursive structures are finite. What a node
//! retains is what its blocks and all below them take, so every block counts once.
//! What different fields of one record lead to is kept apart: two tables are two nodes.

mod tree;

pub use tree::{RetainedId, RetainedKind, RetainedNode, RetainedTree};
