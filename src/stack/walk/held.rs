//! What a walk found, and what witnesses that it still is so.
//!
//! Frames are kept outermost first in two arrays: where the frame's return
//! address was read, and that address (the frame's code). A frame that was not
//! reached by the plain rule (its stack pointer is not the address + 8) has the
//! address's low bit set. Between chunks there are links: other words that were
//! read to get across, each with the number of frames outside of it. Recursions
//! are also known as [`Streak`]s.
//!
//! A walk in progress goes from the innermost frame outwards and so fills both
//! arrays from their far end downwards, in the order they will have.

use core::ops::Range;

use super::super::memory::Memory;
use super::run::{CACHE_ENTRIES, Cache};
use super::streaks::{Frames, LONG, STREAK, STREAKS, Streak, lay_out};

/// Words of one link: frames outside of it, address, value. While fresh, the
/// first word counts the frames inside of it.
const LINK: usize = 3;

/// Set in the address of a frame whose stack pointer is not that address + 8.
pub(super) const INDIRECT: u64 = 1;

/// How many frames are compared before it is asked whether there are more.
const BATCH: usize = 8;

/// Words of the cache, which are the first.
pub(super) const CACHE_WORDS: usize = 2 * CACHE_ENTRIES;

/// Codes in front of the frames: a label and a mark.
pub(super) const OUTER: usize = 2;

/// A link, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) frames: usize,
    pub(super) at: u64,
    pub(super) value: u64,
}

const fn link_room(max_frames: usize) -> usize {
    max_frames / 2 + 64
}

/// How many words of storage a walker of so many frames needs.
pub(super) const fn words(max_frames: usize) -> usize {
    CACHE_WORDS + 4 * max_frames + OUTER + 2 * LINK * link_room(max_frames) + 2 * STREAK * STREAKS
}

/// Where in the storage the codes begin: [`OUTER`] that are no frames', then the
/// held frames'.
pub(super) const fn codes_at(max_frames: usize) -> usize {
    CACHE_WORDS + 2 * max_frames
}

/// The streaks that are held.
pub(super) fn streaks(storage: &[u64], max_frames: usize, held: Counts) -> &[[u64; STREAK]] {
    let before = words(max_frames) - 2 * STREAK * STREAKS;
    let count = if held.frames == 0 { 0 } else { held.streaks };
    let words = storage.get(before..before + STREAK * count).unwrap_or(&[]);
    words.as_chunks().0
}

/// Why the held frames are not all as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    /// This frame and those inside of it are the same; what is outside is not.
    pub(super) same: usize,
}

/// The cache in these words, if they are as many.
pub(super) fn cache_in(words: &mut [u64]) -> Option<&mut Cache> {
    words.as_chunks_mut::<2>().0.as_chunks_mut::<2>().0.try_into().ok()
}

/// What the loop over frames uses, each by itself so that it stays in registers.
pub(super) struct Parts<'a> {
    pub(super) cache: &'a mut Cache,
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

/// A walker's storage, divided.
pub(super) struct Held<'a> {
    pub(super) cache: &'a mut [u64],
    at: &'a mut [u64],
    /// The first [`OUTER`] are for what is no frame; frame `i` is behind them.
    codes: &'a mut [u64],
    links: &'a mut [u64],
    /// [`STREAKS`] of the previous walk, in the order of the stack and apart from
    /// each other, then as many of the walk in progress.
    streaks: &'a mut [[u64; STREAK]],
    max_frames: usize,
    /// Witnessed frames, links and streaks of the previous walk.
    pub(super) frames: usize,
    pub(super) link_count: usize,
    pub(super) streak_count: usize,
    /// Frames, links and streaks of the walk in progress.
    pub(super) fresh: usize,
    pub(super) fresh_links: usize,
    fresh_streaks: usize,
}

/// Where one has come to who goes over the fresh frames, from the outermost on.
struct Pieces {
    /// Where the next frame is in the arrays.
    from: usize,
    /// Fresh streaks that are not outside of it.
    streaks: usize,
}

/// How much is held of the previous walk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) frames: usize,
    pub(super) links: usize,
    /// Of no use without frames.
    pub(super) streaks: usize,
}

impl<'a> Held<'a> {
    /// `None` if the storage is too small.
    pub(super) fn divide(
        storage: &'a mut [u64],
        max_frames: usize,
        Counts { frames, links: link_count, streaks: streak_count }: Counts,
    ) -> Option<Self> {
        let (cache, rest) = storage.split_at_mut_checked(CACHE_WORDS)?;
        let (at, rest) = rest.split_at_mut_checked(2 * max_frames)?;
        let (codes, rest) = rest.split_at_mut_checked(2 * max_frames + OUTER)?;
        let (links, rest) = rest.split_at_mut_checked(2 * LINK * link_room(max_frames))?;
        let streaks = rest.as_chunks_mut().0.get_mut(..2 * STREAKS)?;
        let streak_count = if frames == 0 { 0 } else { streak_count };
        let (fresh, fresh_links, fresh_streaks) = (0, 0, 0);
        Some(Self {
            cache,
            at,
            codes,
            links,
            streaks,
            max_frames,
            frames,
            link_count,
            streak_count,
            fresh,
            fresh_links,
            fresh_streaks,
        })
    }

    /// How much is held.
    pub(super) fn counts(&self) -> Counts {
        Counts { frames: self.frames, links: self.link_count, streaks: self.streak_count }
    }

    /// Both rooms for fresh frames are of the same length.
    pub(super) fn parts(&mut self) -> Option<Parts<'_>> {
        let (at, fresh_at) = self.at.split_at_mut_checked(self.max_frames)?;
        let (codes, fresh_codes) =
            self.codes.get_mut(OUTER..)?.split_at_mut_checked(self.max_frames)?;
        let room = self.max_frames.checked_sub(self.fresh)?;
        Some(Parts {
            cache: cache_in(self.cache)?,
            at,
            codes,
            fresh_at: fresh_at.get_mut(..room)?,
            fresh_codes: fresh_codes.get_mut(..room)?,
            fresh_streaks: FreshStreaks {
                room: self.streaks.get_mut(STREAKS..)?,
                count: &mut self.fresh_streaks,
            },
        })
    }

    #[inline(always)]
    pub(super) fn at(&self, frame: usize) -> u64 {
        self.at.get(frame).copied().unwrap_or(0)
    }

    #[inline(always)]
    pub(super) fn code(&self, frame: usize) -> u64 {
        self.codes.get(frame + OUTER).copied().unwrap_or(0)
    }

    pub(super) fn link(&self, index: usize) -> Link {
        match self.links.get(index * LINK..index * LINK + LINK) {
            Some(&[frames, at, value]) => Link { frames: frames as usize, at, value },
            _ => Link { frames: 0, at: 0, value: 0 },
        }
    }

    fn streak(&self, index: usize) -> Option<Streak> {
        self.streaks.get(index).copied().map(Streak::from_words)
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
        let chunk = self.at.get(chunk).unwrap_or(&[]);
        match chunk.len().checked_sub(FEW).and_then(|few| chunk.get(few)) {
            Some(&at) if at < address => chunk.partition_point(|&at| at >= address),
            _ => chunk.len(),
        }
    }

    /// Adds a frame outside the fresh ones; false if there is no room.
    #[inline(always)]
    pub(super) fn push(&mut self, at: u64, code: u64) -> bool {
        if self.fresh >= self.max_frames {
            return false;
        }
        let index = 2 * self.max_frames - 1 - self.fresh;
        let (Some(a), Some(c)) = (self.at.get_mut(index), self.codes.get_mut(index + OUTER)) else {
            return false;
        };
        *a = at;
        *c = code;
        self.fresh += 1;
        true
    }

    /// Adds a link outside the fresh frames; false if there is no room.
    pub(super) fn push_link(&mut self, at: u64, value: u64) -> bool {
        let room = link_room(self.max_frames);
        if self.fresh_links >= room {
            return false;
        }
        let start = (2 * room - 1 - self.fresh_links) * LINK;
        let Some(words) = self.links.get_mut(start..start + LINK) else {
            return false;
        };
        words.copy_from_slice(&[self.fresh as u64, at, value]);
        self.fresh_links += 1;
        true
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

    /// Looks whether the chain from the held frame `met` outwards, whose own
    /// witness holds, is unchanged.
    ///
    /// Goes outwards, and reads no word before those inside of it were found
    /// unchanged: outer memory may be gone if the way there has changed. The
    /// processor does not wait for that.
    pub(super) fn verify<M: Memory>(&self, memory: &M, met: usize) -> Result<(), Changed> {
        let mut links = self.links_up_to(met);
        let mut streaks = self.streak_count;
        let mut end = met;
        loop {
            let start = if links > 0 { self.link(links - 1).frames } else { 0 };
            if let Some(changed) = self.first_changed(memory, start..end, &mut streaks) {
                return Err(Changed { same: changed + 1 });
            }
            while links > 0 && self.link(links - 1).frames == start {
                let link = self.link(links - 1);
                if memory.again(link.at) != link.value {
                    return Err(Changed { same: start });
                }
                links -= 1;
            }
            if start == 0 {
                return Ok(());
            }
            end = start;
        }
    }

    /// The innermost frame of a chunk's part whose witness changed. Of the held
    /// streaks, only the first `streaks` are not further in; afterwards, than what
    /// is outside of the part.
    fn first_changed<M: Memory>(
        &self,
        memory: &M,
        part: Range<usize>,
        streaks: &mut usize,
    ) -> Option<usize> {
        let innermost = part.end.checked_sub(1).filter(|innermost| part.contains(innermost))?;
        // Only a chunk's first frame can be indirect.
        if memory.again(self.at(innermost) & !INDIRECT) != self.code(innermost) {
            return Some(innermost);
        }
        let mut end = innermost;
        while let Some(streak) = streaks.checked_sub(1).and_then(|last| self.streak(last))
            && streak.end > part.start
        {
            let outer = streak.outer.max(part.start);
            let inner = streak.end.min(end);
            if outer < inner {
                let changed = self.first_of_others_changed(memory, inner..end);
                if changed.is_some() {
                    return changed;
                }
                let (last, code) = (self.at(outer), self.code(outer));
                let from = self.at(inner - 1);
                let same = memory.repeats(from, streak.stride, last.wrapping_add(1), code);
                if same < inner - outer {
                    return Some(inner - 1 - same);
                }
                end = outer;
            }
            if streak.outer < part.start {
                break;
            }
            *streaks -= 1;
        }
        self.first_of_others_changed(memory, part.start..end)
    }

    /// The same for a part that is in no streak, nor first in its chunk.
    #[inline(always)]
    fn first_of_others_changed<M: Memory>(&self, memory: &M, part: Range<usize>) -> Option<usize> {
        let at = self.at.get(part.clone())?;
        let codes = self.codes.get(part.start + OUTER..part.end + OUTER)?;
        let (at_rest, at) = at.as_rchunks::<BATCH>();
        let (codes_rest, codes) = codes.as_rchunks::<BATCH>();
        let mut frame = part.end;
        for (at, codes) in at.iter().zip(codes).rev() {
            for (at, code) in at.iter().zip(codes).rev() {
                frame -= 1;
                if !memory.still_is(*at, *code) {
                    return Some(frame);
                }
            }
        }
        for (at, code) in at_rest.iter().zip(codes_rest).rev() {
            frame -= 1;
            if !memory.still_is(*at, *code) {
                return Some(frame);
            }
        }
        None
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
            && let Some(words) = self.streaks.get_mut(STREAKS + last)
        {
            let streak = Streak::from_words(*words);
            if streak.outer < fresh {
                *words = Streak { end: streak.end.min(fresh), ..streak }.to_words();
                break;
            }
            self.fresh_streaks = last;
        }
    }

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
        if self.streak_count + self.fresh_streaks != 0
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
        let (Some(at), Some(codes)) = (self.at.get(..total), self.codes.get(OUTER..total + OUTER))
        else {
            return;
        };
        let frames = Frames { at, codes };
        let Some((held, fresh)) = self.streaks.split_at_mut_checked(STREAKS) else { return };
        let mut count = self.streak_count;
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
                frames.extend(streak, next.outer);
                if streak.end == next.outer && streak.stride == stride {
                    frames.extend(streak, next.outer + 1);
                }
                if streak.end > next.outer {
                    streak.end = next.end;
                    continue;
                }
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
