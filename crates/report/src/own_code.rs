//! Which frames are a program's own code, and which are library code: the standard library,
//! runtimes, and what was vendored or installed.

mod rule;

use std::sync::Arc;

use heaptap_trace::{Code, LocationTable};
use serde::{Deserialize, Serialize};

use crate::aggregate::{Aggregate, Frame};
use crate::paths::{Node, ROOT};
pub(crate) use rule::is_library;

/// Which frame of a stack is its site: the one that tables and cards name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum SiteFrame {
    /// The innermost frame, which allocates.
    #[default]
    Innermost,
    /// The innermost frame of the program's own code; the innermost of all if there is none.
    Own,
}

/// Every choice of sites.
pub const ALL_SITE_FRAMES: [SiteFrame; 2] = [SiteFrame::Own, SiteFrame::Innermost];

impl SiteFrame {
    /// Its name in options, JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            SiteFrame::Innermost => "innermost",
            SiteFrame::Own => "own",
        }
    }
}

/// For each function of a frame, the innermost first, whether it is library code; none if nothing
/// is known of it.
pub(crate) fn library_parts(frame: Frame, table: &LocationTable) -> Vec<bool> {
    let Frame::Code(code) = frame else { return Vec::new() };
    let mut parts: Vec<bool> = table.resolve(code).map(|location| is_library(&location)).collect();
    parts.reverse();
    parts
}

/// Whether any function of a frame is own code.
pub(crate) fn is_own_code(code: Code, table: &LocationTable) -> bool {
    table.resolve(code).any(|location| !is_library(&location))
}

/// The nodes of a call tree whose frames are the sites of the paths through it.
pub(crate) struct SiteNodes {
    /// For each node the innermost node of own code on the way to it, or [`ROOT`]; empty if sites are
    /// innermost frames.
    own: Arc<Vec<Node>>,
}

impl SiteNodes {
    pub(crate) fn new(aggregate: &Aggregate, table: &LocationTable, site: SiteFrame) -> Self {
        if site == SiteFrame::Innermost {
            return SiteNodes { own: Arc::default() };
        }
        let is_own = || {
            let codes = aggregate.frames.codes().iter();
            let own: Vec<bool> = codes.map(|&code| is_own_code(code, table)).collect();
            move |frame| own.get(frame as usize).copied().unwrap_or(false)
        };
        SiteNodes { own: aggregate.paths.own_nodes(is_own) }
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

/// Where on the way inwards a stack is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// No own code has come yet.
    Outside,
    Own,
    /// In library code that own code called.
    Library,
}

/// The runs of library code in a call tree, each of which own code calls. A tree is walked from the
/// outermost frames inwards.
pub(crate) struct LibraryRuns<'a> {
    aggregate: &'a Aggregate,
    /// For each frame, whether its functions are library code, the innermost first; empty if runs
    /// do not matter.
    frames: Vec<Vec<bool>>,
    /// For each node that was left, where its stack is.
    places: Vec<Place>,
    place: Place,
    frame: usize,
}

impl<'a> LibraryRuns<'a> {
    pub(crate) fn new(aggregate: &'a Aggregate, table: &LocationTable, site: SiteFrame) -> Self {
        let (mut frames, mut places) = (Vec::new(), Vec::new());
        if site == SiteFrame::Own {
            let codes = aggregate.frames.codes().iter();
            frames = codes.map(|&code| library_parts(Frame::Code(code), table)).collect();
            places = vec![Place::Outside; aggregate.paths.len()];
        }
        LibraryRuns { aggregate, frames, places, place: Place::Outside, frame: 0 }
    }

    /// Goes on with this node, whose parent was left before.
    pub(crate) fn enter(&mut self, node: Node) {
        let parent = self.aggregate.paths.parent(node) as usize;
        self.place = self.places.get(parent).copied().unwrap_or(Place::Outside);
        self.frame = self.aggregate.paths.frame(node) as usize;
    }

    /// Whether this function of the frame is library code that library code calls, below own code.
    /// To be asked for each of its functions, the outermost first.
    pub(crate) fn is_inside(&mut self, function: usize) -> bool {
        let library = self.frames.get(self.frame).and_then(|parts| parts.get(function));
        let before = self.place;
        self.place = match (library, before) {
            (Some(false), _) => Place::Own,
            (Some(true), Place::Own | Place::Library) => Place::Library,
            // A frame of which nothing is known does not end a run, and begins none.
            _ => before,
        };
        before == Place::Library && self.place == Place::Library
    }

    pub(crate) fn leave(&mut self, node: Node) {
        if let Some(place) = self.places.get_mut(node as usize) {
            *place = self.place;
        }
    }
}
