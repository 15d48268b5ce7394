//! The nodes of a call tree that are the sites of paths: the frame that allocates, or the innermost of own
//! code.

use std::sync::Arc;

use heaptap_trace::LocationTable;

use crate::frames::Frames;
use crate::own_code::{SiteFrame, is_own_code};
use crate::paths::{Node, Paths, ROOT};

/// The nodes of a call tree whose frames are the sites of the paths through it.
pub(crate) struct SiteNodes {
    /// For each node the innermost node of own code on the way to it, or [`ROOT`]; empty if sites are
    /// innermost frames.
    own: Arc<Vec<Node>>,
}

impl SiteNodes {
    pub(crate) fn new(
        frames: &Frames,
        paths: &Paths,
        table: &LocationTable,
        site: SiteFrame,
    ) -> Self {
        if site == SiteFrame::Innermost {
            return SiteNodes { own: Arc::default() };
        }
        let is_own = || {
            let codes = frames.codes().iter();
            let own: Vec<bool> = codes.map(|&code| is_own_code(code, table)).collect();
            move |frame| own.get(frame as usize).copied().unwrap_or(false)
        };
        SiteNodes { own: paths.own_nodes(is_own) }
    }

    /// The node of the site of a path that ends at `node`.
    #[inline]
    pub(crate) fn of(&self, node: Node) -> Node {
        self.own_above(node).unwrap_or(node)
    }

    /// The same unless there is no own code.
    pub(crate) fn own_above(&self, node: Node) -> Option<Node> {
        self.own.get(node as usize).copied().filter(|&own| own != ROOT)
    }
}
