//! From backtraces to nodes of the call tree.
//!
//! A stack mostly begins like the one before it in its domain. So the nodes of
//! the last stack are kept, and only what is new is looked up.

use hashbrown::HashMap;
use heaptap_trace::{Allocation, Code, LocationTable};

use super::{Depth, Options};
use crate::frames::Frames;
use crate::paths::{NOWHERE, Node, Paths, ROOT, domain_frame};
use crate::select::{Marks, Selection};

/// The last stack of a domain.
#[derive(Default)]
struct Walk {
    codes: Vec<Code>,
    /// The node of each frame, where whole stacks are kept.
    nodes: Vec<Node>,
    /// What the frames up to each one say to the selection.
    marks: Vec<Marks>,
}

/// The last stacks of all domains, and the frames seen so far.
#[derive(Default)]
pub(super) struct Walks {
    pub(super) frames: Frames,
    last: HashMap<u16, Walk>,
}

impl Walks {
    /// Nodes have new numbers.
    pub(super) fn forget(&mut self) {
        self.last.clear();
    }

    /// The node of an allocation's path, and what its frames say.
    pub(super) fn walk(
        &mut self,
        paths: &mut Paths,
        options: &Options,
        table: &LocationTable,
        (domain, allocation): (u16, &Allocation<'_>),
    ) -> (Node, Marks) {
        let Options { selection, depth, .. } = options;
        let codes = allocation.backtrace.frames;
        let looks = selection.looks_at_frames() && !codes.is_empty();
        if *depth == Depth::Whole && !codes.is_empty() {
            return self.follow(Some(paths), selection, table, (domain, allocation));
        }
        let marks =
            if looks { self.follow(None, selection, table, (domain, allocation)).1 } else { 0 };
        let frame = self.frame(*depth, domain, codes, selection, table);
        (paths.child(ROOT, frame), marks)
    }

    /// The one frame that is kept of a stack.
    fn frame(
        &mut self,
        depth: Depth,
        domain: u16,
        codes: &[Code],
        selection: &Selection,
        table: &LocationTable,
    ) -> u32 {
        let code = match depth {
            Depth::Domain => return domain_frame(domain),
            Depth::Label => codes.first(),
            Depth::Innermost | Depth::Whole => codes.last(),
        };
        let Some(&code) = code else { return NOWHERE };
        let frame = self.frames.number(code, table, selection);
        if depth == Depth::Label && !self.frames.is_label(frame) { NOWHERE } else { frame }
    }

    /// Follows a stack from where it differs from the last one, down the tree if
    /// there is one to go down.
    fn follow(
        &mut self,
        mut paths: Option<&mut Paths>,
        selection: &Selection,
        table: &LocationTable,
        (domain, allocation): (u16, &Allocation<'_>),
    ) -> (Node, Marks) {
        let codes = allocation.backtrace.frames;
        let walk = self.last.entry(domain).or_default();
        let stated = usize::try_from(allocation.backtrace.common_prefix).unwrap_or(usize::MAX);
        let common = common_prefix(&walk.codes, codes, stated);
        walk.codes.truncate(common);
        walk.nodes.truncate(common);
        walk.marks.truncate(common);
        let mut node = walk.nodes.last().copied().unwrap_or(ROOT);
        let mut marks = walk.marks.last().copied().unwrap_or(0);
        for &code in &codes[common..] {
            let frame = self.frames.number(code, table, selection);
            marks |= self.frames.marks(frame);
            walk.codes.push(code);
            walk.marks.push(marks);
            if let Some(paths) = &mut paths {
                node = paths.child(node, frame);
                walk.nodes.push(node);
            }
        }
        (node, marks)
    }
}

/// How many frames two stacks share. What the file states is right unless
/// something of it was lost.
fn common_prefix(last: &[Code], codes: &[Code], stated: usize) -> usize {
    let stated = stated.min(last.len()).min(codes.len());
    if last[..stated] == codes[..stated] {
        return stated;
    }
    last.iter().zip(codes).take_while(|(last, code)| last == code).count()
}

#[cfg(test)]
mod tests {
    use super::common_prefix;

    #[test]
    fn what_the_file_states_of_a_prefix_is_checked() {
        assert_eq!(common_prefix(&[1, 2, 3], &[1, 2, 4], 2), 2);
        // Something was lost in between.
        assert_eq!(common_prefix(&[1, 5, 3], &[1, 2, 3], 3), 1);
        assert_eq!(common_prefix(&[1], &[1, 2, 3], 9), 1);
        assert_eq!(common_prefix(&[], &[1], 1), 0);
    }
}
