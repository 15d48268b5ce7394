//! From backtraces to the frame of own code that a stack is counted at.
//!
//! Most blocks are allocated by own code itself: then the innermost frame is enough, and nothing
//! of the stack is looked at. Otherwise frames are looked at outwards until one is own code. What
//! was found is kept for each domain, and holds for the frames that the next stack shares, so that a
//! frame of a deep recursion in a library is looked at once.

use heaptap_trace::Code;

use super::AllocationEvent;
use super::common_prefix::common_prefix;
use super::recent_sites::RecentSites;
use crate::frames::Frames;
use crate::paths::{Node, Paths, ROOT};
use crate::select::Selection;

/// In place of the node of a frame that is no own code.
const LIBRARY: Node = Node::MAX;

/// A frame of own code with the library frames inside it.
struct Run {
    /// The frame of own code and its node; `None` if there is none up to here, and the run begins
    /// with the outermost frame.
    own: Option<(usize, Node)>,
    /// The first frame that is not known to be of this run.
    end: usize,
}

/// The last stack of a domain that was looked at.
#[derive(Default)]
struct OwnStack {
    /// The outermost frame first.
    codes: Vec<Code>,
    /// Runs in it, the outermost first. Not every frame is in one.
    runs: Vec<Run>,
    /// How many of its frames the stacks that were passed over since have had in common.
    shared: usize,
}

impl OwnStack {
    /// Takes another stack, and what is known of it.
    fn follow(&mut self, codes: &[Code], stated: usize) {
        let common = common_prefix(&self.codes, codes, stated.min(self.shared));
        self.codes.truncate(common);
        self.codes.extend_from_slice(&codes[common..]);
        self.shared = codes.len();
        while let Some(run) = self.runs.last_mut() {
            if run.own.map_or(0, |(own, _)| own) < common {
                run.end = run.end.min(common);
                return;
            }
            self.runs.pop();
        }
    }

    /// The node of the innermost frame of own code. The innermost frame is none. `node` is that of
    /// a frame, or [`LIBRARY`].
    #[inline]
    fn own(&mut self, mut node: impl FnMut(Code) -> Node) -> Option<Node> {
        let OwnStack { codes, runs, .. } = self;
        let (known, end) = (runs.last().map_or(0, |run| run.end), codes.len());
        if let Some((&innermost, rest)) = codes.split_last() {
            let mut last = innermost;
            for (at, &code) in rest.iter().enumerate().skip(known).rev() {
                // Recursion is the same frame again and again.
                if code == last {
                    continue;
                }
                last = code;
                let found = node(code);
                if found != LIBRARY {
                    runs.push(Run { own: Some((at, found)), end });
                    return Some(found);
                }
            }
        }
        match runs.last_mut() {
            Some(run) => run.end = end,
            None => runs.push(Run { own: None, end }),
        }
        runs.last().and_then(|run| run.own).map(|(_, node)| node)
    }
}

/// The last stacks of all domains.
#[derive(Default)]
pub(super) struct OwnStacks {
    /// By the number of the domain.
    by_domain: Vec<OwnStack>,
    /// The nodes of frames of own code, and [`LIBRARY`] for others.
    own: RecentSites,
    /// The nodes of other frames, of stacks without own code.
    others: RecentSites,
}

impl OwnStacks {
    /// Forgets all nodes, after pruning has renumbered them.
    pub(super) fn forget(&mut self) {
        self.by_domain.clear();
        self.own.forget();
        self.others.forget();
    }

    /// The node of the site of a stack whose innermost frame is `innermost`.
    #[inline]
    pub(super) fn node(
        &mut self,
        frames: &mut Frames,
        paths: &mut Paths,
        selection: &Selection,
        event: AllocationEvent<'_>,
        innermost: Code,
    ) -> Node {
        let OwnStacks { by_domain, own, others } = self;
        let mut own_node = |code, paths: &mut Paths| {
            own.node(code, || {
                let frame = frames.number(code, event.table, selection);
                if frames.is_own(frame) { paths.child(ROOT, frame) } else { LIBRARY }
            })
        };
        let backtrace = event.allocation.backtrace;
        let stated = usize::try_from(backtrace.common_prefix).unwrap_or(usize::MAX);
        let domain = usize::from(event.domain);
        let node = own_node(innermost, paths);
        if node != LIBRARY {
            if let Some(last) = by_domain.get_mut(domain) {
                last.shared = last.shared.min(stated);
            }
            return node;
        }
        if domain >= by_domain.len() {
            by_domain.resize_with(domain + 1, OwnStack::default);
        }
        let last = &mut by_domain[domain];
        last.follow(backtrace.frames, stated);
        match last.own(|code| own_node(code, paths)) {
            Some(node) => node,
            None => others.node(innermost, || {
                paths.child(ROOT, frames.number(innermost, event.table, selection))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_looked_at_once_while_stacks_share_it() {
        // Frame 1 is own code, and so is 7. In the recursion, frames alternate.
        let node = |code: Code| if code == 1 || code == 7 { code as Node } else { LIBRARY };
        let mut stack = OwnStack::default();
        let mut looked = |codes: &[Code], stated: usize| {
            let mut looks = 0;
            stack.follow(codes, stated);
            let own = stack.own(|code| {
                looks += 1;
                node(code)
            });
            let expected = codes.iter().rev().map(|&code| node(code)).find(|&node| node != LIBRARY);
            assert_eq!(own, expected, "{codes:?}");
            looks
        };
        let recursion = (0..1000).map(|at| 4 + at % 2);
        let deep: Vec<Code> = [1].into_iter().chain(recursion).collect();
        // The innermost frame is known to be in the library.
        assert_eq!(looked(&deep, 0), 1000);
        assert_eq!(looked(&deep, 1001), 0);
        // Own code and a library inside the recursion, and the recursion again.
        let inside = [&deep[..], &[7, 6]].concat();
        assert_eq!(looked(&inside, 1001), 1);
        assert_eq!(looked(&deep, 1001), 0);
        assert_eq!(looked(&[&deep[..], &[6, 8]].concat(), 1001), 1);
        // Less of it.
        assert_eq!(looked(&deep[..500], 500), 0);
        assert_eq!(looked(&inside, 500), 1);
        assert_eq!(looked(&inside[..900], 900), 399);
        // Without own code.
        assert_eq!(looked(&[4, 5, 6], 0), 2);
        assert_eq!(looked(&[4, 5, 6, 5, 6], 3), 1);
        assert_eq!(looked(&[4], 1), 0);
        // Direct recursion is one frame.
        assert_eq!(looked(&[1, 5, 5, 5, 5], 0), 1);
        assert_eq!(looked(&[1, 5, 5, 5], 4), 0);
        // What the file states is not so.
        assert_eq!(looked(&[7, 5, 6], 2), 2);
        assert_eq!(looked(&[], 0), 0);
    }
}
