//! Library code in call trees: which functions of a frame are it, and where own code calls it.

use heaptap_trace::LocationTable;

use crate::aggregate::{Aggregate, Frame};
use crate::own_code::{SiteFrame, is_library};
use crate::paths::Node;

/// For each function of a frame, the innermost first, whether it is library code; none if nothing
/// is known of it.
pub(crate) fn library_parts(frame: Frame, table: &LocationTable) -> Vec<bool> {
    let Frame::Code(code) = frame else { return Vec::new() };
    let mut parts: Vec<bool> = table.resolve(code).map(|location| is_library(&location)).collect();
    parts.reverse();
    parts
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
