//! What would be freed if a block or a holder went: the dominator tree of the heap.
//!
//! A node dominates another if every path from the program to that one passes it. What a node
//! retains is itself and all it dominates.
//!
//! - `flow`: the graph of holders and blocks, in which the program reaches everything that is alive.
//! - `depth_first`: a depth-first order of it, and its edges reversed.
//! - `semi_nca`: the algorithm; `own_variables`: a module and its variables as one holder.
//! - `tree`: the tree, retained sizes, children; `ancestors`: the lowest common dominator.
//! - `numbers`: tables of 32-bit numbers.
//!
//! Memory outside the heap has no pointers, so what dominates all blocks that keep it retains it.
//!
//! Nothing recurses: a list of 10^8 blocks is as deep as that. The data of an ephemeron
//! counts as held by the ephemeron, not by the keys: exact dominance would need both at once.

mod ancestors;
mod depth_first;
mod flow;
mod numbers;
mod own_variables;
mod semi_nca;
mod tree;

pub(crate) use flow::FlowGraph;
pub(crate) use numbers::{NONE, Numbers, Rows};
pub use tree::{DominatorChildren, DominatorTree, Node};
