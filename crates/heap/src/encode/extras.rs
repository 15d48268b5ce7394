//! What few blocks have: code addresses, custom operations, contents.

use heaptap_codec::{
    Buffer,
    varint::{MAX_VARINT, fold},
};

use crate::chunk::Stream;
use crate::codes::extra;
use crate::model::MAX_STRING;
use crate::shape::MAX_SMALL_WORDS;

const EXTRAS: usize = 39 << 10;

/// What a block may add at most: a code address for each word, a custom block, a string and
/// the end.
const EXTRAS_OF_A_BLOCK: usize =
    MAX_SMALL_WORDS as usize * (1 + 2 * MAX_VARINT) + 4 * (1 + 2 * MAX_VARINT) + MAX_STRING;

/// The stream of extras. All zeros is valid.
#[repr(C)]
pub(super) struct Extras {
    buffer: Buffer<EXTRAS>,
    /// The code address and the operations before.
    last_code: u64,
    last_operations: u64,
}

impl Extras {
    pub(super) const EMPTY: Extras =
        Extras { buffer: Buffer::EMPTY, last_code: 0, last_operations: 0 };

    pub(super) fn clear(&mut self) {
        self.buffer.clear();
        self.last_code = 0;
        self.last_operations = 0;
    }

    pub(super) fn has_room(&self) -> bool {
        self.buffer.has_room(EXTRAS_OF_A_BLOCK)
    }

    pub(super) fn overflowed(&self) -> bool {
        self.buffer.overflowed()
    }

    pub(super) fn stream(&self) -> Stream<'_> {
        Stream::new(self.buffer.bytes())
    }

    pub(super) fn put_code(&mut self, field: u64, address: u64) {
        self.buffer.put_byte(extra::CODE);
        self.buffer.put_varint(field);
        self.buffer.put_varint(fold(address.wrapping_sub(self.last_code)));
        self.last_code = address;
    }

    pub(super) fn put_custom(&mut self, operations: u64, outside: u64) {
        self.buffer.put_byte(extra::CUSTOM);
        self.buffer.put_varint(fold(operations.wrapping_sub(self.last_operations)));
        self.buffer.put_varint(outside);
        self.last_operations = operations;
    }

    pub(super) fn put_string(&mut self, bytes: &[u8]) {
        self.buffer.put_byte(extra::STRING);
        self.buffer.put_string(bytes.get(..MAX_STRING).unwrap_or(bytes));
    }

    /// Ends the extras of a block.
    pub(super) fn put_last(&mut self) {
        self.buffer.put_byte(extra::LAST);
    }
}
