//! The events that a packet consists of almost entirely, in loops whose state
//! stays in registers. Anything unusual ends such a loop before its event, and
//! [`EventLoop`] decodes it one by one. Bench: `decode` in `benches/trace.rs`.
//!
//! No packet is larger than [`MAX_PACKET`]. Repeating that here lets the compiler
//! drop a bounds check at every event.

use crate::memtrace::cache::Cache;
use crate::memtrace::decode::batch::{Record, Records};
use crate::memtrace::decode::body::{Body, MAX_SMALL, TWO_BYTES, entry_at, word_at};
use crate::memtrace::decode::event_loop::EventLoop;
use crate::memtrace::decode::frames::NewFrames;
use crate::memtrace::decode::step::{FIRST, NAMED, Step};
use crate::memtrace::event::event_code;
use crate::memtrace::rules::{MAX_PACKET, SMALLEST_EVENT, code};

impl EventLoop<'_> {
    /// Promotions and collections of blocks that are not too old.
    #[inline(never)]
    pub(crate) fn objects(&mut self, records: &mut Records) {
        let EventLoop { bytes, size, mut at, mut clock, mut count, next_id, .. } = *self;
        let size = size.min(MAX_PACKET);
        let (mut codes, mut long_promoted) = (0, 0);
        while let Some(word) = word_at(bytes, at) {
            let event = word as u32;
            let code = event_code(event);
            if !matches!(code, code::PROMOTE | code::COLLECT) || !clock.reach(event) {
                break;
            }
            let (mut end, mut distance) = (at + SMALLEST_EVENT, u64::from((word >> 32) as u8));
            let long = distance > MAX_SMALL;
            if long {
                if distance > TWO_BYTES {
                    break;
                }
                (end, distance) = (end + 2, u64::from((word >> 40) as u16));
            }
            if end > size || distance >= next_id {
                break;
            }
            if long {
                long_promoted += usize::from(code == code::PROMOTE);
            }
            records[count % records.len()] = Record::new(event, 0, next_id - 1 - distance);
            at = end;
            count += 1;
            codes += usize::from(code);
        }
        let promoted = (count - self.count) * usize::from(code::COLLECT) - codes;
        self.promoted += promoted as u64;
        self.promotion_bytes += SMALLEST_EVENT * promoted + 2 * long_promoted;
        self.object_bytes += at - self.at;
        (self.at, self.clock, self.count) = (at, clock, count);
    }

    /// Short allocations whose entries are all hits.
    #[inline(never)]
    pub(crate) fn allocations(
        &mut self,
        cache: &mut Cache,
        new: &mut NewFrames,
        records: &mut Records,
    ) {
        let EventLoop { bytes, size, mut at, mut clock, mut count, mut frames, .. } = *self;
        let size = size.min(MAX_PACKET);
        while let Some(word) = word_at(bytes, at) {
            let event = word as u32;
            let short = matches!(event_code(event), code::FIRST_SHORT..=code::LAST_SHORT);
            if !short || !clock.reach(event) {
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
            if prefix > self.depth.frames {
                break;
            }
            let Some(steps) = new.steps.get_mut(frames..) else { break };
            let (end, more) = hits(bytes, start, size, entries, steps);
            if end > size {
                break;
            }
            records[count % records.len()] = Record::new(event, prefix as u32, more as u64);
            at = end;
            count += 1;
            self.depth.frames = prefix + more as u64;
            frames += more;
            self.chain.advance(cache, new, frames);
        }
        self.next_id += (count - self.count) as u64;
        (self.at, self.clock, self.count, self.frames) = (at, clock, count, frames);
    }
}

/// Turns the entries at `at` into steps; returns their end and the number of
/// steps. If one is not a hit, or the packet or the room ends too early, the end
/// is beyond `size` and all steps are 0 again.
#[inline(always)]
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
    if count > steps.len() || at > size {
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
