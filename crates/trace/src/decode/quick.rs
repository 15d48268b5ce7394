//! The events that a packet consists of almost entirely, in loops that need so
//! little that it stays in registers. What is unusual in any way ends such a
//! loop before its event, and the packet's own loop looks at it.

use crate::cache::Cache;
use crate::decode::batch::Record;
use crate::decode::chain::{FIRST, NAMED, Step};
use crate::decode::frames::NewFrames;
use crate::decode::packet::{Body, Loop, entry_at, word_at};
use crate::event::event_code;
use crate::rules::{TIME_MASK, code};

/// The largest number that a vint holds in its first byte.
pub(crate) const MAX_SMALL: u64 = 252;

/// A vint's first byte when two more hold the number.
const TWO_BYTES: u64 = 253;

impl Loop<'_> {
    /// Promotions and collections of objects that are not far.
    #[inline(never)]
    pub(crate) fn objects(&mut self, records: &mut [Record]) {
        let Some(room) = records.get_mut(self.count..) else { return };
        let Loop { bytes, size, mut at, begin, mut ahead, span, next_id, .. } = *self;
        let (mut count, mut promoted, mut long, mut long_promoted) = (0, 0, 0, 0);
        for record in room {
            let Some(word) = word_at(bytes, at) else { break };
            let event = word as u32;
            let time = u64::from(event).wrapping_sub(begin) & TIME_MASK;
            let promotes = event_code(event) == code::PROMOTE;
            if !promotes && event_code(event) != code::COLLECT {
                break;
            }
            let (mut end, mut distance) = (at + 5, u64::from((word >> 32) as u8));
            if distance > MAX_SMALL {
                if distance > TWO_BYTES {
                    break;
                }
                (end, distance) = (at + 7, u64::from((word >> 40) as u16));
                long += 1;
                long_promoted += u64::from(promotes);
            }
            if time > span || time < ahead || end > size || distance >= next_id {
                break;
            }
            *record = Record { event, prefix: 0, value: next_id - 1 - distance };
            (at, ahead) = (end, time);
            count += 1;
            promoted += u64::from(promotes);
        }
        (self.at, self.ahead) = (at, ahead);
        self.count += count;
        self.promoted += promoted;
        self.long += long;
        self.long_promoted += long_promoted;
    }

    /// Short allocations whose entries are all hits.
    #[inline(never)]
    pub(crate) fn allocations(
        &mut self,
        cache: &mut Cache,
        new: &mut NewFrames,
        records: &mut [Record],
    ) {
        let Some(room) = records.get_mut(self.count..) else { return };
        let Loop { bytes, size, mut at, begin, mut ahead, span, mut frames, .. } = *self;
        let (mut count, mut depth) = (0, self.depth.frames);
        for record in room {
            let Some(word) = word_at(bytes, at) else { break };
            let event = word as u32;
            let time = u64::from(event).wrapping_sub(begin) & TIME_MASK;
            let short = matches!(event_code(event), code::FIRST_SHORT..=code::LAST_SHORT);
            if !short || time > span || time < ahead {
                break;
            }
            let (mut start, mut entries) = (at + 6, (word >> 40) as u8);
            let mut prefix = u64::from((word >> 32) as u8);
            if prefix > MAX_SMALL {
                if prefix > TWO_BYTES {
                    break;
                }
                (start, entries) = (at + 8, (word >> 56) as u8);
                prefix = u64::from((word >> 40) as u16);
            }
            if prefix > depth {
                break;
            }
            let Some(steps) = new.steps.get_mut(frames..) else { break };
            let (end, more) = hits(bytes, start, size, entries, steps);
            if end > size {
                break;
            }
            *record = Record { event, prefix: prefix as u32, value: more as u64 };
            (at, ahead, depth) = (end, time, prefix + more as u64);
            frames += more;
            count += 1;
            self.chain.advance(cache, new, frames);
        }
        (self.at, self.ahead, self.frames, self.depth.frames) = (at, ahead, frames, depth);
        self.count += count;
        self.next_id += count as u64;
    }
}

/// Turns the entries at `at` into steps: where they end, and how many steps they
/// are. They end beyond `size`, and all steps are 0 as before, if one of them is
/// no hit, or the packet or the room ends before them.
#[inline(never)]
fn hits(
    bytes: &Body,
    mut at: usize,
    size: usize,
    entries: u8,
    steps: &mut [Step],
) -> (usize, usize) {
    let (mut count, mut marks) = (0, FIRST);
    for _ in 0..entries {
        let (Some(entry), Some(step)) = (entry_at(bytes, at), steps.get_mut(count)) else {
            return give_up(steps, count);
        };
        if entry.is_miss() {
            return give_up(steps, count);
        }
        *step = entry.step(marks);
        count += 1 + entry.predicted();
        at += entry.hit_size();
        marks = NAMED;
    }
    if at > size || count > steps.len() {
        return give_up(steps, count);
    }
    (at, count)
}

#[cold]
#[inline(never)]
fn give_up(steps: &mut [Step], count: usize) -> (usize, usize) {
    let end = steps.len().min(count);
    if let Some(steps) = steps.get_mut(..end) {
        steps.fill(0);
    }
    (usize::MAX, 0)
}
