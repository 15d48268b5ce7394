//! The frames that the walk in progress finds by the tables.
//!
//! They are found from the innermost outwards but kept like those of the last walk,
//! outermost first: the arrays are filled from their far end downwards. Links and
//! streaks are lists in the order found, and count frames from the innermost on.

use super::last_walk::{INDIRECT, LastWalk};
use super::records::{Frames, FramesMut, Link, MAX_STREAKS, Records, Streak, max_links};

pub(super) struct NewFrames<S> {
    /// The innermost frame is the last of `max_frames`. The frames of a streak need
    /// not be written, but for its innermost.
    witnesses: S,
    codes: S,
    pub(super) links: Records<S, Link>,
    pub(super) streaks: Records<S, Streak>,
    pub(super) max_frames: usize,
    /// At most `max_frames`.
    pub(super) count: usize,
}

/// The room for new frames, borrowed by a loop so that all of it stays in registers:
/// [`NewFrames::push`] for each frame takes a third more instructions
/// (`benches/stack.rs: moved/190`).
pub(super) struct Room<'a, S> {
    witnesses: &'a mut [u64],
    codes: &'a mut [u64],
    streaks: &'a mut Records<S, Streak>,
    max_frames: usize,
    /// Places that are free; the next frame goes to the last of them.
    pub(super) left: usize,
}

impl<S: AsMut<[u64]> + AsRef<[u64]>> Room<'_, S> {
    /// How many new frames there are.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.max_frames - self.left
    }

    /// Adds a frame outside of the others; false if there is no room.
    #[inline]
    pub(super) fn push(&mut self, witness: u64, code: u64) -> bool {
        let place = self.left.wrapping_sub(1);
        let (Some(at), Some(to)) = (self.witnesses.get_mut(place), self.codes.get_mut(place))
        else {
            return false;
        };
        (*at, *to) = (witness, code);
        self.left = place;
        true
    }

    /// Adds `count` frames outside of the others, for which there is room and of which
    /// the innermost has this witness. With the `before` last ones they are a streak.
    pub(super) fn push_streak(
        &mut self,
        before: usize,
        count: usize,
        witness: u64,
        code: u64,
        stride: u64,
    ) {
        let streak = Streak { outer: self.count() - before, end: self.count() + count, stride };
        let places = self.left - count..self.left;
        self.left = places.start;
        if !self.streaks.push(streak)
            && let (Some(witnesses), Some(codes)) =
                (self.witnesses.get_mut(places.clone()), self.codes.get_mut(places))
        {
            FramesMut { witnesses, codes }.fill(witness, code, stride);
        }
    }
}

/// Consecutive new frames, outermost first: of a streak with this stride, whose
/// innermost alone is written, or of none.
pub(super) struct Piece<'a> {
    pub(super) frames: Frames<'a>,
    pub(super) stride: Option<u64>,
}

impl<S: AsMut<[u64]> + AsRef<[u64]>> NewFrames<S> {
    pub(super) fn new(
        max_frames: usize,
        storage: &mut impl FnMut(usize) -> Option<S>,
    ) -> Option<Self> {
        Some(Self {
            witnesses: storage(max_frames)?,
            codes: storage(max_frames)?,
            links: Records::new(max_links(max_frames), storage)?,
            streaks: Records::new(MAX_STREAKS, storage)?,
            max_frames,
            count: 0,
        })
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.links.truncate(0);
        self.streaks.truncate(0);
    }

    /// The room outside of the new frames. Whoever fills it sets `count` afterwards.
    #[inline]
    pub(super) fn room(&mut self) -> Room<'_, S> {
        Room {
            witnesses: self.witnesses.as_mut(),
            codes: self.codes.as_mut(),
            streaks: &mut self.streaks,
            max_frames: self.max_frames,
            left: self.max_frames - self.count,
        }
    }

    /// Adds a frame outside of the others; false if there is no room.
    #[inline]
    pub(super) fn push(&mut self, witness: u64, code: u64) -> bool {
        let mut room = self.room();
        let has_room = room.push(witness, code);
        self.count = room.count();
        has_room
    }

    /// Adds a link outside of the frames so far; false if there is no room.
    pub(super) fn push_link(&mut self, address: u64, value: u64) -> bool {
        self.links.push(Link { frames: self.count, address, value })
    }

    /// Adds frames of the last walk, from `inner` out to `outer`, both included, and
    /// the links outside of each; false if there is no room.
    pub(super) fn copy_from(&mut self, last: &LastWalk<S>, inner: usize, outer: usize) -> bool {
        let (inside, left) = (self.count, self.max_frames - self.count);
        let count = (inner + 1 - outer).min(left);
        let (from, to) = (inner + 1 - count..inner + 1, left - count..left);
        let (Some(witnesses), Some(codes), Some(from_witnesses)) = (
            self.witnesses.as_mut().get_mut(to.clone()),
            self.codes.as_mut().get_mut(to),
            last.witnesses.as_ref().get(from.clone()),
        ) else {
            return false;
        };
        witnesses.copy_from_slice(from_witnesses);
        codes.copy_from_slice(last.codes_of(from.clone()));
        self.count += count;
        let mut links = last.links_up_to(inner);
        while let Some(link) = last.links.before(links)
            && link.frames >= from.start
        {
            links -= 1;
            let frames = inside + inner + 1 - link.frames;
            if !self.links.push(Link { frames, ..link }) {
                return false;
            }
        }
        from.start == outer
    }

    /// The address of the outermost frame in the innermost chunk; `None` if that chunk goes
    /// on outside of the new frames.
    pub(super) fn base(&self) -> Option<u64> {
        let inside = self.links.iter().map(|link| link.frames).find(|frames| *frames != 0)?;
        let frame = inside - 1;
        let written = |frame: usize| {
            let place = self.max_frames.checked_sub(frame + 1)?;
            self.witnesses.as_ref().get(place).copied()
        };
        let streak = self.streaks.iter().find(|streak| (streak.outer..streak.end).contains(&frame));
        let witness = match streak {
            Some(streak) => {
                let further = (frame - streak.outer) as u64;
                written(streak.outer)?.wrapping_add(further.wrapping_mul(streak.stride))
            }
            None => written(frame)?,
        };
        Some(witness & !INDIRECT)
    }

    /// Drops all but the innermost `count` frames, and the links outside of those.
    pub(super) fn cut(&mut self, count: usize) {
        self.count = self.count.min(count);
        while self.links.last().is_some_and(|link| link.frames >= self.count) {
            self.links.truncate(self.links.len() - 1);
        }
        while let Some(streak) = self.streaks.last() {
            if streak.end <= self.count {
                break;
            }
            self.streaks.truncate(self.streaks.len() - 1);
            if streak.outer < self.count {
                self.streaks.push(Streak { end: self.count, ..streak });
            }
        }
    }

    /// The frames in pieces, the outermost first.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        // Frames, counted from the innermost, that are not returned yet.
        let mut left = self.count;
        let mut streaks = self.streaks.len();
        core::iter::from_fn(move || {
            let (inner, stride) = match self.streaks.before(streaks) {
                Some(streak) if streak.end == left => {
                    streaks -= 1;
                    (streak.outer, Some(streak.stride))
                }
                Some(streak) => (streak.end, None),
                None => (0, None),
            };
            let places = self.max_frames - left..self.max_frames - inner;
            left = inner;
            let witnesses = self.witnesses.as_ref().get(places.clone())?;
            let codes = self.codes.as_ref().get(places)?;
            (!codes.is_empty()).then_some(Piece { frames: Frames { witnesses, codes }, stride })
        })
    }
}
