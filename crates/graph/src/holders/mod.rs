//! What holds the roots, as a tree: the program, kinds of roots, modules and their variables, domains,
//! threads and their frames.
//!
//! The tree is put above the blocks, so that one dominator tree has a size for each variable,
//! each module and each kind.
//!
//! - `tree`: the tree and how it is built from the roots.
//! - `first_reached`: blocks shared out among the holders.

mod first_reached;
mod tree;

pub use first_reached::Share;
pub use tree::{HolderId, HolderName, HolderTree};
