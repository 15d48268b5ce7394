//! A lane's stack, and how much of it the file shows.
//!
//! The mutator sends the frames that changed; the encoder wants a common prefix
//! in frames of the file and the rest. The two differ where a backtrace was too
//! long for the format: there one frame of the file stands for several of the
//! stack, a [`Cut`].

use heaptap_trace::LeftOut;

/// Frames of the stack that the file's last backtrace shows as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    /// The first of them.
    from: usize,
    /// How many.
    count: usize,
}

/// The stack of one lane, outermost frame first.
#[derive(Default)]
pub(crate) struct ShownStack {
    frames: Vec<u64>,
    /// The innermost frame's code as it was told, if it now has a part in it.
    without_part: Option<u64>,
    /// How many outermost frames are as in the file's last backtrace.
    same: usize,
    /// In the order of the stack, all within the first `same` frames at the
    /// time of the last backtrace.
    cuts: Vec<Cut>,
}

impl ShownStack {
    /// Keeps the outermost frames and calls the new ones from there.
    pub(crate) fn change(&mut self, keep: usize, new: &[u64]) {
        if keep >= self.frames.len() && new.is_empty() {
            return;
        }
        self.forget_part();
        // Behind a small stack none is known to be kept.
        let more = if keep == 0 { common(&self.frames, new.iter()) } else { 0 };
        self.keep(keep + more);
        self.frames.extend_from_slice(new.get(more..).unwrap_or(&[]));
    }

    /// The innermost frame has called itself so many times.
    pub(crate) fn repeat(&mut self, times: usize) {
        self.forget_part();
        if let Some(&innermost) = self.frames.last() {
            self.frames.resize(self.frames.len() + times, innermost);
        }
    }

    /// Takes these frames, the innermost first, in place of all.
    #[inline]
    pub(crate) fn replace(&mut self, inner_first: &[u64]) {
        if self.without_part.is_some() {
            if self.is(inner_first) {
                return;
            }
            self.forget_part();
        }
        let common = common(&self.frames, inner_first.iter().rev());
        self.keep(common);
        let new = inner_first.get(..inner_first.len() - common).unwrap_or(&[]);
        self.frames.extend(new.iter().rev());
    }

    /// Takes these frames, the innermost first, in place of all: the file shows so
    /// many outermost of them as they are.
    pub(crate) fn show(&mut self, inner_first: &[u64], same: usize) {
        self.frames.clear();
        self.frames.extend(inner_first.iter().rev());
        self.same = same;
    }

    /// Whether the file's last backtrace is just this stack as it was told.
    pub(crate) fn is_all_shown(&self) -> bool {
        self.same == self.frames.len() && self.cuts.is_empty() && self.without_part.is_none()
    }

    /// Whether these are the frames as they were told.
    #[cold]
    fn is(&self, inner_first: &[u64]) -> bool {
        let outer = self.frames.iter().rev().skip(1);
        self.innermost().iter().chain(outer).eq(inner_first)
    }

    fn forget_part(&mut self) {
        if let Some(code) = self.without_part.take() {
            self.set_innermost(code);
        }
    }

    fn keep(&mut self, frames: usize) {
        self.frames.truncate(frames);
        self.same = self.same.min(self.frames.len());
    }

    /// The innermost frame's code as it was told, if there is a frame.
    pub(crate) fn innermost(&self) -> Option<u64> {
        self.without_part.or_else(|| self.frames.last().copied())
    }

    /// Gives the innermost frame a code that tells the part which is allocated.
    pub(crate) fn tell_part(&mut self, innermost: u64, with_part: u64) {
        self.without_part = Some(innermost);
        self.set_innermost(with_part);
    }

    /// What to write for an allocation under this stack: how many frames of the
    /// file's last backtrace stay, and those to write behind them.
    pub(crate) fn backtrace(&mut self) -> (u64, &[u64]) {
        let start = self.start();
        let hidden: usize = self.cuts.iter().map(|cut| cut.count - 1).sum();
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

    /// Where new frames begin: what changed within a cut is shown from the
    /// cut's beginning on.
    fn start(&mut self) -> usize {
        let mut start = self.same;
        while let Some(cut) = self.cuts.last()
            && cut.from + cut.count > start
        {
            start = start.min(cut.from);
            self.cuts.pop();
        }
        self.same = start;
        start
    }

    /// The backtrace that [`ShownStack::backtrace`] just told was written, with so
    /// much left out of its new frames.
    pub(crate) fn written(&mut self, left_out: Option<LeftOut>) {
        if let Some(LeftOut { kept, count }) = left_out {
            self.cuts.push(Cut { from: self.same + kept, count: count as usize });
        }
        self.same = self.frames.len();
    }

    /// A new file knows nothing of what was shown before.
    pub(crate) fn forget_shown(&mut self) {
        self.same = 0;
        self.cuts.clear();
    }
}

/// How many frames are the same, from the outermost on.
#[inline(always)]
fn common<'a>(old: &[u64], new: impl Iterator<Item = &'a u64>) -> usize {
    old.iter().zip(new).take_while(|(old, new)| old == new).count()
}

/// The same of two stacks whose innermost frame comes first.
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
    struct File {
        shown: Vec<u64>,
    }

    impl File {
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

    /// Every frame of the stack is shown, or is among those a mark counts.
    fn assert_shows(shown: &[u64], stack: &[u64]) {
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
        fn the_file_shows_the_stack(
            changes in prop::collection::vec(
                (any::<usize>(), prop::collection::vec(1..4u64, 0..30), 0..6usize, 1..6usize, any::<[bool; 2]>()),
                1..30,
            ),
        ) {
            let mut lane = ShownStack::default();
            let mut stack: Vec<u64> = Vec::new();
            let mut file = File::default();
            let mut all_written = true;
            for (keep, new, head, tail, [written, whole]) in changes {
                let before = stack.clone();
                stack.truncate(keep % (stack.len() + 1));
                stack.extend(&new);
                // What is kept is told as far as it goes, or not at all.
                let kept = if keep % 5 == 0 { 0 } else { common(&before, stack.iter()) };
                if whole {
                    let inner_first = reversed(&stack);
                    let same = common_outermost(&reversed(&before), &inner_first);
                    prop_assert_eq!(same, common(&before, stack.iter()));
                    if lane.is_all_shown() {
                        lane.show(&inner_first, same);
                    } else {
                        lane.replace(&inner_first);
                    }
                } else {
                    lane.change(kept, &stack[kept..]);
                }
                if written {
                    let (prefix, new) = lane.backtrace();
                    let shown = file.shown.get(prefix as usize);
                    // What is said to be new is so.
                    prop_assert!(!all_written || shown.is_none() || shown != new.first());
                    let left_out = file.write(prefix as usize, new, head, tail);
                    lane.written(left_out);
                    assert_shows(&file.shown, &stack);
                }
                all_written = written;
            }
        }
    }

    #[test]
    fn the_innermost_frame_tells_the_part() {
        let mut lane = ShownStack::default();
        lane.change(0, &[1, 2]);
        let (first, second) = (1002, 2002);
        lane.tell_part(2, first);
        assert_eq!(lane.backtrace(), (0, &[1, first][..]));
        lane.written(None);
        assert_eq!(lane.innermost(), Some(2));
        lane.tell_part(2, first);
        assert_eq!(lane.backtrace(), (2, &[][..]));
        lane.tell_part(2, second);
        assert_eq!(lane.backtrace(), (1, &[second][..]));
        lane.written(None);
        // The same frame has called something: no part of it is meant.
        lane.change(2, &[3]);
        assert_eq!(lane.backtrace(), (1, &[2, 3][..]));
        lane.written(None);
        lane.change(2, &[]);
        lane.tell_part(2, first);
        lane.written(None);
        // Told anew, it is the same.
        lane.replace(&[2, 1]);
        lane.tell_part(2, first);
        assert_eq!(lane.backtrace(), (2, &[][..]));
        lane.replace(&[2, 1]);
        lane.replace(&[3, 2, 1]);
        assert_eq!(lane.backtrace(), (1, &[2, 3][..]));
    }

    #[test]
    fn a_new_file_gets_the_whole_stack() {
        let mut lane = ShownStack::default();
        lane.change(0, &[1, 2, 3]);
        lane.written(None);
        assert_eq!(lane.backtrace(), (3, &[][..]));
        lane.forget_shown();
        assert_eq!(lane.backtrace(), (0, &[1, 2, 3][..]));
    }
}
