//! Streaks: frames of a recursion, with one return address at equal distances.
//!
//! Deep stacks are mostly these. To look whether the frames of a streak are still
//! there takes no more than a comparison for each, of a word that lies a fixed
//! distance from the last. Streaks are kept beside the frames, which they say
//! nothing new of: that one is missing costs time only.

use core::ops::Range;

/// Words of one streak, one of them for its number to be easy to find.
pub(super) const STREAK: usize = 4;

/// How many streaks are held; as many more while a walk is in progress.
pub(super) const STREAKS: usize = if cfg!(test) { 4 } else { 32 };

/// Fewer frames are not worth it.
pub(super) const LONG: usize = if cfg!(test) { 4 } else { 32 };

/// The frames from `outer` to before `end` have one code, and each one's witness
/// lies `stride` below that of the frame outside of it, at a multiple of 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Streak {
    pub(super) outer: usize,
    pub(super) end: usize,
    pub(super) stride: u64,
}

impl Streak {
    pub(super) fn from_words([outer, end, stride, _]: [u64; STREAK]) -> Self {
        Self { outer: outer as usize, end: end as usize, stride }
    }

    pub(super) fn to_words(self) -> [u64; STREAK] {
        [self.outer as u64, self.end as u64, self.stride, 0]
    }
}

/// The most frames inside of the outermost `shared` ones, numbered from there on,
/// that have the code of the one outside of them.
#[inline(never)]
pub(super) fn longest_behind(streaks: &[[u64; STREAK]], shared: usize) -> Range<usize> {
    let inside = streaks.iter().rev().map(|words| Streak::from_words(*words));
    inside
        .take_while(|streak| streak.end > shared)
        .map(|streak| streak.outer.max(shared - 1) + 1 - shared..streak.end - shared)
        .max_by_key(Range::len)
        .unwrap_or(0..0)
}

/// Frames in two arrays, outermost first: witnesses and codes.
#[derive(Clone, Copy)]
pub(super) struct Frames<'a> {
    pub(super) at: &'a [u64],
    pub(super) codes: &'a [u64],
}

impl Frames<'_> {
    /// The streak that ends with the frame `seam` and has the one outside of it,
    /// and none further out than `outermost`.
    pub(super) fn seam(self, outermost: usize, seam: usize) -> Option<Streak> {
        let outside = seam.checked_sub(1)?;
        let (at, code) = (*self.at.get(seam)?, *self.codes.get(seam)?);
        if *self.codes.get(outside)? != code {
            return None;
        }
        let stride = self.at.get(outside)?.checked_sub(at)?;
        if stride == 0 || !(at | stride).is_multiple_of(8) {
            return None;
        }
        let mut outer = outside;
        while outer > outermost && self.goes_on(outer, stride) {
            outer -= 1;
        }
        Some(Streak { outer, end: seam + 1, stride })
    }

    /// Adds to a streak what is inside of it and belongs to it, no further than
    /// before `end`.
    pub(super) fn extend(self, streak: &mut Streak, end: usize) {
        while streak.end < end && self.goes_on(streak.end, streak.stride) {
            streak.end += 1;
        }
    }

    /// Whether a frame and the one outside of it belong together.
    fn goes_on(self, frame: usize, stride: u64) -> bool {
        let Some(outside) = frame.checked_sub(1) else { return false };
        let (Some(at), Some(codes)) =
            (self.at.get(outside..=frame), self.codes.get(outside..=frame))
        else {
            return false;
        };
        at[0] == at[1].wrapping_add(stride) && codes[0] == codes[1]
    }
}

/// Writes out a streak that fills the arrays, whose innermost witness is `at`.
pub(super) fn lay_out((ats, codes): (&mut [u64], &mut [u64]), at: u64, code: u64, stride: u64) {
    codes.fill(code);
    let inside = (ats.len() as u64).wrapping_sub(1);
    let mut outermost = at.wrapping_add(inside.wrapping_mul(stride));
    for place in ats {
        *place = outermost;
        outermost = outermost.wrapping_sub(stride);
    }
}
