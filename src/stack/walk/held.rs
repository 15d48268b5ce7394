//! What a walk found, and what witnesses that it still is so.
//!
//! Frames are kept outermost first in two arrays: where the frame's return
//! address was read, and that address (the frame's code). A frame that was not
//! reached by the plain rule (its stack pointer is not the address + 8) has the
//! address's low bit set. Between chunks there are links: other words that were
//! read to get across, each with the number of frames outside of it. Recursions
//! are also known as [`Streak`]s.
//!
//! A walk in progress goes from the innermost frame outwards and so fills two
//! more arrays from their far end downwards, in the order they will have.

use core::ops::Range;

use super::run::{Cache, PLACES};
use super::streaks::{STREAK, STREAKS, Streak};

/// Words of one link: frames outside of it, address, value, and one that makes
/// them easy to number. While fresh, the first word counts the frames inside of it.
pub(super) const LINK: usize = 4;

/// Set in the address of a frame whose stack pointer is not that address + 8.
pub(super) const INDIRECT: u64 = 1;

/// Words of the cache.
const CACHE_WORDS: usize = size_of::<Cache>() / size_of::<u64>();

/// Codes in front of the frames: a label and a mark.
pub(super) const OUTER: usize = 2;

/// Frames are moved in batches of so many, and what is behind the last of them is
/// moved with it: how many there are differs from walk to walk, and a processor
/// that has to guess where to stop is often wrong. So arrays are as much longer.
pub(super) const BATCH: usize = 16;

/// Places of the index of frames by where their return address was read.
const INDEX: usize = if cfg!(test) { 16 } else { 2048 };

/// No more frames of one walk are entered there.
const ENTERED: usize = if cfg!(test) { 6 } else { 32 };

/// The place of that address, which is one for two: frames are no nearer.
#[inline(always)]
pub(super) const fn place_of(at: u64) -> usize {
    (at / 16) as usize % INDEX
}

/// A link, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) frames: usize,
    pub(super) at: u64,
    pub(super) value: u64,
}

pub(super) const fn link_room(max_frames: usize) -> usize {
    max_frames / 2 + 64
}

/// The cache in these words, if they are as many.
#[inline(always)]
fn cache_in(words: &mut [u64]) -> Option<&mut Cache> {
    words.as_chunks_mut::<PLACES>().0.try_into().ok()
}

/// What the loop over frames uses, each by itself so that it stays in registers.
pub(super) struct Parts<'a> {
    pub(super) cache: &'a mut Cache,
    /// Which held frame may be at an address.
    pub(super) index: &'a [u64; INDEX],
    /// Of the previous walk.
    pub(super) at: &'a [u64],
    pub(super) codes: &'a [u64],
    /// Room for fresh frames: the next one goes to the end.
    pub(super) fresh_at: &'a mut [u64],
    pub(super) fresh_codes: &'a mut [u64],
    pub(super) fresh_streaks: FreshStreaks<'a>,
}

/// Streaks of the walk in progress, the innermost first. While fresh, their
/// frames are numbered from the innermost outwards: `outer` is the innermost and
/// `end` is outside of all. Only the innermost frame needs to be in its place.
pub(super) struct FreshStreaks<'a> {
    room: &'a mut [[u64; STREAK]],
    count: &'a mut usize,
}

impl FreshStreaks<'_> {
    /// Adds one outside of the others; false if there is no room.
    pub(super) fn push(&mut self, inner: usize, end: usize, stride: u64) -> bool {
        let Some(words) = self.room.get_mut(*self.count) else { return false };
        *words = Streak { outer: inner, end, stride }.to_words();
        *self.count += 1;
        true
    }
}

/// The frames of the previous walk, and of the one in progress.
pub(super) struct Held<S> {
    cache: S,
    /// At the place of a frame's address, its number: of those from `entered` on, if
    /// no other came there since, and of some that are held no more.
    index: S,
    entered: usize,
    pub(super) at: S,
    /// The first [`OUTER`] are for what is no frame; frame `i` is behind them.
    pub(super) codes: S,
    /// Of the walk in progress: the innermost frame is the last of `max_frames`.
    pub(super) fresh_at: S,
    pub(super) fresh_codes: S,
    /// Those of the previous walk, outermost first; as many places from the far end
    /// downwards are for those of the walk in progress.
    pub(super) links: S,
    /// [`STREAKS`] of the previous walk, in the order of the stack and apart from
    /// each other, then as many of the walk in progress.
    pub(super) streaks: S,
    pub(super) max_frames: usize,
    /// Witnessed frames, links and streaks of the previous walk.
    pub(super) frames: usize,
    pub(super) link_count: usize,
    pub(super) streak_count: usize,
    /// Frames, links and streaks of the walk in progress.
    pub(super) fresh: usize,
    pub(super) fresh_links: usize,
    pub(super) fresh_streaks: usize,
}

impl<S: AsMut<[u64]> + AsRef<[u64]>> Held<S> {
    /// Asks for the storage of so many frames; `None` if that is refused.
    pub(super) fn new(
        max_frames: usize,
        mut storage: impl FnMut(usize) -> Option<S>,
    ) -> Option<Self> {
        let mut words = |count| storage(count).filter(|words| words.as_ref().len() >= count);
        let room = max_frames + BATCH;
        Some(Self {
            cache: words(CACHE_WORDS)?,
            index: words(INDEX)?,
            entered: 0,
            at: words(room)?,
            codes: words(OUTER + room)?,
            fresh_at: words(room)?,
            fresh_codes: words(room)?,
            links: words(2 * LINK * link_room(max_frames))?,
            streaks: words(2 * STREAK * STREAKS)?,
            max_frames,
            frames: 0,
            link_count: 0,
            streak_count: 0,
            fresh: 0,
            fresh_links: 0,
            fresh_streaks: 0,
        })
    }

    /// Nothing is held any more.
    #[inline(always)]
    pub(super) fn forget(&mut self) {
        (self.frames, self.link_count, self.streak_count) = (0, 0, 0);
    }

    /// A walk begins.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        (self.fresh, self.fresh_links, self.fresh_streaks) = (0, 0, 0);
    }

    #[inline(always)]
    pub(super) fn cache(&mut self) -> Option<&mut Cache> {
        cache_in(self.cache.as_mut())
    }

    /// Enters the held frames that are not of the `kept` outermost into the index; in
    /// batches, and what is behind the last of them with it: who asks finds that it is
    /// not held.
    #[inline(always)]
    pub(super) fn enter(&mut self, kept: usize) {
        let Self { index, at, frames, .. } = self;
        let from = kept.max(frames.saturating_sub(ENTERED));
        self.entered = if from > kept { from } else { self.entered.min(kept) };
        let Some(index) = index.as_mut().first_chunk_mut::<INDEX>() else { return };
        let mut first = from;
        while first < *frames
            && let Some(batch) =
                at.as_ref().get(first..).and_then(<[u64]>::first_chunk::<{ BATCH / 2 }>)
        {
            for (at, frame) in batch.iter().zip(first as u64..) {
                index[place_of(*at)] = frame;
            }
            first += batch.len();
        }
    }

    /// Whether a frame there is outside of those that are in the index.
    #[inline(always)]
    pub(super) fn is_outside_of_entered(&self, at: u64) -> bool {
        self.entered.checked_sub(1).is_some_and(|outside| at >= self.at(outside))
    }

    /// The streaks that are held.
    pub(super) fn streaks(&self) -> &[[u64; STREAK]] {
        self.streaks.as_ref().as_chunks().0.get(..self.streak_count).unwrap_or(&[])
    }

    /// Both rooms for fresh frames are of the same length.
    pub(super) fn parts(&mut self) -> Option<Parts<'_>> {
        let room = self.max_frames.checked_sub(self.fresh)?;
        Some(Parts {
            cache: cache_in(self.cache.as_mut())?,
            index: self.index.as_ref().first_chunk()?,
            at: self.at.as_ref(),
            codes: self.codes.as_ref().get(OUTER..)?,
            fresh_at: self.fresh_at.as_mut().get_mut(..room)?,
            fresh_codes: self.fresh_codes.as_mut().get_mut(..room)?,
            fresh_streaks: FreshStreaks {
                room: self.streaks.as_mut().as_chunks_mut().0.get_mut(STREAKS..)?,
                count: &mut self.fresh_streaks,
            },
        })
    }

    #[inline(always)]
    pub(super) fn at(&self, frame: usize) -> u64 {
        self.at.as_ref().get(frame).copied().unwrap_or(0)
    }

    #[inline(always)]
    pub(super) fn code(&self, frame: usize) -> u64 {
        self.codes.as_ref().get(frame + OUTER).copied().unwrap_or(0)
    }

    pub(super) fn link(&self, index: usize) -> Link {
        let [frames, at, value, _] =
            self.links.as_ref().as_chunks().0.get(index).copied().unwrap_or_default();
        Link { frames: frames as usize, at, value }
    }

    /// False if there is no such place.
    pub(super) fn put_link(&mut self, index: usize, link: Link) -> bool {
        let Some(words) = self.links.as_mut().as_chunks_mut().0.get_mut(index) else {
            return false;
        };
        *words = [link.frames as u64, link.at, link.value, 0];
        true
    }

    pub(super) fn streak(&self, index: usize) -> Option<Streak> {
        self.streaks.as_ref().as_chunks().0.get(index).copied().map(Streak::from_words)
    }

    /// How many links have at most `frames` frames outside of them.
    pub(super) fn links_up_to(&self, frames: usize) -> usize {
        let mut count = self.link_count;
        while count > 0 && self.link(count - 1).frames > frames {
            count -= 1;
        }
        count
    }

    /// Of a chunk's frames, given by index, how many lie at or above `address`;
    /// some more if there are no more than a few below it.
    pub(super) fn about_at_or_above(&self, chunk: Range<usize>, address: u64) -> usize {
        const FEW: usize = 8;
        let chunk = self.at.as_ref().get(chunk).unwrap_or(&[]);
        match chunk.len().checked_sub(FEW).and_then(|few| chunk.get(few)) {
            Some(&at) if at < address => chunk.partition_point(|&at| at >= address),
            _ => chunk.len(),
        }
    }

    /// Adds a frame outside the fresh ones; false if there is no room.
    #[inline(always)]
    pub(super) fn push(&mut self, at: u64, code: u64) -> bool {
        let index = self.max_frames.wrapping_sub(1 + self.fresh);
        let (Some(a), Some(c)) =
            (self.fresh_at.as_mut().get_mut(index), self.fresh_codes.as_mut().get_mut(index))
        else {
            return false;
        };
        (*a, *c) = (at, code);
        self.fresh += 1;
        true
    }

    /// Adds a link outside the fresh frames; false if there is no room.
    pub(super) fn push_link(&mut self, at: u64, value: u64) -> bool {
        let room = link_room(self.max_frames);
        let link = Link { frames: self.fresh, at, value };
        let is_put =
            self.fresh_links < room && self.put_link(2 * room - 1 - self.fresh_links, link);
        self.fresh_links += usize::from(is_put);
        is_put
    }

    /// Adds held frames to the fresh ones, from `inner` to `outer`, both
    /// included, with the links on each one's outside.
    pub(super) fn spill(&mut self, inner: usize, outer: usize) -> bool {
        let mut links = self.links_up_to(inner);
        for frame in (outer..=inner).rev() {
            if !self.push(self.at(frame), self.code(frame)) {
                return false;
            }
            while links > 0 && self.link(links - 1).frames == frame {
                links -= 1;
                let link = self.link(links);
                if !self.push_link(link.at, link.value) {
                    return false;
                }
            }
        }
        true
    }

    /// Drops all but the innermost `count` fresh frames, and the links outside.
    pub(super) fn cut(&mut self, count: usize) {
        self.fresh = self.fresh.min(count);
        let room = link_room(self.max_frames);
        while self.fresh_links > 0 && self.link(2 * room - self.fresh_links).frames >= self.fresh {
            self.fresh_links -= 1;
        }
        let fresh = self.fresh;
        while let Some(last) = self.fresh_streaks.checked_sub(1)
            && let Some(words) = self.streaks.as_mut().as_chunks_mut().0.get_mut(STREAKS + last)
        {
            let streak = Streak::from_words(*words);
            if streak.outer < fresh {
                *words = Streak { end: streak.end.min(fresh), ..streak }.to_words();
                break;
            }
            self.fresh_streaks = last;
        }
    }
}
