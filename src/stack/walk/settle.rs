//! From the walk in progress to what is held of it.

use core::ops::Range;

use super::held::{Held, LINK, OUTER, link_room};
use super::streaks::{Frames, LONG, STREAKS, Streak, lay_out};

/// Where one has come to who goes over the fresh frames, from the outermost on.
struct Pieces {
    /// Where the next frame is in the arrays.
    from: usize,
    /// Fresh streaks that are not outside of it.
    streaks: usize,
}

impl Held<'_> {
    /// The next piece of the fresh frames, from the outermost on: where it is in
    /// the arrays, and of what stride if it is a streak.
    #[inline(always)]
    fn next_piece(&self, pieces: &mut Pieces) -> Option<(Range<usize>, Option<u64>)> {
        let frames = 2 * self.max_frames;
        let from = pieces.from;
        let next = pieces.streaks.checked_sub(1).and_then(|last| self.streak(STREAKS + last));
        let (end, stride) = match next {
            Some(streak) if frames - streak.end == from => {
                pieces.streaks -= 1;
                (frames - streak.outer, Some(streak.stride))
            }
            Some(streak) => (frames - streak.end, None),
            None => (frames, None),
        };
        pieces.from = end;
        (from < end).then_some((from..end, stride))
    }

    fn pieces(&self) -> Pieces {
        Pieces { from: 2 * self.max_frames - self.fresh, streaks: self.fresh_streaks }
    }

    /// How many codes the walk shares with the `codes` held before it, of which
    /// it keeps the outermost `kept`.
    pub(super) fn common(&self, kept: usize, codes: usize) -> usize {
        if self.fresh_streaks != 0 {
            return self.common_pieces(kept, codes);
        }
        let start = 2 * self.max_frames - self.fresh + OUTER;
        let fresh = self.codes.get(start..).unwrap_or(&[]);
        let held = self.codes.get(kept + OUTER..codes + OUTER).unwrap_or(&[]);
        kept + fresh.iter().zip(held).take_while(|(new, old)| new == old).count()
    }

    #[inline(never)]
    fn common_pieces(&self, kept: usize, codes: usize) -> usize {
        let mut held = self.codes.get(kept + OUTER..codes + OUTER).unwrap_or(&[]);
        let mut common = kept;
        let mut pieces = self.pieces();
        while let Some((places, stride)) = self.next_piece(&mut pieces) {
            let fresh = self.codes.get(places.start + OUTER..places.end + OUTER).unwrap_or(&[]);
            let same = match (stride, fresh) {
                (Some(_), [.., code]) => {
                    held.iter().take(fresh.len()).take_while(|old| *old == code).count()
                }
                _ => fresh.iter().zip(held).take_while(|(new, old)| new == old).count(),
            };
            common += same;
            held = held.get(same..).unwrap_or(&[]);
            if same < fresh.len() {
                break;
            }
        }
        common
    }

    /// Puts the fresh frames inside the `kept` outermost held ones.
    pub(super) fn settle(&mut self, kept: usize) {
        let kept_links = if kept == 0 { 0 } else { self.links_up_to(kept - 1) };
        let total = kept + self.fresh;
        let room = link_room(self.max_frames);
        for index in 0..self.fresh_links {
            let from = 2 * room - self.fresh_links + index;
            let link = self.link(from);
            let to = (kept_links + index) * LINK;
            if let Some(words) = self.links.get_mut(to..to + LINK) {
                let frames = total.saturating_sub(link.frames) as u64;
                words.copy_from_slice(&[frames, link.at, link.value]);
            }
        }
        if self.fresh_streaks == 0 {
            // In range as `push` saw to it; an empty range is always so.
            let start = 2 * self.max_frames - self.fresh;
            self.at.copy_within(start.., kept);
            self.codes.copy_within(start + OUTER.., kept + OUTER);
        } else {
            self.settle_frames(kept);
        }
        let last = self.streak_count.checked_sub(1).and_then(|last| self.streak(last));
        if self.fresh_streaks != 0
            || last.is_some_and(|streak| streak.end > kept)
            || kept != 0 && self.fresh != 0 && self.code(kept) == self.code(kept - 1)
        {
            self.settle_streaks(kept, total);
        }
        self.frames = total;
        self.link_count = kept_links + self.fresh_links;
        if self.link_count > room {
            // The next walk's would run into them: nothing is witnessed then.
            (self.frames, self.link_count) = (0, 0);
        }
    }

    /// Puts the fresh frames into their places: further down in the arrays, so that
    /// none is overwritten before it was read.
    #[inline(never)]
    fn settle_frames(&mut self, kept: usize) {
        let (mut pieces, mut to) = (self.pieces(), kept);
        while let Some((from, stride)) = self.next_piece(&mut pieces) {
            let (innermost, end) = (from.end - 1, to + from.len());
            match stride {
                // In range as `push` saw to it.
                None => {
                    self.at.copy_within(from.clone(), to);
                    self.codes.copy_within(from.start + OUTER..from.end + OUTER, to + OUTER);
                }
                Some(stride) => {
                    let (at, code) = (self.at(innermost), self.code(innermost));
                    let ats = self.at.get_mut(to..end).unwrap_or(&mut []);
                    let codes = self.codes.get_mut(to + OUTER..end + OUTER).unwrap_or(&mut []);
                    lay_out((ats, codes), at, code, stride);
                }
            }
            to = end;
        }
    }

    /// Finds the streaks of the `total` frames that are now held, of which `kept`
    /// were before.
    #[inline(never)]
    fn settle_streaks(&mut self, kept: usize, total: usize) {
        let mut count = core::mem::take(&mut self.streak_count);
        let (Some(at), Some(codes)) = (self.at.get(..total), self.codes.get(OUTER..total + OUTER))
        else {
            return;
        };
        let frames = Frames { at, codes };
        let Some((held, fresh)) = self.streaks.split_at_mut_checked(STREAKS) else { return };
        // Those of the frames that were kept; the last one may go on.
        let mut last = None;
        while let Some(words) = count.checked_sub(1).and_then(|index| held.get(index)) {
            let Streak { outer, end, stride } = Streak::from_words(*words);
            if outer + LONG <= kept {
                last = Some(Streak { outer, end: end.min(kept), stride });
                break;
            }
            count -= 1;
        }
        let mut growing = match last {
            Some(streak) if streak.end == kept => {
                count -= 1;
                Some(streak)
            }
            _ => frames.seam(last.map_or(0, |streak| streak.end), kept),
        };
        let mut hold = |streak: Streak| {
            if streak.end - streak.outer >= LONG
                && let Some(words) = held.get_mut(count)
            {
                *words = streak.to_words();
                count += 1;
            }
        };
        for words in fresh.iter().take(self.fresh_streaks).rev() {
            let Streak { outer: inner, end, stride } = Streak::from_words(*words);
            let next = Streak { outer: total - end, end: total - inner, stride };
            if let Some(streak) = &mut growing {
                frames.extend(streak, next.outer + usize::from(streak.stride == stride));
                if streak.end > next.outer && streak.stride == stride {
                    streak.end = next.end;
                    continue;
                }
                streak.end = streak.end.min(next.outer);
                hold(*streak);
            }
            growing = Some(next);
        }
        if let Some(mut streak) = growing {
            frames.extend(&mut streak, total);
            hold(streak);
        }
        self.streak_count = count;
    }
}
