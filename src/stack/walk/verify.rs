//! Whether what is held is still so.

use core::ops::Range;

use super::super::memory::Memory;
use super::held::{Held, INDIRECT, OUTER};

/// How many frames are compared before it is asked whether there are more.
const BATCH: usize = 8;

/// Why the held frames are not all as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    /// This frame and those inside of it are the same; what is outside is not.
    pub(super) same: usize,
}

impl<S: AsMut<[u64]> + AsRef<[u64]>> Held<S> {
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
        let at = self.at.as_ref().get(part.clone())?;
        let codes = self.codes.as_ref().get(part.start + OUTER..part.end + OUTER)?;
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
}
