//! The end of a walk: what it shares with the last one, and how it becomes that.

use super::MARKERS;
use super::last_walk::LastWalk;
use super::new_frames::{NewFrames, Piece};
use super::outward::Outcome;
use super::records::{Frames, FramesMut, Link, Records, Streak};

/// How many codes two stacks share, from the outermost inwards.
fn common<'a>(new: impl IntoIterator<Item = &'a u64>, last: &[u64]) -> usize {
    new.into_iter().zip(last).take_while(|(new, last)| new == last).count()
}

impl<S: AsMut<[u64]> + AsRef<[u64]>> LastWalk<S> {
    /// How many codes a walk shares with the last one, of which it keeps the `kept`
    /// outermost frames.
    #[inline]
    pub(super) fn shared_codes(&self, new: &NewFrames<S>, kept: usize) -> usize {
        let mut shared = kept;
        for Piece { frames, stride } in new.pieces() {
            let last = self.codes_of(shared..self.code_count.max(shared));
            let count = frames.codes.len();
            let same = match (stride, frames.codes) {
                (Some(_), [.., code]) => common(core::iter::repeat_n(code, count), last),
                (_, codes) => common(codes, last),
            };
            shared += same;
            if same < count {
                break;
            }
        }
        shared
    }

    /// Puts the new frames inside of the kept ones, in place of the others.
    pub(super) fn commit(&mut self, new: &NewFrames<S>, outcome: Outcome) {
        let Outcome { kept, end } = outcome;
        self.end = end;
        let total = kept + new.count;
        self.frames = total;
        self.code_count = total;
        self.links.truncate(if kept == 0 { 0 } else { self.links_up_to(kept - 1) });
        let mut links = new.links.iter().rev();
        let has_room = links.all(|link| {
            let frames = total.saturating_sub(link.frames);
            self.links.push(Link { frames, ..link })
        });
        self.commit_frames(new, kept);
        let goes_on = kept != 0 && new.count != 0 && self.code(kept) == self.code(kept - 1);
        if goes_on
            || new.streaks.len() != 0
            || self.streaks.last().is_some_and(|streak| streak.end > kept)
        {
            self.commit_streaks(new, kept);
        }
        self.enter_in_index(kept);
        if !has_room {
            // A crossing without witnesses could change unseen.
            self.forget();
        }
    }

    fn commit_frames(&mut self, new: &NewFrames<S>, kept: usize) {
        let mut start = kept;
        for Piece { frames, stride } in new.pieces() {
            let end = start + frames.codes.len();
            let (Some(witnesses), Some(codes)) = (
                self.witnesses.as_mut().get_mut(start..end),
                self.codes.as_mut().get_mut(start + MARKERS..end + MARKERS),
            ) else {
                return;
            };
            match (stride, frames) {
                (Some(stride), Frames { witnesses: [.., witness], codes: [.., code] }) => {
                    FramesMut { witnesses, codes }.fill(*witness, *code, stride);
                }
                _ => {
                    witnesses.copy_from_slice(frames.witnesses);
                    codes.copy_from_slice(frames.codes);
                }
            }
            start = end;
        }
    }

    /// Finds the streaks of all frames: those of the frames kept, and the new ones.
    /// Where one ends and the other begins they may be one.
    fn commit_streaks(&mut self, new: &NewFrames<S>, kept: usize) {
        let total = self.frames;
        let Self { witnesses, codes, streaks, .. } = self;
        let (Some(witnesses), Some(codes)) =
            (witnesses.as_ref().get(..total), codes.as_ref().get(MARKERS..total + MARKERS))
        else {
            streaks.truncate(0);
            return;
        };
        let frames = Frames { witnesses, codes };
        let mut growing = last_of_kept(streaks, frames, kept);
        for Streak { outer: inner, end, stride } in new.streaks.iter().rev() {
            let next = Streak { outer: total - end, end: total - inner, stride };
            if let Some(streak) = &mut growing {
                frames.extend(streak, next.outer + usize::from(streak.stride == stride));
                if streak.end > next.outer && streak.stride == stride {
                    streak.end = next.end;
                    continue;
                }
                streak.end = streak.end.min(next.outer);
                record(streaks, *streak);
            }
            growing = Some(next);
        }
        if let Some(mut streak) = growing {
            frames.extend(&mut streak, total);
            record(streaks, streak);
        }
    }
}

/// Drops what the list says of frames that are not among the `kept` outermost, and
/// takes the streak from it that may go on among the new ones.
fn last_of_kept<S: AsMut<[u64]> + AsRef<[u64]>>(
    streaks: &mut Records<S, Streak>,
    frames: Frames<'_>,
    kept: usize,
) -> Option<Streak> {
    let mut outermost = 0;
    while let Some(streak) = streaks.last() {
        let streak = Streak { end: streak.end.min(kept), ..streak };
        if streak.outer < kept && streak.is_worth_recording() {
            if streak.end == kept {
                streaks.truncate(streaks.len() - 1);
                return Some(streak);
            }
            outermost = streak.end;
            break;
        }
        streaks.truncate(streaks.len() - 1);
    }
    frames.streak_over(outermost, kept)
}

fn record<S: AsMut<[u64]> + AsRef<[u64]>>(streaks: &mut Records<S, Streak>, streak: Streak) {
    if streak.is_worth_recording() {
        // Without room it is not recorded, and its frames are verified one by one.
        streaks.push(streak);
    }
}
