//! From backtraces to nodes of the call tree.
//!
//! A stack mostly begins like the one before it in its domain. So the last stack
//! of each domain is kept with its nodes, and only the frames that differ are
//! looked up.

use heaptap_trace::{Code, kind_of};

use super::AllocationEvent;
use super::common_prefix::common_prefix;
use super::own_stacks::OwnStacks;
use super::recent_sites::RecentSites;
use crate::depth::Depth;
use crate::frames::Frames;
use crate::options::Options;
use crate::paths::{NOWHERE, Node, Paths, ROOT, domain_frame, kind_frame, source_frame};
use crate::select::{Marks, Selection};

/// The last stack of a domain, the outermost frame first.
#[derive(Default)]
struct LastStack {
    codes: Vec<Code>,
    /// The node of each frame; empty unless whole stacks are kept.
    nodes: Vec<Node>,
    /// For each frame, the marks of the selection on it and all before it; empty if the
    /// selection does not look at frames.
    marks: Vec<Marks>,
}

/// The last stacks of all domains.
#[derive(Default)]
pub(super) struct LastStacks {
    /// By the number of the domain.
    by_domain: Vec<LastStack>,
    recent: RecentSites,
    own: OwnStacks,
}

impl LastStacks {
    /// Forgets all stacks, after pruning has renumbered the nodes.
    pub(super) fn forget(&mut self) {
        self.by_domain.clear();
        self.recent.forget();
        self.own.forget();
    }

    /// The node of an allocation's path, and the marks of its frames.
    pub(super) fn walk(
        &mut self,
        frames: &mut Frames,
        paths: &mut Paths,
        options: &Options,
        event: AllocationEvent<'_>,
    ) -> (Node, Marks) {
        let Options { selection, depth, .. } = options;
        let codes = event.allocation.backtrace.frames;
        if *depth == Depth::Whole && !codes.is_empty() {
            return self.descend(frames, Some(paths), selection, event);
        }
        let marks = if selection.looks_at_frames() && !codes.is_empty() {
            self.descend(frames, None, selection, event).1
        } else {
            0
        };
        let node = match (depth, codes.last()) {
            (Depth::Innermost, Some(&code)) => self
                .recent
                .node(code, || paths.child(ROOT, frames.number(code, event.table, selection))),
            (Depth::OwnCode, Some(&code)) => self.own.node(frames, paths, selection, event, code),
            _ => paths.child(ROOT, only_frame(frames, *depth, selection, event)),
        };
        (node, marks)
    }

    /// Follows a stack from where it differs from the last one, down the tree of
    /// `paths` if there is one.
    fn descend(
        &mut self,
        frames: &mut Frames,
        mut paths: Option<&mut Paths>,
        selection: &Selection,
        event: AllocationEvent<'_>,
    ) -> (Node, Marks) {
        let backtrace = event.allocation.backtrace;
        let codes = backtrace.frames;
        let domain = usize::from(event.domain);
        if domain >= self.by_domain.len() {
            self.by_domain.resize_with(domain + 1, LastStack::default);
        }
        let last = &mut self.by_domain[domain];
        let marking = selection.looks_at_frames();
        let stated = usize::try_from(backtrace.common_prefix).unwrap_or(usize::MAX);
        let common = common_prefix(&last.codes, codes, stated);
        last.codes.truncate(common);
        last.nodes.truncate(common);
        last.marks.truncate(common);
        let mut node = last.nodes.last().copied().unwrap_or(ROOT);
        let mut marks = last.marks.last().copied().unwrap_or(0);
        let new = &codes[common..];
        last.codes.extend_from_slice(new);
        for &code in new {
            if let Some(paths) = &mut paths {
                node = match paths.first_child(node) {
                    // Mostly it is the first one, and there is nothing to look up.
                    Some((first, frame)) if frames.has_code(frame, code) => first,
                    _ => paths.child(node, frames.number(code, event.table, selection)),
                };
                last.nodes.push(node);
            }
            if marking {
                let frame = frames.number(code, event.table, selection);
                marks |= frames.marks(frame);
                last.marks.push(marks);
            }
        }
        (node, marks)
    }
}

/// The one frame that is kept of a stack.
fn only_frame(
    frames: &mut Frames,
    depth: Depth,
    selection: &Selection,
    event: AllocationEvent<'_>,
) -> u32 {
    let codes = event.allocation.backtrace.frames;
    let code = match depth {
        Depth::Domain => return domain_frame(event.domain),
        Depth::Source => return source_frame(event.allocation.source),
        Depth::Kind => return kind_frame(codes.last().copied().and_then(kind_of).unwrap_or(0)),
        Depth::Label => codes.first(),
        Depth::Innermost | Depth::OwnCode | Depth::Whole => codes.last(),
    };
    let Some(&code) = code else { return NOWHERE };
    let frame = frames.number(code, event.table, selection);
    if depth == Depth::Label && !frames.is_label(frame) { NOWHERE } else { frame }
}
