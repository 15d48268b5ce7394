//! The dominator tree with blocks that are alike joined, so that a person can read it.
//!
//! Blocks become one node if their path of labels from the holder down is the same. A label that is
//! on the path already is not repeated: a list, a tree or any recursive structure is one node
//! with the number of its blocks. What a node retains is what its blocks and all
//! below them take, so every block counts once.

mod tree;

pub use tree::{RetainedId, RetainedLabel, RetainedNode, RetainedTree};
