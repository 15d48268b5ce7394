//! From packet to packet: each is found, checked, and decoded into the reader's batch.

use crate::input::{Input, MAX_FILL};
use crate::memtrace::decode::batch::Fault;
use crate::memtrace::decode::body::padded_body;
use crate::memtrace::decode::reader::Reader;
use crate::memtrace::defect::Defect;
use crate::memtrace::header::{Header, MAX_HEADER};
use crate::memtrace::rules::MAX_PACKET;
use crate::model::ReadError;
use crate::model::TraceTotals;

const _: () = assert!(MAX_PACKET + MAX_HEADER <= MAX_FILL);

impl<I: Input> Reader<I> {
    /// Decodes the next packet into the batch, which stays empty if the packet has
    /// no events, is of another process or is skipped. Returns false, and changes nothing,
    /// if the packet is not all written yet.
    pub(crate) fn next_packet(&mut self) -> Result<bool, ReadError> {
        self.batch.clear();
        self.note_limits()?;
        if let Some(skip) = self.skip {
            return self.pass_over(skip);
        }
        if self.offset >= self.until {
            self.end();
            return Ok(true);
        }
        self.input.fill(MAX_HEADER)?;
        let have = self.input.visible().len();
        match Header::parse(self.input.visible()) {
            None if self.input.may_grow() => return Ok(false),
            None if have == 0 => self.end(),
            None => self.end_inside_packet(Defect::Truncated { have, need: 0 }, 0)?,
            Some(Err(defect)) => self.pass_over_damage(defect)?,
            Some(Ok(header)) if header.version != self.landmarks.version => {
                let found = header.version.number();
                self.pass_over_damage(Defect::VersionChange { found })?;
            }
            Some(Ok(header)) => {
                self.input.fill(header.size)?;
                if self.lacks(header.size) {
                    return Ok(false);
                }
                self.whole_packet(&header)?;
            }
        }
        Ok(true)
    }

    /// A packet with a readable header. As much as there is of it is visible.
    fn whole_packet(&mut self, header: &Header) -> Result<(), ReadError> {
        let have = self.input.visible().len();
        if have < header.size {
            let ids = header.stated_allocations().unwrap_or(0);
            return self.end_inside_packet(Defect::Truncated { have, need: header.size }, ids);
        }
        if header.pid != self.landmarks.pid {
            self.losses.foreign_packets += 1;
            self.advance(header.size);
            return Ok(());
        }
        self.covered = self.covered.max(header.end.saturating_sub(self.info.start_time));
        if let Some(cut) = &mut self.losses.cut_short {
            cut.until = self.covered;
        }
        if self.only.is_some_and(|number| number != header.domain) {
            self.advance(header.size);
            return Ok(());
        }
        if !self.domains.select(header.domain) {
            self.report(self.offset, Defect::TooManyDomains { limit: self.limits.domains })?;
            self.pass_over_packet(header);
            return Ok(());
        }
        self.catch_up();
        match self.check_in_sequence(header)? {
            Some(missing) => self.decode_packet(header, missing)?,
            None => self.leave_out(header),
        }
        Ok(())
    }

    /// Decodes a packet before which `missing` allocations are missing.
    fn decode_packet(&mut self, header: &Header, missing: u64) -> Result<(), ReadError> {
        let domain = &mut self.domains.current;
        let body = padded_body(self.input.visible(), header, &mut self.last_packet);
        let Some(body) = body else { return Ok(()) };
        let outcome = self.batch.decode(header, body, domain, &mut self.table);
        let end = self.offset + header.size as u64;
        match outcome {
            Ok(totals) => {
                domain.next_id = header.next_id;
                domain.gap_expected = false;
                domain.left_out = 0;
                self.losses.allocations += missing;
                self.used_ids.add(header.first_id, header.next_id);
                domain.last_time = domain.last_time.max(header.end);
                self.count(header, &totals);
                for at in 0..self.batch.harmless.len() {
                    let Fault { remaining, defect } = self.batch.harmless[at];
                    self.report(end - remaining as u64, defect)?;
                }
                self.advance(header.size);
                Ok(())
            }
            Err(Fault { remaining, defect }) => {
                self.report(end - remaining as u64, defect)?;
                self.leave_out(header);
                Ok(())
            }
        }
    }

    fn count(&mut self, header: &Header, totals: &TraceTotals) {
        self.mixes |= totals.locations > 0 && totals.events() > 0;
        self.totals.add(totals);
        self.totals.packets += 1;
        self.totals.header_bytes += header.version.header_len() as u64;
    }
}
