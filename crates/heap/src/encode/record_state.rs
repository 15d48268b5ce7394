//! What a record is coded against: the one before it in its chunk.

use heaptap_codec::{Buffer, varint::fold};

use crate::chunk::ChunkKind;
use crate::model::MAX_STRING;

/// What records are coded against.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordState {
    /// The kind of the records that wait.
    pub(super) kind: Option<ChunkKind>,
    /// Of the record before in its chunk: addresses in words or bytes, ids.
    pub(super) last_target: u64,
    pub(super) last_address: u64,
    pub(super) last_id: u64,
    pub(super) last_number: u64,
    /// The code address listed before in its chunk.
    pub(super) last_code: u64,
    /// The ephemeron that is being described: its address, and the least next key.
    pub(super) ephemeron: Option<(u64, u64)>,
    pub(super) has_data: bool,
}

impl RecordState {
    pub(super) fn is_open(&self) -> bool {
        self.ephemeron.is_some()
    }

    pub(super) fn restart(&mut self) {
        self.last_target = 0;
        self.last_address = 0;
        self.last_id = 0;
        self.last_number = 0;
    }
}

/// What a record is written to.
pub(super) struct Record<'a> {
    pub(super) buffer: &'a mut Buffer<{ 64 << 10 }>,
    pub(super) state: &'a mut RecordState,
}

impl Record<'_> {
    pub(super) fn number(&mut self, number: u64) {
        self.buffer.put_varint(number);
    }

    pub(super) fn string(&mut self, bytes: &[u8]) {
        self.buffer.put_string(bytes.get(..MAX_STRING).unwrap_or(bytes));
    }

    /// The address of a block. Divided by 8, as the caller has checked.
    pub(super) fn target(&mut self, address: u64) {
        difference(self.buffer, &mut self.state.last_target, address >> 3);
    }

    pub(super) fn address(&mut self, address: u64) {
        difference(self.buffer, &mut self.state.last_address, address);
    }

    pub(super) fn id(&mut self, id: u64) {
        difference(self.buffer, &mut self.state.last_id, id);
    }

    pub(super) fn near_number(&mut self, number: u64) {
        difference(self.buffer, &mut self.state.last_number, number);
    }
}

pub(super) fn difference<const N: usize>(buffer: &mut Buffer<N>, last: &mut u64, number: u64) {
    buffer.put_varint(fold(number.wrapping_sub(*last)));
    *last = number;
}
