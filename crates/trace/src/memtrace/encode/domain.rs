//! One domain's packets under construction.

use std::io::{self, Write};

use crate::memtrace::encode::cached::Order;
use crate::memtrace::encode::kinds::NamedKinds;
use crate::memtrace::encode::names::{RecentNames, fits_room};
use crate::memtrace::encode::stack::Stack;
use crate::memtrace::event::event_header;
use crate::memtrace::header::{Header, PacketRange, Version};
use crate::memtrace::rules::{
    MAX_EVENT_BODY, MAX_NUMBER, MAX_PACKET_SPAN, MAX_PENDING_LOCATIONS, MAX_SHORT_LENGTH, MIN_ROOM,
    SHORT_ALLOC, code,
};
use crate::memtrace::wire::Packet;
use crate::model::LeftOut;
use crate::model::{Block, Code, Locate, LocationList, Source};

/// Object ids taken from the shared counter.
#[derive(Clone, Copy)]
pub(crate) struct IdBlock {
    pub(crate) next: u64,
    pub(crate) end: u64,
}

/// What all domains of a trace share.
pub(crate) struct Shared<W> {
    pub(crate) out: W,
    pub(crate) version: Version,
    pub(crate) pid: u64,
    /// The first id that no domain has taken.
    pub(crate) free_id: u64,
    pub(crate) ids_per_block: u64,
    /// Memory for a packet of locations, and for the locations of one code.
    pub(crate) locations: Packet,
    pub(crate) list: LocationList,
    /// The kinds of blocks whose names are in the file.
    pub(crate) kinds: NamedKinds,
}

impl<W> Shared<W> {
    pub(crate) fn take_ids(&mut self) -> IdBlock {
        self.take_ids_from(self.free_id)
    }

    /// The ids from `first` to the end of its block. The largest number is never
    /// used: a packet header states the id after its last.
    pub(crate) fn take_ids_from(&mut self, first: u64) -> IdBlock {
        let next = first.min(MAX_NUMBER);
        let end = (next - next % self.ids_per_block).saturating_add(self.ids_per_block);
        let end = end.min(MAX_NUMBER);
        self.free_id = self.free_id.max(end);
        IdBlock { next, end }
    }
}

/// The frames of an allocation that follow a prefix of the last one's.
pub(crate) struct NewFrames<'a> {
    pub(crate) prefix: u64,
    pub(crate) new: &'a [Code],
    /// Keep both ends if there is no room for all: see [`Stack::put_elided`].
    pub(crate) left_out: Option<Code>,
    /// [`Stack::find_cached`] found them all.
    pub(crate) found: bool,
}

/// One domain.
pub(crate) struct DomainWriter {
    pub(crate) number: u16,
    pub(crate) stack: Stack,
    /// The frames of the last allocation, if it was given whole.
    pub(crate) last: Vec<Code>,
    /// Codes that entered the cache in this packet.
    pub(crate) missed: Vec<Code>,
    pub(crate) packet: Packet,
    pub(crate) ids: IdBlock,
    /// The ids to continue with, if not those after the last.
    pub(crate) renumber: Option<IdBlock>,
    /// Id of the packet's first allocation.
    first_id: u64,
    begin: u64,
    /// Time of the last event.
    pub(crate) end: u64,
    /// No event of this packet is later.
    latest: u64,
    /// An event before this time goes into this packet, provided that the packet
    /// has room and the domain has ids. 0 if no event does. See
    /// [`Self::look_ahead`].
    pub(super) common_before: u64,
    names: RecentNames,
    pub(super) empty: bool,
    /// No packet was written yet.
    fresh: bool,
}

impl DomainWriter {
    pub(crate) fn new<W>(shared: &mut Shared<W>, number: u16, begin: u64) -> Self {
        let ids = shared.take_ids();
        let mut packet = Packet::new();
        Header::open(&mut packet, shared.version, shared.pid, number, None);
        DomainWriter {
            number,
            stack: Stack::new(),
            last: Vec::new(),
            missed: Vec::new(),
            packet,
            ids,
            renumber: None,
            first_id: ids.next,
            begin,
            end: begin,
            latest: latest(begin),
            common_before: latest(begin) + 1,
            names: RecentNames::new(),
            empty: true,
            fresh: true,
        }
    }

    /// The id that the next allocation will get.
    pub(crate) fn next_id<W>(&self, shared: &Shared<W>) -> u64 {
        match self.renumber {
            Some(ids) => ids.next,
            None if self.ids.next >= self.ids.end => shared.free_id,
            None => self.ids.next,
        }
    }

    /// Whether it has neither events nor packets yet.
    pub(crate) fn is_unused(&self) -> bool {
        self.empty && self.fresh
    }

    /// Updates `common_before`; called whenever something changed that it depends
    /// on.
    pub(super) fn look_ahead(&mut self) {
        let needs_new = self.renumber.is_some() || self.missed.len() > MAX_PENDING_LOCATIONS;
        self.common_before = if needs_new { 0 } else { self.latest + 1 };
    }

    /// Writes an allocation whose new frames follow a prefix of the last one's.
    #[inline(always)]
    pub(crate) fn alloc<W: Write>(
        &mut self,
        shared: &mut Shared<W>,
        time: u64,
        block: &Block,
        frames: &NewFrames<'_>,
        locate: &mut impl Locate,
    ) -> io::Result<Option<LeftOut>> {
        let NewFrames { prefix, new, left_out, found } = *frames;
        let short = (1..=MAX_SHORT_LENGTH).contains(&block.length)
            && block.source == Source::Minor
            && block.samples == 1
            && new.len() < 256;
        let code = if short { SHORT_ALLOC + block.length as u8 } else { code::ALLOC };
        self.begin_event(shared, code, time, locate)?;
        let id = self.ids.next;
        self.ids.next += 1;
        let packet = &mut self.packet;
        if !short {
            packet.vint(block.length as i64);
            packet.vint(block.samples as i64);
            packet.u8(block.source as u8);
        }
        packet.vint(prefix as i64);
        let count_at = packet.len();
        packet.u8(0);
        if !short {
            packet.u8(0);
        }
        let (entries, cut) = match left_out {
            _ if found => {
                let Some(room) = packet.window() else { return Ok(None) };
                let (entries, bytes) =
                    self.stack.put_cached(room, new.len(), Order::OuterFirst, id);
                packet.extend(bytes);
                (u16::from(entries), None)
            }
            Some(base) if !short => self.stack.put_elided(packet, new, base, id, &mut self.missed),
            _ => (self.stack.put(packet, new, id, &mut self.missed), None),
        };
        let [low, high] = entries.to_le_bytes();
        packet.patch(count_at, [low]);
        if !short {
            packet.patch(count_at + 1, [high]);
        }
        self.look_ahead();
        Ok(cut)
    }

    /// Writes a promotion or collection.
    pub(crate) fn end<W: Write>(
        &mut self,
        shared: &mut Shared<W>,
        code: u8,
        time: u64,
        id: u64,
        locate: &mut impl Locate,
    ) -> io::Result<()> {
        self.begin_event(shared, code, time, locate)?;
        self.packet.vint(self.ids.next as i64 - 1 - id as i64);
        self.look_ahead();
        Ok(())
    }

    /// Writes an event's first bytes, in a new packet if this one is closed to
    /// further events.
    #[inline(always)]
    pub(crate) fn begin_event<W: Write>(
        &mut self,
        shared: &mut Shared<W>,
        code: u8,
        time: u64,
        locate: &mut impl Locate,
    ) -> io::Result<()> {
        if self.packet.room() < MIN_ROOM
            || self.missed.len() > MAX_PENDING_LOCATIONS
            || time > self.latest
            || self.ids.next >= self.ids.end
            || self.renumber.is_some()
        {
            self.make_room(shared, time, locate)?;
        }
        self.end = time;
        self.empty = false;
        self.packet.u32(event_header(code, time));
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn make_room<W: Write>(
        &mut self,
        shared: &mut Shared<W>,
        time: u64,
        locate: &mut impl Locate,
    ) -> io::Result<()> {
        let unused = self.is_unused() && time <= self.latest;
        if !unused {
            self.close(shared, time, locate)?;
        }
        if let Some(ids) = self.renumber.take() {
            self.ids = ids;
            self.first_id = ids.next;
        }
        Ok(())
    }

    /// Writes the packet and opens the next one, which begins at `time`.
    fn close<W: Write>(
        &mut self,
        shared: &mut Shared<W>,
        time: u64,
        locate: &mut impl Locate,
    ) -> io::Result<()> {
        self.write_locations(shared, locate)?;
        let range = PacketRange {
            begin: self.begin,
            end: self.end,
            first_id: self.first_id,
            next_id: self.ids.next,
        };
        Header::finish(&mut self.packet, shared.version, range);
        debug_assert!(!self.packet.is_overfull());
        shared.out.write_all(self.packet.as_slice())?;
        self.begin = time;
        self.end = time;
        self.latest = latest(time);
        self.look_ahead();
        self.empty = true;
        self.fresh = false;
        if self.ids.next >= self.ids.end {
            self.ids = shared.take_ids();
        }
        self.first_id = self.ids.next;
        let check = Some(self.stack.check());
        Header::open(&mut self.packet, shared.version, shared.pid, self.number, check);
        Ok(())
    }

    /// Writes the locations of the codes that this packet is the first to use.
    fn write_locations<W: Write>(
        &mut self,
        shared: &mut Shared<W>,
        locate: &mut impl Locate,
    ) -> io::Result<()> {
        shared.kinds.add_names(&mut self.missed, &mut shared.list, locate);
        let mut missed = &self.missed[..];
        while !missed.is_empty() {
            let packet = &mut shared.locations;
            Header::open(packet, shared.version, shared.pid, self.number, None);
            while packet.room() > MAX_EVENT_BODY
                && let [code, behind @ ..] = missed
            {
                shared.list.clear();
                locate.locate(*code, &mut shared.list);
                if !fits_room(&shared.list, packet.room()) {
                    break;
                }
                self.names.put(packet, self.begin, *code, &shared.list);
                missed = behind;
            }
            let range = PacketRange {
                begin: self.begin,
                end: self.begin,
                first_id: self.first_id,
                next_id: self.first_id,
            };
            Header::finish(packet, shared.version, range);
            debug_assert!(!packet.is_overfull());
            shared.out.write_all(packet.as_slice())?;
        }
        self.missed.clear();
        Ok(())
    }

    /// Writes the packet if it has events.
    pub(crate) fn flush<W: Write>(
        &mut self,
        shared: &mut Shared<W>,
        locate: &mut impl Locate,
    ) -> io::Result<()> {
        if self.empty { Ok(()) } else { self.close(shared, self.end, locate) }
    }

    /// Writes an empty packet at this time, unless a packet of the domain ends then or later: the
    /// trace covers its program until then. The domain has no events that are not written.
    pub(crate) fn cover<W: Write>(
        &mut self,
        shared: &mut Shared<W>,
        time: u64,
        locate: &mut impl Locate,
    ) -> io::Result<()> {
        if time <= self.end || i64::try_from(time).is_err() {
            return Ok(());
        }
        (self.begin, self.end) = (time, time);
        self.close(shared, time, locate)
    }

    /// Writes the packet at the end of the trace. The original writer writes an empty packet
    /// for a domain without events.
    pub(crate) fn finish<W: Write>(
        &mut self,
        shared: &mut Shared<W>,
        locate: &mut impl Locate,
    ) -> io::Result<()> {
        if self.empty && !self.fresh { Ok(()) } else { self.close(shared, self.end, locate) }
    }
}

/// The latest time in a packet that begins at `begin`. Times have 63 bits.
fn latest(begin: u64) -> u64 {
    begin.saturating_add(MAX_PACKET_SPAN).min(i64::MAX as u64)
}
