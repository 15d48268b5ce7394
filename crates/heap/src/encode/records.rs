//! Everything but blocks: records of one kind after the other.
//!
//! Records of one kind wait in one buffer; a record of another kind writes it out
//! first. Code addresses have a buffer of their own, because they come up
//! between blocks and roots. Numbers that are close to the record before are differences to it,
//! and each chunk begins with 0.

use heaptap_codec::varint::MAX_VARINT;

use super::encoder::{Encoder, MISUSE, Sink};
use super::record_state::{Record, difference};
use super::workspace::{RECENT_CODES, Workspace};
use crate::chunk::{ChunkKind, Stream, pack};
use crate::codes::part;
use crate::model::{
    Finaliser, KindNamespace, MAX_STRING, MetaKey, Name, OutsideArea, Root, RootOwner, Segment,
    Tracked,
};

/// The most bytes of a record: two strings and some numbers.
const MAX_RECORD: usize = 2 * MAX_STRING + 12 * MAX_VARINT;

impl<S: Sink> Encoder<'_, S> {
    /// Where the next record of a kind goes.
    fn record(&mut self, kind: ChunkKind) -> Result<Record<'_>, i32> {
        self.state()?;
        if self.records.is_open() {
            return self.fail(MISUSE);
        }
        if self.records.kind != Some(kind) || !self.workspace.records.has_room(MAX_RECORD) {
            self.flush_records()?;
            self.records.kind = Some(kind);
        }
        Ok(Record { buffer: &mut self.workspace.records, state: &mut self.records })
    }

    /// The same, if an address of a block, or several by `|`, is one.
    fn aligned_record(&mut self, kind: ChunkKind, addresses: u64) -> Result<Record<'_>, i32> {
        if addresses & 7 == 0 { self.record(kind) } else { self.fail(MISUSE) }
    }

    pub(super) fn flush_records(&mut self) -> Result<(), i32> {
        self.state()?;
        self.records.restart();
        let Some(kind) = self.records.kind else { return Ok(()) };
        let Workspace { records, chunk, positions, .. } = &mut *self.workspace;
        if records.is_empty() {
            return Ok(());
        }
        let length = pack(kind, &[Stream::new(records.bytes())], chunk, positions);
        let overflowed = records.overflowed();
        records.clear();
        self.write(length.filter(|_| !overflowed))
    }

    pub(super) fn flush_codes(&mut self) -> Result<(), i32> {
        self.state()?;
        let Workspace { codes, chunk, positions, .. } = &mut *self.workspace;
        if codes.is_empty() {
            return Ok(());
        }
        let length = pack(ChunkKind::CodesSeen, &[Stream::new(codes.bytes())], chunk, positions);
        codes.clear();
        self.records.last_code = 0;
        self.write(length)
    }

    /// A fact about the snapshot.
    pub fn meta(&mut self, key: MetaKey, value: &[u8]) -> Result<(), i32> {
        let mut record = self.record(ChunkKind::Meta)?;
        record.number(u64::from(key.0));
        record.string(value);
        self.totals.meta += 1;
        Ok(())
    }

    /// A fact that is a number.
    pub fn meta_number(&mut self, key: MetaKey, number: u64) -> Result<(), i32> {
        let mut digits = [0; 20];
        let mut rest = number;
        let mut first = digits.len();
        for (index, digit) in digits.iter_mut().enumerate().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            first = index;
            if rest == 0 {
                break;
            }
        }
        self.meta(key, digits.get(first..).unwrap_or_default())
    }

    /// A range in which the blocks that come next lie.
    pub fn segment(&mut self, segment: Segment) -> Result<(), i32> {
        let mut record = self.aligned_record(ChunkKind::Segments, segment.start)?;
        record.number(segment.kind as u64);
        record.target(segment.start);
        record.number(segment.words);
        self.totals.segments += 1;
        self.totals.segment_words = self.totals.segment_words.saturating_add(segment.words);
        Ok(())
    }

    /// A root. Its return address is listed too, as by `code_seen`.
    pub fn root(&mut self, root: Root) -> Result<(), i32> {
        let mut record = self.aligned_record(ChunkKind::Roots, root.target)?;
        let mut code = None;
        match root.owner {
            RootOwner::Global { module, field } => {
                record.number(0);
                record.id(u64::from(module));
                record.near_number(u64::from(field));
            }
            RootOwner::Stack { thread, depth, return_address, slot } => {
                record.number(1);
                record.id(u64::from(thread));
                record.near_number(u64::from(depth));
                record.address(return_address);
                record.number(u64::from(slot));
                code = Some(return_address);
            }
            RootOwner::LocalC { thread } => {
                record.number(2);
                record.id(u64::from(thread));
            }
            RootOwner::GlobalC { slot } => {
                record.number(3);
                record.address(slot);
            }
            RootOwner::Hook { slot } => {
                record.number(4);
                record.address(slot);
            }
            RootOwner::Continuation { block, depth, return_address, slot } => {
                record.number(5);
                record.id(block);
                record.near_number(u64::from(depth));
                record.address(return_address);
                record.number(u64::from(slot));
                code = Some(return_address);
            }
            RootOwner::DomainLocal { domain } => {
                record.number(7);
                record.id(u64::from(domain));
            }
            RootOwner::Handler { thread, fiber, return_address, slot } => {
                record.number(8);
                record.id(u64::from(thread));
                record.near_number(u64::from(fiber));
                record.address(return_address);
                record.number(u64::from(slot));
                code = Some(return_address);
            }
            RootOwner::Host { kind, index } => {
                record.number(6);
                record.id(u64::from(kind));
                record.near_number(index);
            }
        }
        record.target(root.target);
        self.totals.roots += 1;
        code.map_or(Ok(()), |address| self.code_seen(address))
    }

    /// A finaliser. An address is 0 where the value or the function is not in the heap.
    pub fn finaliser(&mut self, finaliser: Finaliser) -> Result<(), i32> {
        let mut record =
            self.aligned_record(ChunkKind::Finalisers, finaliser.value | finaliser.function)?;
        record.number(finaliser.kind as u64);
        record.target(finaliser.value);
        record.address(finaliser.function >> 3);
        self.totals.finalisers += 1;
        Ok(())
    }

    /// Begins an ephemeron, by the address of its block. Until it ends there are no records of
    /// other kinds.
    pub fn begin_ephemeron(&mut self, address: u64) -> Result<(), i32> {
        let mut record = self.aligned_record(ChunkKind::Ephemerons, address)?;
        // An even number begins an ephemeron, an odd one continues it.
        record.number(0);
        record.address(address >> 3);
        self.records.ephemeron = Some((address, 0));
        self.records.has_data = false;
        self.totals.ephemerons += 1;
        Ok(())
    }

    /// The part of an ephemeron that comes next.
    fn ephemeron_part(&mut self) -> Result<(Record<'_>, u64), i32> {
        self.state()?;
        let Some((address, next_key)) = self.records.ephemeron else { return self.fail(MISUSE) };
        if !self.workspace.records.has_room(MAX_RECORD) {
            self.workspace.records.put_varint(part::BROKEN_OFF);
            self.flush_records()?;
            let mut record =
                Record { buffer: &mut self.workspace.records, state: &mut self.records };
            record.number(1);
            record.address(address >> 3);
            record.number(next_key);
        }
        let record = Record { buffer: &mut self.workspace.records, state: &mut self.records };
        Ok((record, next_key))
    }

    /// A key that is set. Indices ascend.
    pub fn ephemeron_key(&mut self, index: u64, target: u64) -> Result<(), i32> {
        let (mut record, next_key) = self.ephemeron_part()?;
        let is_valid = index >= next_key && index < 1 << 61 && target & 7 == 0;
        if !is_valid {
            return self.fail(MISUSE);
        }
        record.number(part::KEY + (index - next_key));
        record.target(target);
        if let Some((_, next_key)) = &mut record.state.ephemeron {
            *next_key = index + 1;
        }
        self.totals.ephemeron_keys += 1;
        Ok(())
    }

    /// The block of the ephemeron's data.
    pub fn ephemeron_data(&mut self, target: u64) -> Result<(), i32> {
        let (mut record, _) = self.ephemeron_part()?;
        if target & 7 != 0 || record.state.has_data {
            return self.fail(MISUSE);
        }
        record.number(part::DATA);
        record.target(target);
        record.state.has_data = true;
        Ok(())
    }

    /// Ends the ephemeron.
    pub fn end_ephemeron(&mut self) -> Result<(), i32> {
        let (mut record, _) = self.ephemeron_part()?;
        record.number(part::LAST);
        record.state.ephemeron = None;
        Ok(())
    }

    /// A module's name.
    pub fn module(&mut self, id: u32, name: &[u8]) -> Result<(), i32> {
        let mut record = self.record(ChunkKind::Modules)?;
        record.id(u64::from(id));
        record.string(name);
        self.totals.modules += 1;
        Ok(())
    }

    /// A thread, the domain it runs on, and its name.
    pub fn thread(&mut self, id: u32, domain: u32, name: &[u8]) -> Result<(), i32> {
        let mut record = self.record(ChunkKind::Threads)?;
        record.id(u64::from(id));
        record.number(u64::from(domain));
        record.string(name);
        self.totals.threads += 1;
        Ok(())
    }

    /// Lists a code address, unless it was listed a short while ago.
    pub fn code_seen(&mut self, address: u64) -> Result<(), i32> {
        self.state()?;
        let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT_CODES.ilog2());
        let recent = self.workspace.recent_codes.get_mut(hash as usize);
        if address == 0 || recent.as_deref() == Some(&address) {
            return Ok(());
        }
        if let Some(recent) = recent {
            *recent = address;
        }
        if !self.workspace.codes.has_room(MAX_VARINT) {
            self.flush_codes()?;
        }
        difference(&mut self.workspace.codes, &mut self.records.last_code, address);
        self.totals.codes_seen += 1;
        Ok(())
    }

    /// The identifier of the custom blocks with these operations.
    pub fn custom_kind(&mut self, operations: u64, identifier: &[u8]) -> Result<(), i32> {
        let mut record = self.record(ChunkKind::CustomKinds)?;
        record.address(operations);
        record.string(identifier);
        self.totals.custom_kinds += 1;
        Ok(())
    }

    /// The name of a tag, or of a host's kind of roots.
    pub fn kind_name(
        &mut self,
        namespace: KindNamespace,
        kind: u32,
        name: &[u8],
    ) -> Result<(), i32> {
        let mut record = self.record(ChunkKind::KindNames)?;
        record.number(namespace as u64);
        record.number(u64::from(kind));
        record.string(name);
        self.totals.kind_names += 1;
        Ok(())
    }

    /// What a code address belongs to.
    pub fn name(&mut self, name: Name<'_>) -> Result<(), i32> {
        let mut record = self.record(ChunkKind::Names)?;
        record.address(name.address);
        record.string(name.function);
        record.string(name.file);
        record.number(u64::from(name.line));
        self.totals.names += 1;
        Ok(())
    }

    /// A block that a trace tracks too.
    pub fn tracked(&mut self, tracked: Tracked) -> Result<(), i32> {
        let mut record = self.aligned_record(ChunkKind::Tracked, tracked.address)?;
        record.target(tracked.address);
        record.id(tracked.id);
        self.totals.followed += 1;
        Ok(())
    }

    /// Memory outside the heap that a block keeps.
    pub fn outside_area(&mut self, area: OutsideArea) -> Result<(), i32> {
        let mut record = self.aligned_record(ChunkKind::OutsideAreas, area.block)?;
        record.number(area.kind as u64);
        record.target(area.block);
        record.id(area.operations);
        record.address(area.start);
        record.number(area.bytes);
        self.totals.outside_areas += 1;
        Ok(())
    }
}
