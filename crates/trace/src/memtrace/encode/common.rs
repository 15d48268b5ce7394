//! The common events, written in one go.
//!
//! A short allocation whose codes are all in the cache, or the end of a block
//! that is not too old, in a packet that may take another event: nothing can be
//! rejected, closed or looked up. Whether an event is common is found out first.
//! If it is not, nothing has changed, and [`DomainWriter::alloc`] or
//! [`DomainWriter::end`] write it; for common events they write the same bytes.
//! Benches: `encode` in `benches/trace.rs`, and `benches/writer.rs`.

use std::ops::Range;

use crate::memtrace::encode::cached::Order;
use crate::memtrace::encode::domain::DomainWriter;
use crate::memtrace::event::event_header;
use crate::memtrace::rules::{MAX_SHORT_LENGTH, MIN_ROOM, SHORT_ALLOC};
use crate::memtrace::wire::short_vint;
use crate::model::{Block, Code, SmallAlloc, Source};

/// An event's header.
const HEADER: usize = size_of::<u32>();

/// An allocation whose length is in its event code.
#[derive(Clone, Copy)]
struct ShortAlloc<'a> {
    code: u8,
    time: u64,
    prefix: u64,
    new: &'a [Code],
}

impl DomainWriter {
    /// Writes an allocation and returns its id; `None` if it is not a common one.
    #[inline(always)]
    pub(crate) fn common_alloc(
        &mut self,
        time: u64,
        block: &Block,
        prefix: u64,
        new: &[Code],
    ) -> Option<u64> {
        let short = (1..=MAX_SHORT_LENGTH).contains(&block.length)
            && block.source == Source::Minor
            && block.samples == 1;
        if !short || !self.continues_packet(time) {
            return None;
        }
        self.short_alloc(SHORT_ALLOC + block.length as u8, time, prefix, new)
    }

    /// Writes allocations until there is no more or one that is not common, which
    /// it returns.
    #[inline(always)]
    pub(crate) fn alloc_batch<'a>(
        &mut self,
        allocs: &mut impl Iterator<Item = SmallAlloc<'a>>,
    ) -> Option<SmallAlloc<'a>> {
        allocs.find(|alloc| {
            let &SmallAlloc { time, length, common_prefix, inner_first } = alloc;
            let common = (1..=MAX_SHORT_LENGTH).contains(&length) && self.continues_packet(time);
            // Used only if the length is short.
            let code = SHORT_ALLOC.wrapping_add(length as u8);
            !common || self.inner_first_alloc(code, time, common_prefix, inner_first).is_none()
        })
    }

    /// Not inlined, so that the loops in it have all registers; the same holds for
    /// the next function.
    #[inline(never)]
    fn short_alloc(&mut self, code: u8, time: u64, prefix: u64, new: &[Code]) -> Option<u64> {
        self.short_alloc_in(Order::OuterFirst, ShortAlloc { code, time, prefix, new })
    }

    #[inline(never)]
    fn inner_first_alloc(&mut self, code: u8, time: u64, prefix: u64, new: &[Code]) -> Option<u64> {
        self.short_alloc_in(Order::InnerFirst, ShortAlloc { code, time, prefix, new })
    }

    #[inline(always)]
    fn short_alloc_in(&mut self, order: Order, alloc: ShortAlloc<'_>) -> Option<u64> {
        let ShortAlloc { code, time, prefix, new } = alloc;
        if !self.stack.find_cached(new) {
            return None;
        }
        let room = self.packet.window::<MIN_ROOM>()?;
        let size = put_header(room, code, time, prefix)?;
        let (count, entries) = room.get_mut(size..)?.split_first_mut()?;
        let id = self.ids.next;
        let bytes;
        let entries = entries.first_chunk_mut()?;
        (*count, bytes) = self.stack.put_cached(entries, new.len(), order, id);
        self.packet.extend(size + 1 + bytes);
        self.ids.next = id + 1;
        self.note_event(time);
        Some(id)
    }

    /// Writes what happened to an object that was already allocated; `None` if
    /// that is not common.
    #[inline(always)]
    pub(crate) fn common_end(&mut self, code: u8, time: u64, id: u64) -> Option<()> {
        let back = self.ids.next.checked_sub(id)?.checked_sub(1)?;
        if !self.continues_packet(time) {
            return None;
        }
        let room = self.packet.window::<MIN_ROOM>()?;
        let size = put_header(room, code, time, back)?;
        self.packet.extend(size);
        self.note_event(time);
        Some(())
    }

    /// Writes what happened to objects, all at one time, until there is no more
    /// or one that is not common.
    #[inline(always)]
    pub(crate) fn common_ends(&mut self, code: u8, time: u64, ids: &mut Range<u64>) {
        let next = self.ids.next;
        if ids.is_empty() || ids.end > next || !self.continues_packet(time) {
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
            self.note_event(time);
        }
    }

    /// Whether an event at this time goes into the open packet, if that has room.
    #[inline(always)]
    fn continues_packet(&self, time: u64) -> bool {
        time >= self.end && time < self.common_before && self.ids.next < self.ids.end
    }

    #[inline(always)]
    fn note_event(&mut self, time: u64) {
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
