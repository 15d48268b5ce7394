//! Writing many events of one domain, which is looked up once.

use std::io::Write;
use std::ops::Range;

use crate::memtrace::encode::domain::NewFrames;
use crate::memtrace::encode::stack::{LeftOut, common_prefix};
use crate::memtrace::encode::{
    Encoder, SmallAlloc, WriteError, check_block, check_codes, check_time, end_code,
};
use crate::memtrace::header::Version;
use crate::memtrace::rules::{MAX_NUMBER, code};
use crate::model::{Block, Code, End, Frames, Locate};

/// One domain of an [`Encoder`]. It begins with its first event.
pub struct DomainEncoder<'e, W> {
    encoder: &'e mut Encoder<W>,
    number: u16,
    /// Where the encoder keeps it; beyond all if it has not begun.
    place: usize,
}

impl<'e, W: Write> DomainEncoder<'e, W> {
    #[inline(always)]
    pub(super) fn new(encoder: &'e mut Encoder<W>, number: u16) -> Self {
        let place = encoder.place(number).unwrap_or(usize::MAX);
        DomainEncoder { encoder, number, place }
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
        let last = self.encoder.domains.get(self.place).map_or(&[][..], |domain| &domain.last);
        let (prefix, new, known) = match frames {
            Frames::Whole(frames) => {
                let prefix = common_prefix(last, frames);
                (prefix as u64, frames.get(prefix..).unwrap_or(&[]), prefix)
            }
            // The last frames are not kept up: the caller knows the prefixes.
            Frames::Suffix { common_prefix, new } => (common_prefix, new, 0),
        };
        let (id, _) = self.put_alloc(time, block, (prefix, new, None), known, locate)?;
        if let Frames::Whole(_) = frames
            && let Some(domain) = self.encoder.domains.get_mut(self.place)
        {
            domain.last.extend_from_slice(new);
        }
        Ok(id)
    }

    /// Writes an allocation whose backtrace, should it not fit into 4,096 bytes,
    /// keeps both its ends: one frame, whose code is `left_out` plus the number
    /// of frames it stands for, takes the place of those in the middle.
    ///
    /// Returns the allocation's id and what of `new` was left out. Later common
    /// prefixes count the frames as they are in the file.
    #[inline]
    pub fn alloc_elided(
        &mut self,
        time: u64,
        block: Block,
        (common_prefix, new): (u64, &[Code]),
        left_out: Code,
        locate: &mut impl Locate,
    ) -> Result<(u64, Option<LeftOut>), WriteError> {
        self.put_alloc(time, block, (common_prefix, new, Some(left_out)), 0, locate)
    }

    /// Writes allocations for as long as they need nothing but room in the packet.
    /// Returns their ids, and the first allocation for which something else would
    /// have to be done, if there is one: [`DomainEncoder::alloc`] does that. For a
    /// domain that has not begun it takes none.
    #[inline(always)]
    pub fn alloc_batch<'a>(
        &mut self,
        allocs: &mut impl Iterator<Item = SmallAlloc<'a>>,
    ) -> (Range<u64>, Option<SmallAlloc<'a>>) {
        let Some(domain) = self.encoder.domains.get_mut(self.place) else { return (0..0, None) };
        let first = domain.ids.next;
        let unusual = domain.alloc_batch(allocs);
        let ids = first..domain.ids.next;
        if !ids.is_empty() {
            domain.last.clear();
        }
        (ids, unusual)
    }

    /// Writes an allocation. Of the last frames, so many are known afterwards.
    #[inline(always)]
    fn put_alloc(
        &mut self,
        time: u64,
        block: Block,
        (prefix, new, left_out): (u64, &[Code], Option<Code>),
        known: usize,
        locate: &mut impl Locate,
    ) -> Result<(u64, Option<LeftOut>), WriteError> {
        if let Some(domain) = self.encoder.domains.get_mut(self.place)
            && let Some(id) = domain.usual_alloc(time, &block, prefix, new)
        {
            domain.last.truncate(known);
            return Ok((id, None));
        }
        let frames = NewFrames { prefix, new, left_out, found: false };
        self.put_any_alloc(time, block, frames, known, locate)
    }

    /// What is refused leaves no trace, so everything is checked before.
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
        let domain = self.encoder.domains.get_mut(self.place);
        frames.found = domain.is_some_and(|domain| domain.stack.find_all(frames.new));
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
        let Encoder { shared, domains, .. } = &mut *self.encoder;
        let domain = domains.get_mut(self.place).ok_or(WriteError::Domain(self.number))?;
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

    /// Writes the promotion or collection of objects whose ids follow each other,
    /// all at one time.
    #[inline(never)]
    pub fn end_batch(
        &mut self,
        end: End,
        time: u64,
        mut ids: Range<u64>,
        locate: &mut impl Locate,
    ) -> Result<(), WriteError> {
        loop {
            if let Some(domain) = self.encoder.domains.get_mut(self.place) {
                domain.usual_ends(end_code(end), time, &mut ids);
            }
            let Some(id) = ids.next() else { return Ok(()) };
            self.put_any_end(end_code(end), time, id, locate)?;
        }
    }

    #[inline(always)]
    fn put_end(
        &mut self,
        code: u8,
        time: u64,
        id: u64,
        locate: &mut impl Locate,
    ) -> Result<(), WriteError> {
        let domain = self.encoder.domains.get_mut(self.place);
        if domain.and_then(|domain| domain.usual_end(code, time, id)).is_some() {
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
        let is_v2 = self.encoder.shared.version == Version::V2;
        if id > MAX_NUMBER || is_v2 && id >= next_id {
            return Err(WriteError::Id(id));
        }
        self.begin(time);
        let Encoder { shared, domains, .. } = &mut *self.encoder;
        let domain = domains.get_mut(self.place).ok_or(WriteError::Domain(self.number))?;
        Ok(domain.end(shared, code, (time, id), locate)?)
    }

    /// Whether there can be an event at this time; the next allocation's id.
    fn check_event(&self, time: u64) -> Result<u64, WriteError> {
        let shared = &self.encoder.shared;
        let (last_time, next_id) = match self.encoder.domains.get(self.place) {
            Some(domain) => (domain.end, domain.next_id(shared)),
            None if shared.version == Version::V3 => (self.encoder.start_time, shared.free_id),
            None => return Err(WriteError::Domain(self.number)),
        };
        check_time(time, last_time)?;
        Ok(next_id)
    }

    /// The domain begins now if it has not.
    pub(super) fn begin(&mut self, time: u64) {
        if self.place == usize::MAX {
            self.place = self.encoder.begin_domain(self.number, time);
        }
    }

    /// Lets the domain, which begins at `time` if it is new, number its next
    /// allocations from `first` on: see [`Encoder::renumber`].
    pub(super) fn renumber(&mut self, time: u64, first: u64) -> Result<(), WriteError> {
        self.check_event(time)?;
        let known = self.encoder.domains.get(self.place);
        let grows = known.is_none_or(|known| first >= known.ids.next || known.is_unused());
        if first >= MAX_NUMBER || !grows {
            return Err(WriteError::Id(first));
        }
        self.begin(time);
        let Encoder { shared, domains, .. } = &mut *self.encoder;
        if let Some(domain) = domains.get_mut(self.place) {
            let same = first == domain.ids.next && domain.ids.next < domain.ids.end;
            domain.renumber = (!same).then(|| shared.take_ids_from(first));
            domain.look_ahead();
        }
        Ok(())
    }
}
