//! A lane's stack, and how much of it the file's last backtrace has.
//!
//! A mutator sends the frames that changed. The encoder needs the length of the
//! common prefix, in frames of the file's last backtrace, and the rest. The two
//! differ where a backtrace was too long for the format: there one frame of the
//! file stands for several of the stack, an [`Elision`].

use heaptap_trace::LeftOut;

/// Frames of the stack for which the file's last backtrace has one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Elision {
    /// The first of them.
    from: usize,
    /// How many.
    count: usize,
}

/// The stack of one lane, outermost frame first.
#[derive(Default)]
pub(crate) struct LaneStack {
    frames: Vec<u64>,
    /// The innermost frame's code as recorded, while `frames` has a code for one
    /// of its parts instead.
    without_part: Option<u64>,
    /// How many outermost frames are as in the file's last backtrace.
    same: usize,
    /// In the order of the stack; all were within the first `same` frames when
    /// the last backtrace was written.
    elisions: Vec<Elision>,
}

impl LaneStack {
    /// Keeps the `keep` outermost frames, and adds the new ones inside them.
    pub(crate) fn change(&mut self, keep: usize, new: &[u64]) {
        if keep >= self.frames.len() && new.is_empty() {
            return;
        }
        self.forget_part();
        // After a small stack, the mutator does not know what could be kept.
        let more = if keep == 0 { common(&self.frames, new.iter()) } else { 0 };
        self.truncate(keep + more);
        self.frames.extend_from_slice(new.get(more..).unwrap_or(&[]));
    }

    /// Adds the innermost frame again, `times` times: a recursion.
    pub(crate) fn repeat(&mut self, times: usize) {
        self.forget_part();
        if let Some(&innermost) = self.frames.last() {
            self.frames.resize(self.frames.len() + times, innermost);
        }
    }

    /// Replaces all frames by these, innermost first.
    #[inline]
    pub(crate) fn replace(&mut self, inner_first: &[u64]) {
        if self.without_part.is_some() {
            if self.is(inner_first) {
                return;
            }
            self.forget_part();
        }
        let common = common(&self.frames, inner_first.iter().rev());
        self.truncate(common);
        let new = inner_first.get(..inner_first.len() - common).unwrap_or(&[]);
        self.frames.extend(new.iter().rev());
    }

    /// Replaces all frames by these, innermost first, of which the `same`
    /// outermost are as in the file's last backtrace.
    pub(crate) fn set_written(&mut self, inner_first: &[u64], same: usize) {
        self.frames.clear();
        self.frames.extend(inner_first.iter().rev());
        self.same = same;
    }

    /// Whether the file's last backtrace is exactly this stack as recorded.
    pub(crate) fn is_fully_written(&self) -> bool {
        self.same == self.frames.len() && self.elisions.is_empty() && self.without_part.is_none()
    }

    /// Whether these are the frames as recorded.
    #[cold]
    fn is(&self, inner_first: &[u64]) -> bool {
        let outer = self.frames.iter().rev().skip(1);
        self.innermost().iter().chain(outer).eq(inner_first)
    }

    /// The innermost frame has its code as recorded.
    #[inline(always)]
    pub(crate) fn forget_part(&mut self) {
        if let Some(code) = self.without_part.take() {
            self.set_innermost(code);
        }
    }

    fn truncate(&mut self, frames: usize) {
        self.frames.truncate(frames);
        self.same = self.same.min(self.frames.len());
    }

    /// All frames, the outermost first.
    pub(crate) fn frames(&self) -> &[u64] {
        &self.frames
    }

    /// The innermost frame's code as recorded; `None` if the stack is empty.
    pub(crate) fn innermost(&self) -> Option<u64> {
        self.without_part.or_else(|| self.frames.last().copied())
    }

    /// Replaces the innermost frame's code by that of the part that is allocated.
    pub(crate) fn set_part_code(&mut self, innermost: u64, with_part: u64) {
        self.without_part = Some(innermost);
        self.set_innermost(with_part);
    }

    /// What to write for an allocation under this stack: how many frames of the
    /// file's last backtrace stay, and the frames inside those.
    pub(crate) fn backtrace(&mut self) -> (u64, &[u64]) {
        let start = self.start();
        let hidden: usize = self.elisions.iter().map(|elision| elision.count - 1).sum();
        ((start - hidden) as u64, self.frames.get(start..).unwrap_or(&[]))
    }

    fn set_innermost(&mut self, code: u64) {
        if let [outer @ .., innermost] = &mut self.frames[..]
            && *innermost != code
        {
            *innermost = code;
            self.same = self.same.min(outer.len());
        }
    }

    /// Where the frames to write begin. A change inside an elision is written
    /// from the elision's beginning on.
    fn start(&mut self) -> usize {
        let mut start = self.same;
        while let Some(elision) = self.elisions.last()
            && elision.from + elision.count > start
        {
            start = start.min(elision.from);
            self.elisions.pop();
        }
        self.same = start;
        start
    }

    /// What [`LaneStack::backtrace`] just returned was written, with some of its
    /// frames left out.
    pub(crate) fn backtrace_written(&mut self, left_out: Option<LeftOut>) {
        if let Some(LeftOut { kept, count }) = left_out {
            self.elisions.push(Elision { from: self.same + kept, count: count as usize });
        }
        self.same = self.frames.len();
    }

    /// A new file begins, without any backtrace.
    pub(crate) fn forget_written(&mut self) {
        self.same = 0;
        self.elisions.clear();
    }
}

/// How many outermost frames are the same.
#[inline(always)]
fn common<'a>(old: &[u64], new: impl Iterator<Item = &'a u64>) -> usize {
    old.iter().zip(new).take_while(|(old, new)| old == new).count()
}

/// The same for two stacks with the innermost frame first.
#[inline(always)]
pub(crate) fn common_outermost(old: &[u64], new: &[u64]) -> usize {
    let shorter = old.len().min(new.len());
    let old = old.get(old.len() - shorter..).unwrap_or(&[]);
    let new = new.get(new.len() - shorter..).unwrap_or(&[]);
    old.iter().zip(new).rev().take_while(|(old, new)| old == new).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MARK: u64 = 1 << 61;

    /// A file that takes few frames at a time.
    #[derive(Default)]
    struct WrittenFile {
        shown: Vec<u64>,
    }

    impl WrittenFile {
        /// Writes a backtrace, of whose new frames it takes `head` and the last
        /// `tail` if there are more.
        fn write(
            &mut self,
            prefix: usize,
            new: &[u64],
            head: usize,
            tail: usize,
        ) -> Option<LeftOut> {
            assert!(prefix <= self.shown.len());
            self.shown.truncate(prefix);
            if new.len() <= head + tail {
                self.shown.extend(new);
                return None;
            }
            let count = new.len() - head - tail;
            self.shown.extend(&new[..head]);
            self.shown.push(MARK + count as u64);
            self.shown.extend(&new[new.len() - tail..]);
            Some(LeftOut { kept: head, count: count as u64 })
        }
    }

    fn reversed(frames: &[u64]) -> Vec<u64> {
        frames.iter().rev().copied().collect()
    }

    /// Every frame of the stack is written, or is among those that a mark counts.
    fn assert_written(shown: &[u64], stack: &[u64]) {
        let mut at = 0;
        for &frame in shown {
            if frame >= MARK {
                at += (frame - MARK) as usize;
            } else {
                assert_eq!(stack.get(at), Some(&frame), "at {at} of {stack:?}, shown {shown:?}");
                at += 1;
            }
        }
        assert_eq!(at, stack.len());
    }

    proptest! {
        #[test]
        fn the_file_has_the_whole_stack(
            changes in prop::collection::vec(
                (any::<usize>(), prop::collection::vec(1..4u64, 0..30), 0..6usize, 1..6usize, any::<[bool; 2]>()),
                1..30,
            ),
        ) {
            let mut lane = LaneStack::default();
            let mut stack: Vec<u64> = Vec::new();
            let mut file = WrittenFile::default();
            let mut all_written = true;
            for (keep, new, head, tail, [written, whole]) in changes {
                let before = stack.clone();
                stack.truncate(keep % (stack.len() + 1));
                stack.extend(&new);
                // The kept prefix is sent in full length, or as 0.
                let kept = if keep % 5 == 0 { 0 } else { common(&before, stack.iter()) };
                if whole {
                    let inner_first = reversed(&stack);
                    let same = common_outermost(&reversed(&before), &inner_first);
                    prop_assert_eq!(same, common(&before, stack.iter()));
                    if lane.is_fully_written() {
                        lane.set_written(&inner_first, same);
                    } else {
                        lane.replace(&inner_first);
                    }
                } else {
                    lane.change(kept, &stack[kept..]);
                }
                if written {
                    let (prefix, new) = lane.backtrace();
                    let shown = file.shown.get(prefix as usize);
                    // The frames that are written as new are new.
                    prop_assert!(!all_written || shown.is_none() || shown != new.first());
                    let left_out = file.write(prefix as usize, new, head, tail);
                    lane.backtrace_written(left_out);
                    assert_written(&file.shown, &stack);
                }
                all_written = written;
            }
        }
    }

    #[test]
    fn the_innermost_frame_has_the_code_of_the_part() {
        let mut lane = LaneStack::default();
        lane.change(0, &[1, 2]);
        let (first, second) = (1002, 2002);
        lane.set_part_code(2, first);
        assert_eq!(lane.backtrace(), (0, &[1, first][..]));
        lane.backtrace_written(None);
        assert_eq!(lane.innermost(), Some(2));
        lane.set_part_code(2, first);
        assert_eq!(lane.backtrace(), (2, &[][..]));
        lane.set_part_code(2, second);
        assert_eq!(lane.backtrace(), (1, &[second][..]));
        lane.backtrace_written(None);
        // The frame has called another one: the part is no longer meant.
        lane.change(2, &[3]);
        assert_eq!(lane.backtrace(), (1, &[2, 3][..]));
        lane.backtrace_written(None);
        lane.change(2, &[]);
        lane.set_part_code(2, first);
        lane.backtrace_written(None);
        // Recorded again, it is the same.
        lane.replace(&[2, 1]);
        lane.set_part_code(2, first);
        assert_eq!(lane.backtrace(), (2, &[][..]));
        lane.replace(&[2, 1]);
        lane.replace(&[3, 2, 1]);
        assert_eq!(lane.backtrace(), (1, &[2, 3][..]));
    }

    #[test]
    fn a_new_file_gets_the_whole_stack() {
        let mut lane = LaneStack::default();
        lane.change(0, &[1, 2, 3]);
        lane.backtrace_written(None);
        assert_eq!(lane.backtrace(), (3, &[][..]));
        lane.forget_written();
        assert_eq!(lane.backtrace(), (0, &[1, 2, 3][..]));
    }
}
