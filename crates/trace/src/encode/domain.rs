//! One domain's packets under construction.

use std::io::{self, Write};

use crate::encode::names::{Locate, LocationList, RecentNames};
use crate::encode::stack::Stack;
use crate::event::{Code, event_header};
use crate::header::{Header, Version};
use crate::rules::{MAX_EVENT_BODY, MAX_PACKET_SPAN, MAX_PENDING_LOCATIONS, MIN_ROOM};
use crate::wire::Packet;

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
    /// Room for a packet of locations and for the locations of one code.
    pub(crate) locations: Packet,
    pub(crate) list: LocationList,
}

impl<W> Shared<W> {
    pub(crate) fn take_ids(&mut self) -> IdBlock {
        let next = self.free_id;
        let end = next.saturating_add(self.ids_per_block);
        self.free_id = end;
        IdBlock { next, end }
    }
}

/// One domain.
pub(crate) struct DomainWriter {
    pub(crate) number: u16,
    pub(crate) stack: Stack,
    /// The frames of the last allocation, where they were given whole.
    pub(crate) last: Vec<Code>,
    /// Codes that entered the cache in this packet.
    pub(crate) missed: Vec<Code>,
    pub(crate) packet: Packet,
    pub(crate) ids: IdBlock,
    /// Ids to go on with, if not those behind the last.
    pub(crate) renumber: Option<u64>,
    /// Id of the packet's first allocation.
    first_id: u64,
    begin: u64,
    /// Time of the last event.
    pub(crate) end: u64,
    names: RecentNames,
    empty: bool,
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
            names: RecentNames::new(),
            empty: true,
            fresh: true,
        }
    }

    /// Whether it has neither events nor packets yet.
    pub(crate) fn is_unused(&self) -> bool {
        self.empty && self.fresh
    }

    /// Writes an event's first bytes, in a new packet if this one may not take
    /// another event.
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
            || time - self.begin > MAX_PACKET_SPAN
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
        let unused = self.is_unused() && time - self.begin <= MAX_PACKET_SPAN;
        if !unused {
            self.close(shared, time, locate)?;
        }
        if let Some(first) = self.renumber.take() {
            // Up to where the block ends that this id lies in.
            let end = (first - first % shared.ids_per_block).saturating_add(shared.ids_per_block);
            shared.free_id = shared.free_id.max(end);
            self.ids = IdBlock { next: first, end };
            self.first_id = first;
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
        let times = (self.begin, self.end);
        let ids = (self.first_id, self.ids.next);
        Header::finish(&mut self.packet, shared.version, times, ids);
        debug_assert!(!self.packet.is_overfull());
        shared.out.write_all(self.packet.as_slice())?;
        self.begin = time;
        self.end = time;
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
        let mut missed = self.missed.iter();
        while !missed.as_slice().is_empty() {
            let packet = &mut shared.locations;
            Header::open(packet, shared.version, shared.pid, self.number, None);
            while packet.room() > MAX_EVENT_BODY
                && let Some(&code) = missed.next()
            {
                shared.list.clear();
                locate.locate(code, &mut shared.list);
                self.names.put(packet, self.begin, code, &shared.list);
            }
            let (times, ids) = ((self.begin, self.begin), (self.first_id, self.first_id));
            Header::finish(packet, shared.version, times, ids);
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

    /// The same at the trace's end, where the original writer leaves an empty
    /// packet of a domain that had no event.
    pub(crate) fn finish<W: Write>(
        &mut self,
        shared: &mut Shared<W>,
        locate: &mut impl Locate,
    ) -> io::Result<()> {
        if self.empty && !self.fresh { Ok(()) } else { self.close(shared, self.end, locate) }
    }
}
