//! From the walk in progress to what is held of it.

use core::ops::Range;

use super::super::memory::opaque;
use super::held::{BATCH, Held, Link, OUTER, link_room};
use super::streaks::{Frames, LONG, STREAKS, Streak, lay_out};

/// Where one has come to who goes over the fresh frames, from the outermost on.
struct Pieces {
    /// Where the next frame is in the fresh arrays.
    from: usize,
    /// Fresh streaks that are not outside of it.
    streaks: usize,
}

impl<S: AsMut<[u64]> + AsRef<[u64]>> Held<S> {
    /// The next piece of the fresh frames, from the outermost on: where it is in
    /// their arrays, and of what stride if it is a streak.
    #[inline(always)]
    fn next_piece(&self, pieces: &mut Pieces) -> Option<(Range<usize>, Option<u64>)> {
        let frames = self.max_frames;
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
        Pieces { from: self.max_frames - self.fresh, streaks: self.fresh_streaks }
    }

    /// How many codes the walk shares with the `codes` held before it, of which
    /// it keeps the outermost `kept`.
    pub(super) fn common(&self, kept: usize, codes: usize) -> usize {
        if self.fresh_streaks != 0 {
            return self.common_pieces(kept, codes);
        }
        let fresh = self.fresh_codes.as_ref();
        let fresh = fresh.get(self.max_frames - self.fresh..self.max_frames).unwrap_or(&[]);
        let held = self.codes.as_ref().get(kept + OUTER..codes + OUTER).unwrap_or(&[]);
        kept + fresh.iter().zip(held).take_while(|(new, old)| new == old).count()
    }

    #[inline(never)]
    fn common_pieces(&self, kept: usize, codes: usize) -> usize {
        let mut held = self.codes.as_ref().get(kept + OUTER..codes + OUTER).unwrap_or(&[]);
        let mut common = kept;
        let mut pieces = self.pieces();
        while let Some((places, stride)) = self.next_piece(&mut pieces) {
            let fresh = self.fresh_codes.as_ref().get(places).unwrap_or(&[]);
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
            let frames = total.saturating_sub(link.frames);
            self.put_link(kept_links + index, Link { frames, ..link });
        }
        if self.fresh_streaks == 0 {
            let start = self.max_frames - self.fresh;
            let Self { at, codes, fresh_at, fresh_codes, fresh, .. } = self;
            move_batches(fresh_at.as_ref(), start, at.as_mut(), kept, *fresh);
            move_batches(fresh_codes.as_ref(), start, codes.as_mut(), kept + OUTER, *fresh);
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
        self.enter(kept);
        self.link_count = kept_links + self.fresh_links;
        if self.link_count > room {
            // The next walk's would run into them: nothing is witnessed then.
            self.forget();
        }
    }

    /// Puts the fresh frames into their places, those of streaks from what is known
    /// of them.
    #[inline(never)]
    fn settle_frames(&mut self, kept: usize) {
        let (mut pieces, mut to) = (self.pieces(), kept);
        while let Some((from, stride)) = self.next_piece(&mut pieces) {
            let end = to + from.len();
            let (Some(fresh_at), Some(fresh_codes), Some(ats), Some(codes)) = (
                self.fresh_at.as_ref().get(from.clone()),
                self.fresh_codes.as_ref().get(from),
                self.at.as_mut().get_mut(to..end),
                self.codes.as_mut().get_mut(to + OUTER..end + OUTER),
            ) else {
                return;
            };
            match (stride, fresh_at, fresh_codes) {
                (Some(stride), [.., at], [.., code]) => lay_out((ats, codes), *at, *code, stride),
                _ => {
                    ats.copy_from_slice(fresh_at);
                    codes.copy_from_slice(fresh_codes);
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
        let (Some(at), Some(codes), Some((held, fresh))) = (
            self.at.as_ref().get(..total),
            self.codes.as_ref().get(OUTER..total + OUTER),
            self.streaks.as_mut().as_chunks_mut().0.split_at_mut_checked(STREAKS),
        ) else {
            return;
        };
        let frames = Frames { at, codes };
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

/// Moves so many words, and some behind them, from one place to another, as far as
/// there is room.
#[inline(always)]
fn move_batches(from: &[u64], start: usize, to: &mut [u64], place: usize, count: usize) {
    let mut moved = 0;
    while moved < count
        && let Some(from) = from.get(start + moved..).and_then(<[u64]>::first_chunk::<BATCH>)
        && let Some(to) = to.get_mut(place + moved..).and_then(<[u64]>::first_chunk_mut::<BATCH>)
    {
        *to = *from;
        // Or the compiler would call a function that asks how many words there are.
        moved = opaque((moved + BATCH) as u64) as usize;
    }
}
