//! Links and streaks, and the lists that they are kept in.

use core::marker::PhantomData;
use core::ops::Range;

use crate::SMALL_LIMITS;

/// A word that was read to cross from one chunk of frames to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// In the last walk, the number of frames outside of the link; in new frames, the
    /// number of those inside of it.
    pub(super) frames: usize,
    pub(super) address: u64,
    pub(super) value: u64,
}

impl Record for Link {
    fn to_words(self) -> [u64; 3] {
        [self.frames as u64, self.address, self.value]
    }

    fn from_words([frames, address, value]: [u64; 3]) -> Self {
        Self { frames: frames as usize, address, value }
    }
}

/// The capacity for links of a walk with room for `max_frames`.
pub(super) const fn max_links(max_frames: usize) -> usize {
    max_frames / 2 + 64
}

/// Streaks that a walk records; those beyond are ordinary frames.
pub(super) const MAX_STREAKS: usize = if SMALL_LIMITS { 4 } else { 32 };

/// Shorter streaks are not recorded.
pub(super) const MIN_STREAK: usize = if SMALL_LIMITS { 4 } else { 32 };

/// Consecutive frames of a recursion, with one return address at equal distances: the
/// frames from `outer` to before `end` have one code, and the witness of each,
/// a multiple of 8, lies `stride` below that of the frame outside of it.
///
/// In the last walk frames are numbered from the outermost on; among new frames from
/// the innermost on, so there `outer` is the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Streak {
    pub(super) outer: usize,
    pub(super) end: usize,
    pub(super) stride: u64,
}

impl Record for Streak {
    fn to_words(self) -> [u64; 3] {
        [self.outer as u64, self.end as u64, self.stride]
    }

    fn from_words([outer, end, stride]: [u64; 3]) -> Self {
        Self { outer: outer as usize, end: end as usize, stride }
    }
}

impl Streak {
    pub(super) fn is_worth_recording(&self) -> bool {
        self.end - self.outer >= MIN_STREAK
    }
}

/// The longest run of frames that have the code of the frame outside of them, among
/// those inside of the outermost `shared` ones; numbered from the first of those.
/// The streaks come innermost first.
pub(super) fn longest_repetition(
    streaks: impl Iterator<Item = Streak>,
    shared: usize,
) -> Range<usize> {
    streaks
        .take_while(|streak| streak.end > shared)
        .map(|streak| streak.outer.max(shared - 1) + 1 - shared..streak.end - shared)
        .max_by_key(Range::len)
        .unwrap_or(0..0)
}

/// Words of a record. One more than it needs, so that its address is a shift away.
const WORDS: usize = 4;

/// A record that is stored as words.
pub(super) trait Record: Copy {
    fn to_words(self) -> [u64; 3];
    fn from_words(words: [u64; 3]) -> Self;

    /// The record in one element of [`Records::first`].
    fn read(&[first, second, third, _]: &[u64; WORDS]) -> Self {
        Self::from_words([first, second, third])
    }
}

/// A list in storage that is handed in and never grows.
pub(super) struct Records<S, R> {
    words: S,
    /// At most as many as `words` has room for.
    len: usize,
    record: PhantomData<R>,
}

impl<S: AsMut<[u64]> + AsRef<[u64]>, R: Record> Records<S, R> {
    /// An empty list with room for `capacity` records, in what `storage` returns for
    /// their number of words.
    pub(super) fn new(
        capacity: usize,
        storage: &mut impl FnMut(usize) -> Option<S>,
    ) -> Option<Self> {
        Some(Self { words: storage(WORDS * capacity)?, len: 0, record: PhantomData })
    }

    /// How many records there is room for.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.words.as_ref().len() / WORDS
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Drops all records from this one on.
    #[inline]
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<R> {
        let [first, second, third, _] =
            *self.words.as_ref().as_chunks::<WORDS>().0.get(..self.len)?.get(index)?;
        Some(R::from_words([first, second, third]))
    }

    /// The first records, as words.
    pub(super) fn first(&self, count: usize) -> &[[u64; WORDS]] {
        self.words.as_ref().as_chunks::<WORDS>().0.get(..count.min(self.len)).unwrap_or(&[])
    }

    /// The record before `index`.
    #[inline]
    pub(super) fn before(&self, index: usize) -> Option<R> {
        self.get(index.checked_sub(1)?)
    }

    #[inline]
    pub(super) fn last(&self) -> Option<R> {
        self.before(self.len)
    }

    /// False if there is no room.
    pub(super) fn push(&mut self, record: R) -> bool {
        let words = self.words.as_mut().as_chunks_mut::<WORDS>().0;
        let Some(words) = words.get_mut(self.len) else { return false };
        let [first, second, third] = record.to_words();
        *words = [first, second, third, 0];
        self.len += 1;
        true
    }

    /// Becomes the first `count` records of another list, as far as there is room.
    pub(super) fn copy_first(&mut self, other: &Self, count: usize) {
        let from = other.first(count);
        let to = self.words.as_mut().as_chunks_mut::<WORDS>().0;
        to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        self.len = to.len().min(from.len());
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = R> {
        (0..self.len).filter_map(|index| self.get(index))
    }
}

/// Frames in two arrays, outermost first.
#[derive(Clone, Copy)]
pub(super) struct Frames<'a> {
    pub(super) witnesses: &'a [u64],
    pub(super) codes: &'a [u64],
}

impl Frames<'_> {
    /// The streak that ends with the frame `seam` and contains the one outside of it,
    /// but none further out than `outermost`.
    pub(super) fn streak_over(self, outermost: usize, seam: usize) -> Option<Streak> {
        let outside = seam.checked_sub(1)?;
        let (witness, code) = (*self.witnesses.get(seam)?, *self.codes.get(seam)?);
        if *self.codes.get(outside)? != code {
            return None;
        }
        let stride = self.witnesses.get(outside)?.checked_sub(witness)?;
        if stride == 0 || !(witness | stride).is_multiple_of(8) {
            return None;
        }
        let mut outer = outside;
        while outer > outermost && self.continues(outer, stride) {
            outer -= 1;
        }
        Some(Streak { outer, end: seam + 1, stride })
    }

    /// Extends a streak inwards by the frames that belong to it, up to `end`.
    pub(super) fn extend(self, streak: &mut Streak, end: usize) {
        while streak.end < end && self.continues(streak.end, streak.stride) {
            streak.end += 1;
        }
    }

    /// Whether a frame continues a streak of the frame outside of it.
    fn continues(self, frame: usize, stride: u64) -> bool {
        let Some(outside) = frame.checked_sub(1) else { return false };
        let (Some([outer_witness, witness]), Some([outer_code, code])) =
            (self.witnesses.get(outside..=frame), self.codes.get(outside..=frame))
        else {
            return false;
        };
        *outer_witness == witness.wrapping_add(stride) && outer_code == code
    }
}

/// Part of the two arrays of frames, to be written.
pub(super) struct FramesMut<'a> {
    pub(super) witnesses: &'a mut [u64],
    pub(super) codes: &'a mut [u64],
}

impl FramesMut<'_> {
    /// Fills the part with the frames of a streak whose innermost is given.
    pub(super) fn fill(self, innermost_witness: u64, code: u64, stride: u64) {
        self.codes.fill(code);
        let inside = (self.witnesses.len() as u64).wrapping_sub(1);
        let mut witness = innermost_witness.wrapping_add(inside.wrapping_mul(stride));
        for place in self.witnesses {
            *place = witness;
            witness = witness.wrapping_sub(stride);
        }
    }
}
