//! Events as nearly all are, written in one go.
//!
//! A short allocation whose codes are all in the cache, or the end of an object
//! that is not too old, in a packet that may take another event: there is
//! nothing to refuse, nothing to close and nothing to look up. Whether it is so
//! is found out first. If not, nothing has changed, and the event goes the way of
//! [`DomainWriter::alloc`] and [`DomainWriter::end`], which write the same.

use std::ops::Range;

use crate::memtrace::encode::SmallAlloc;
use crate::memtrace::encode::domain::DomainWriter;
use crate::memtrace::encode::found::Order;
use crate::memtrace::event::event_header;
use crate::memtrace::rules::{MAX_SHORT_LENGTH, MIN_ROOM, SHORT_ALLOC};
use crate::memtrace::wire::short_vint;
use crate::model::{Block, Code, Source};

/// An event's header.
const HEADER: usize = size_of::<u32>();

impl DomainWriter {
    /// Writes an allocation and returns its id; `None` if it is not a usual one.
    #[inline(always)]
    pub(crate) fn usual_alloc(
        &mut self,
        time: u64,
        block: &Block,
        prefix: u64,
        new: &[Code],
    ) -> Option<u64> {
        let short = (1..=MAX_SHORT_LENGTH).contains(&block.length)
            && block.source == Source::Minor
            && block.samples == 1;
        if !short || !self.goes_on(time) {
            return None;
        }
        self.short_alloc(SHORT_ALLOC + block.length as u8, time, prefix, new)
    }

    /// Writes allocations until there is no more or one that is not usual, which
    /// it returns.
    #[inline(always)]
    pub(crate) fn alloc_batch<'a>(
        &mut self,
        allocs: &mut impl Iterator<Item = SmallAlloc<'a>>,
    ) -> Option<SmallAlloc<'a>> {
        allocs.find(|alloc| {
            let &SmallAlloc { time, length, common_prefix, inner_first } = alloc;
            let usual = (1..=MAX_SHORT_LENGTH).contains(&length) && self.goes_on(time);
            let code = SHORT_ALLOC + length as u8;
            !usual || self.inner_first_alloc(code, time, common_prefix, inner_first).is_none()
        })
    }

    /// Apart from its callers, which would take the registers that the loops in
    /// it need; and so is the next.
    #[inline(never)]
    fn short_alloc(&mut self, code: u8, time: u64, prefix: u64, new: &[Code]) -> Option<u64> {
        self.short_alloc_in(Order::OuterFirst, (code, time, prefix), new)
    }

    #[inline(never)]
    fn inner_first_alloc(&mut self, code: u8, time: u64, prefix: u64, new: &[Code]) -> Option<u64> {
        self.short_alloc_in(Order::InnerFirst, (code, time, prefix), new)
    }

    #[inline(always)]
    fn short_alloc_in(
        &mut self,
        order: Order,
        (code, time, prefix): (u8, u64, u64),
        new: &[Code],
    ) -> Option<u64> {
        if !self.stack.find_all(new) {
            return None;
        }
        let room = self.packet.window::<MIN_ROOM>()?;
        let size = put_header(room, code, time, prefix)?;
        let (count, entries) = room.get_mut(size..)?.split_first_mut()?;
        let id = self.ids.next;
        let bytes;
        let entries = entries.first_chunk_mut()?;
        (*count, bytes) = self.stack.put_found(entries, new.len(), order, id);
        self.packet.extend(size + 1 + bytes);
        self.ids.next = id + 1;
        self.went_on(time);
        Some(id)
    }

    /// Writes what happened to an object that was already allocated; `None` if
    /// that is not usual.
    #[inline(always)]
    pub(crate) fn usual_end(&mut self, code: u8, time: u64, id: u64) -> Option<()> {
        let back = self.ids.next.checked_sub(id)?.checked_sub(1)?;
        if !self.goes_on(time) {
            return None;
        }
        let room = self.packet.window::<MIN_ROOM>()?;
        let size = put_header(room, code, time, back)?;
        self.packet.extend(size);
        self.went_on(time);
        Some(())
    }

    /// Writes what happened to objects, all at one time, until there is no more
    /// or one that is not usual.
    #[inline(always)]
    pub(crate) fn usual_ends(&mut self, code: u8, time: u64, ids: &mut Range<u64>) {
        let next = self.ids.next;
        if ids.is_empty() || ids.end > next || !self.goes_on(time) {
            return;
        }
        let Some(mut room) = self.packet.behind() else { return };
        let before = room.len();
        for back in (next - ids.end..next - ids.start).rev() {
            let Some(place) = room.first_chunk_mut() else { break };
            let Some(size) = put_header(place, code, time, back) else { break };
            room = room.get_mut(size..).unwrap_or(&mut []);
            ids.start += 1;
        }
        let bytes = before - room.len();
        if bytes != 0 {
            self.packet.extend(bytes);
            self.went_on(time);
        }
    }

    /// Whether an event at this time belongs behind the last one, if the packet
    /// has room.
    #[inline(always)]
    fn goes_on(&self, time: u64) -> bool {
        time >= self.end && time < self.usual_before && self.ids.next < self.ids.end
    }

    #[inline(always)]
    fn went_on(&mut self, time: u64) {
        self.end = time;
        self.empty = false;
    }
}

/// An event's header and its first number; how many bytes they are. `None` if the
/// number needs many.
#[inline(always)]
fn put_header(room: &mut [u8; MIN_ROOM], code: u8, time: u64, number: u64) -> Option<usize> {
    let (word, size) = short_vint(number)?;
    let (header, rest) = room.split_at_mut(HEADER);
    header.copy_from_slice(&event_header(code, time).to_le_bytes());
    *rest.first_chunk_mut()? = word.to_le_bytes();
    Some(HEADER + size)
}
