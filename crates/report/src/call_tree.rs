//! The call tree by site with the samples of one metric, for views that walk it.

use std::rc::Rc;

use heaptap_trace::LocationTable;

use crate::aggregate::{Aggregate, Metric};
use crate::estimate::Sampled;
use crate::functions::{FunctionShape, FunctionTree};
use crate::rows::{Grouping, Site};

/// A call tree. Nodes are in preorder, so that a subtree is a range; node 0 is the
/// root, which has no site.
pub struct CallTree(FunctionTree);

/// The shape of a call tree: all calls of a trace, without samples.
#[derive(Clone)]
pub struct CallShape(Rc<FunctionShape>);

impl Aggregate {
    /// The shape of the tree of calls. Needs [`crate::Depth::Whole`]. If sites are own code, all library
    /// code that own code calls is one call.
    pub fn call_shape(
        &self,
        table: &LocationTable,
        grouping: impl Into<Grouping>,
        fold: bool,
    ) -> CallShape {
        CallShape(Rc::new(FunctionShape::new(self, table, grouping.into(), fold)))
    }

    /// The tree of calls. The shape is that of this aggregate, or of the one whose table
    /// of blocks this one was selected from.
    pub fn call_tree(&self, shape: &CallShape, metric: Metric) -> CallTree {
        CallTree(FunctionTree::with_shape(Rc::clone(&shape.0), self, metric))
    }
}

impl CallTree {
    /// The sites by number.
    pub fn sites(&self) -> &[Site] {
        &self.0.shape.names
    }

    /// How many nodes there are, the root included.
    pub fn len(&self) -> u32 {
        self.0.shape.sites.len() as u32
    }

    /// Whether there is nothing but the root.
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// The number of a node's site; `None` for the root.
    pub fn site(&self, node: u32) -> Option<u32> {
        Some(self.0.shape.sites[node as usize]).filter(|_| node > 0)
    }

    /// The caller of a node; the root is its own.
    pub fn parent(&self, node: u32) -> u32 {
        self.0.shape.parents[node as usize]
    }

    /// The first node after a node's subtree.
    pub fn end(&self, node: u32) -> u32 {
        self.0.shape.ends[node as usize]
    }

    /// The calls of a node.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> {
        self.0.shape.children(node)
    }

    /// What is at a node and below it.
    pub fn samples(&self, node: u32) -> Sampled {
        self.0.sampled(node)
    }

    /// What is at a node itself.
    pub fn own_samples(&self, node: u32) -> Sampled {
        let below = self.children(node).map(|child| self.samples(child)).sum();
        self.samples(node).without(below)
    }

    /// The most iterations of the recursion that is folded into a node; 1 if none is.
    pub fn repeats(&self, node: u32) -> u32 {
        self.0.shape.repeats[node as usize]
    }

    /// How many frames were folded away.
    pub fn folded_frames(&self) -> u64 {
        self.0.omitted.folded.frames
    }
}
