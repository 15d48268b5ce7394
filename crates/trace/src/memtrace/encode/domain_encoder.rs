//! Writing many events of one domain, which is looked up once.

use std::io::Write;
use std::ops::Range;

use crate::memtrace::encode::domain::NewFrames;
use crate::memtrace::encode::domains::Domains;
use crate::memtrace::encode::stack::{common_prefix, first_without_code};
use crate::memtrace::header::Version;
use crate::memtrace::rules::{MAX_NUMBER, code};
use crate::model::{
    Block, Code, DomainSink, ElidableFrames, End, Frames, LeftOut, Locate, SmallAlloc, WriteError,
};

/// One domain of an [`crate::Encoder`]. It begins with its first event.
pub struct DomainEncoder<'e, W> {
    domains: &'e mut Domains<W>,
    number: u16,
    /// Its index among the domains; `usize::MAX` if it has not begun.
    index: usize,
}

impl<'e, W: Write> DomainEncoder<'e, W> {
    #[inline(always)]
    pub(super) fn new(domains: &'e mut Domains<W>, number: u16) -> Self {
        let index = domains.index(number).unwrap_or(usize::MAX);
        DomainEncoder { domains, number, index }
    }

    /// Writes an allocation and returns its id.
    #[inline]
    pub fn alloc(
        &mut self,
        time: u64,
        block: Block,
        frames: Frames<'_>,
        locate: &mut impl Locate,
    ) -> Result<u64, WriteError> {
        let last = self.domains.list.get(self.index).map_or(&[][..], |domain| &domain.last);
        let (prefix, new, known) = match frames {
            Frames::Whole(frames) => {
                let prefix = common_prefix(last, frames);
                (prefix as u64, frames.get(prefix..).unwrap_or(&[]), prefix)
            }
            // The last frames are not kept up: the caller knows the prefixes.
            Frames::Suffix { common_prefix, new } => (common_prefix, new, 0),
        };
        let new_frames = NewFrames { prefix, new, left_out: None, found: false };
        let (id, _) = self.put_alloc(time, block, new_frames, known, locate)?;
        if let Frames::Whole(_) = frames
            && let Some(domain) = self.domains.list.get_mut(self.index)
        {
            domain.last.extend_from_slice(new);
        }
        Ok(id)
    }

    /// Writes an allocation. Afterwards `known` of the last frames are known.
    #[inline(always)]
    fn put_alloc(
        &mut self,
        time: u64,
        block: Block,
        frames: NewFrames<'_>,
        known: usize,
        locate: &mut impl Locate,
    ) -> Result<(u64, Option<LeftOut>), WriteError> {
        if let Some(domain) = self.domains.list.get_mut(self.index)
            && let Some(id) = domain.common_alloc(time, &block, frames.prefix, frames.new)
        {
            domain.last.truncate(known);
            return Ok((id, None));
        }
        self.put_any_alloc(time, block, frames, known, locate)
    }

    /// A rejected event must not change anything, so all checks come first.
    #[inline(never)]
    fn put_any_alloc(
        &mut self,
        time: u64,
        block: Block,
        mut frames: NewFrames<'_>,
        known: usize,
        locate: &mut impl Locate,
    ) -> Result<(u64, Option<LeftOut>), WriteError> {
        check_block(&block)?;
        let next_id = self.check_event(time)?;
        let domain = self.domains.list.get_mut(self.index);
        frames.found = domain.is_some_and(|domain| domain.stack.find_cached(frames.new));
        if !frames.found {
            check_codes(frames.new)?;
        }
        if let Some(left_out) = frames.left_out {
            // The largest code that might be written.
            check_codes(&[left_out, left_out.saturating_add(frames.new.len() as u64)])?;
        }
        if frames.prefix > u64::from(u32::MAX) {
            return Err(WriteError::CommonPrefix(frames.prefix));
        }
        if next_id >= MAX_NUMBER {
            return Err(WriteError::Id(next_id));
        }
        self.begin(time);
        let Domains { shared, list, .. } = &mut *self.domains;
        let domain = list.get_mut(self.index).ok_or(WriteError::Domain(self.number))?;
        let cut = domain.alloc(shared, time, &block, &frames, locate)?;
        domain.last.truncate(known);
        Ok((domain.ids.next - 1, cut))
    }

    /// Writes a promotion.
    #[inline]
    pub fn promote(
        &mut self,
        time: u64,
        id: u64,
        locate: &mut impl Locate,
    ) -> Result<(), WriteError> {
        self.put_end(code::PROMOTE, time, id, locate)
    }

    /// Writes a collection.
    #[inline]
    pub fn collect(
        &mut self,
        time: u64,
        id: u64,
        locate: &mut impl Locate,
    ) -> Result<(), WriteError> {
        self.put_end(code::COLLECT, time, id, locate)
    }

    #[inline(always)]
    fn put_end(
        &mut self,
        code: u8,
        time: u64,
        id: u64,
        locate: &mut impl Locate,
    ) -> Result<(), WriteError> {
        let domain = self.domains.list.get_mut(self.index);
        if domain.and_then(|domain| domain.common_end(code, time, id)).is_some() {
            return Ok(());
        }
        self.put_any_end(code, time, id, locate)
    }

    #[inline(never)]
    fn put_any_end(
        &mut self,
        code: u8,
        time: u64,
        id: u64,
        locate: &mut impl Locate,
    ) -> Result<(), WriteError> {
        let next_id = self.check_event(time)?;
        let is_v2 = self.domains.shared.version == Version::V2;
        if id > MAX_NUMBER || is_v2 && id >= next_id {
            return Err(WriteError::Id(id));
        }
        self.begin(time);
        let Domains { shared, list, .. } = &mut *self.domains;
        let domain = list.get_mut(self.index).ok_or(WriteError::Domain(self.number))?;
        Ok(domain.end(shared, code, time, id, locate)?)
    }

    /// Whether there can be an event at this time; the next allocation's id.
    fn check_event(&self, time: u64) -> Result<u64, WriteError> {
        let shared = &self.domains.shared;
        let (last_time, next_id) = match self.domains.list.get(self.index) {
            Some(domain) => (domain.end, domain.next_id(shared)),
            None if shared.version == Version::V3 => (self.domains.start_time, shared.free_id),
            None => return Err(WriteError::Domain(self.number)),
        };
        check_time(time, last_time)?;
        Ok(next_id)
    }

    /// The domain begins now if it has not.
    pub(super) fn begin(&mut self, time: u64) {
        if self.index == usize::MAX {
            self.index = self.domains.begin(self.number, time);
        }
    }

    /// Numbers the domain's next allocations from `first` on, to copy a trace with
    /// its ids. The domain begins at `time` if it is new. Ids grow within a domain;
    /// the caller ensures that none is used twice.
    pub fn renumber(&mut self, time: u64, first: u64) -> Result<(), WriteError> {
        self.check_event(time)?;
        let known = self.domains.list.get(self.index);
        let grows = known.is_none_or(|known| first >= known.ids.next || known.is_unused());
        if first >= MAX_NUMBER || !grows {
            return Err(WriteError::Id(first));
        }
        self.begin(time);
        let Domains { shared, list, .. } = &mut *self.domains;
        if let Some(domain) = list.get_mut(self.index) {
            let same = first == domain.ids.next && domain.ids.next < domain.ids.end;
            domain.renumber = (!same).then(|| shared.take_ids_from(first));
            domain.look_ahead();
        }
        Ok(())
    }
}

impl<W: Write> DomainSink for DomainEncoder<'_, W> {
    #[inline]
    fn alloc_elided(
        &mut self,
        time: u64,
        block: Block,
        frames: ElidableFrames<'_>,
        locate: &mut impl Locate,
    ) -> Result<(u64, Option<LeftOut>), WriteError> {
        let ElidableFrames { common_prefix: prefix, new, left_out } = frames;
        let frames = NewFrames { prefix, new, left_out: Some(left_out), found: false };
        self.put_alloc(time, block, frames, 0, locate)
    }

    #[inline(always)]
    fn alloc_batch<'a>(
        &mut self,
        allocs: &mut impl Iterator<Item = SmallAlloc<'a>>,
    ) -> (Range<u64>, Option<SmallAlloc<'a>>) {
        let Some(domain) = self.domains.list.get_mut(self.index) else { return (0..0, None) };
        let first = domain.ids.next;
        let uncommon = domain.alloc_batch(allocs);
        let ids = first..domain.ids.next;
        if !ids.is_empty() {
            domain.last.clear();
        }
        (ids, uncommon)
    }

    #[inline(never)]
    fn end_batch(
        &mut self,
        end: End,
        time: u64,
        mut ids: Range<u64>,
        locate: &mut impl Locate,
    ) -> Result<(), WriteError> {
        loop {
            if let Some(domain) = self.domains.list.get_mut(self.index) {
                domain.common_ends(end_code(end), time, &mut ids);
            }
            let Some(id) = ids.next() else { return Ok(()) };
            self.put_any_end(end_code(end), time, id, locate)?;
        }
    }
}

/// The event code of a promotion or collection.
#[inline(always)]
fn end_code(end: End) -> u8 {
    match end {
        End::Promote => code::PROMOTE,
        End::Collect => code::COLLECT,
    }
}

fn check_block(block: &Block) -> Result<(), WriteError> {
    if block.length > MAX_NUMBER {
        return Err(WriteError::Length(block.length));
    }
    if block.samples == 0 || block.samples > block.length + 1 {
        return Err(WriteError::Samples(block.samples));
    }
    Ok(())
}

#[inline(always)]
fn check_codes(codes: &[Code]) -> Result<(), WriteError> {
    first_without_code(codes).map_or(Ok(()), |bad| Err(WriteError::Code(bad)))
}

fn check_time(time: u64, last: u64) -> Result<(), WriteError> {
    if time < last || time > i64::MAX as u64 { Err(WriteError::Time(time)) } else { Ok(()) }
}
