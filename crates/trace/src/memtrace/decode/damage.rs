//! What the reader does about defects: report, skip, continue.

use crate::input::Input;
use crate::memtrace::decode::domain::Lost;
use crate::memtrace::decode::reader::Reader;
use crate::memtrace::decode::resync::{Landmarks, Skip};
use crate::memtrace::defect::Defect;
use crate::memtrace::event::event_code;
use crate::memtrace::header::{Header, MAX_HEADER};
use crate::memtrace::rules::{MAX_PACKET, code};
use crate::model::{Located, Mode, ReadError};

impl<I: Input> Reader<I> {
    /// Reports once that frames were dropped because of the limits.
    pub(crate) fn note_limits(&mut self) -> Result<(), ReadError> {
        if std::mem::take(&mut self.budget.exceeded) {
            self.report(self.offset, Defect::TooDeep { limit: self.limits.frames })?;
        }
        Ok(())
    }

    /// Ends the reading in strict mode, counts the defect in lenient mode.
    pub(crate) fn report(&mut self, offset: u64, defect: Defect) -> Result<(), ReadError> {
        let packet = self.packet;
        let located = || Located { packet, offset, defect: defect.into() };
        match (self.mode, defect) {
            (Mode::Strict, _) => {
                self.batch.clear();
                self.ended = true;
                return Err(ReadError::Defect(located()));
            }
            (Mode::Lenient, Defect::Truncated { .. }) => self.losses.truncated = Some(located()),
            (Mode::Lenient, _) => self.losses.note(located),
        }
        Ok(())
    }

    /// Moves past the current packet.
    pub(crate) fn advance(&mut self, size: usize) {
        self.input.consume(size);
        self.offset += size as u64;
        self.packet += 1;
    }

    /// The file ends inside a packet, unless the packet's size is wrong and another
    /// packet follows.
    pub(crate) fn end_inside_packet(
        &mut self,
        defect: Defect,
        allocations: u64,
    ) -> Result<(), ReadError> {
        if self.mode == Mode::Lenient && self.landmarks.find(self.input.visible()).is_some() {
            return self.pass_over_damage(Defect::PacketSize { bits: self.stated_bits() });
        }
        self.report(self.offset, defect)?;
        self.losses.allocations += allocations;
        let rest = self.input.visible().len();
        self.losses.bytes += rest as u64;
        self.advance(rest);
        self.end();
        Ok(())
    }

    pub(crate) fn stated_bits(&self) -> u32 {
        let size = self.input.visible().get(4..).and_then(|bytes| bytes.first_chunk());
        size.map_or(0, |&bits| u32::from_le_bytes(bits))
    }

    /// Skips a damaged packet of the current domain.
    pub(crate) fn leave_out(&mut self, header: &Header) {
        self.lose(self.lost_with(header));
        self.count_left_out(header);
        self.pass_over_packet(header);
    }

    /// Moves to the packet after this one, when the next is read.
    pub(crate) fn pass_over_packet(&mut self, header: &Header) {
        self.batch.clear();
        self.losses.packets += 1;
        self.skip = Some(Skip::Packet(header.size));
    }

    /// Skips what there is to skip; false if that takes more than is written yet.
    pub(crate) fn pass_over(&mut self, skip: Skip) -> Result<bool, ReadError> {
        match skip {
            Skip::Packet(size) => self.pass_over_sized(size),
            Skip::Search { first } => self.seek_packet(first),
        }
    }

    fn pass_over_sized(&mut self, size: usize) -> Result<bool, ReadError> {
        self.input.fill(size + MAX_HEADER)?;
        let rest = self.input.visible().get(size..).unwrap_or(&[]);
        let follows = self.landmarks.begin_packet(rest);
        if !follows && self.lacks(size + MAX_HEADER) {
            return Ok(false);
        }
        if rest.is_empty() || follows {
            self.losses.bytes += size as u64;
            self.advance(size);
            self.skip = None;
        } else {
            self.skip = Some(Skip::Search { first: true });
        }
        Ok(true)
    }

    /// Counts the allocations that a skipped packet claims to contain.
    fn count_left_out(&mut self, header: &Header) {
        let domain = &mut self.domains.current;
        if header.first_id >= domain.next_id {
            domain.left_out += header.stated_allocations().unwrap_or(0);
        }
    }

    /// The end: no later packet will show what the skipped ones contained.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        for domain in self.domains.iter_mut() {
            self.losses.allocations += std::mem::take(&mut domain.left_out);
        }
    }

    /// What is unknown after a damaged packet, by its kind and by what was decoded
    /// as a location.
    pub(crate) fn lost_with(&self, header: &Header) -> Lost {
        let body = self.input.visible().get(header.version.header_len()..header.size);
        let first = body.and_then(|body| body.first_chunk()).copied().map(u32::from_le_bytes);
        let locations = self.batch.located || first.map(event_code) == Some(code::LOCATION);
        match (locations, header.allocates()) {
            _ if self.mixes => Lost::Everything,
            (true, false) if header.cache_check.is_none() => Lost::Names,
            (false, true) => Lost::Stack,
            _ => Lost::Everything,
        }
    }

    /// Skips bytes that are not a packet of this trace.
    pub(crate) fn pass_over_damage(&mut self, defect: Defect) -> Result<(), ReadError> {
        self.report(self.offset, defect)?;
        self.skip = Some(Skip::Search { first: true });
        Ok(())
    }

    /// Moves to where the next packet seems to begin; false if it is not written yet.
    /// Packets of any domain may have been skipped, so all domains lose what they know.
    fn seek_packet(&mut self, mut first: bool) -> Result<bool, ReadError> {
        loop {
            self.input.fill(MAX_PACKET)?;
            let bytes = self.input.visible();
            // The search begins after the packet that led here.
            let here = !first && self.landmarks.begin_packet(bytes);
            let found = if here { Some(0) } else { self.landmarks.find(bytes) };
            if found.is_none() && self.lacks(MAX_PACKET) {
                self.skip = Some(Skip::Search { first });
                return Ok(false);
            }
            let ended = bytes.len() < MAX_PACKET;
            let passed = match found {
                Some(at) => at,
                None if ended => bytes.len(),
                None => bytes.len() - Landmarks::OVERLAP,
            };
            self.input.consume(passed);
            self.offset += passed as u64;
            self.losses.bytes += passed as u64;
            if found.is_some() || ended {
                break;
            }
            first = false;
        }
        self.skip = None;
        self.packet += 1;
        self.losses_of_all += 1;
        Ok(true)
    }

    /// Applies the losses since the current domain's last packet to it.
    pub(crate) fn catch_up(&mut self) {
        let seen = &mut self.domains.current.losses_seen;
        if std::mem::replace(seen, self.losses_of_all) != self.losses_of_all {
            self.lose(Lost::Everything);
        }
    }

    pub(crate) fn lose(&mut self, lost: Lost) {
        self.domains.current.lose(lost, &mut self.table);
    }
}
