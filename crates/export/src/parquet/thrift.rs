//! Thrift's compact protocol, as far as the metadata of Parquet needs it.
//!
//! Each field is written with the difference of its number from the one before it, which is
//! between 1 and 15 in all of Parquet's structures.

/// The types of fields.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A structure being written.
#[derive(Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    fn field(mut self, number: u8, kind: u8) -> Self {
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
        self
    }

    pub(super) fn bool(self, number: u8, value: bool) -> Self {
        self.field(number, if value { TRUE } else { FALSE })
    }

    pub(super) fn i32(self, number: u8, value: i32) -> Self {
        let mut this = self.field(number, I32);
        varint(&mut this.bytes, zigzag(i64::from(value)));
        this
    }

    pub(super) fn i64(self, number: u8, value: i64) -> Self {
        let mut this = self.field(number, I64);
        varint(&mut this.bytes, zigzag(value));
        this
    }

    pub(super) fn binary(self, number: u8, value: &[u8]) -> Self {
        let mut this = self.field(number, BINARY);
        binary(&mut this.bytes, value);
        this
    }

    pub(super) fn structure(self, number: u8, value: Struct) -> Self {
        let mut this = self.field(number, STRUCT);
        this.bytes.extend(value.finish());
        this
    }

    pub(super) fn structures(
        self,
        number: u8,
        values: impl ExactSizeIterator<Item = Struct>,
    ) -> Self {
        let mut this = self.list(number, STRUCT, values.len());
        values.for_each(|value| this.bytes.extend(value.finish()));
        this
    }

    pub(super) fn binaries<'a>(
        self,
        number: u8,
        values: impl ExactSizeIterator<Item = &'a str>,
    ) -> Self {
        let mut this = self.list(number, BINARY, values.len());
        values.for_each(|value| binary(&mut this.bytes, value.as_bytes()));
        this
    }

    pub(super) fn i32s(self, number: u8, values: &[i32]) -> Self {
        let mut this = self.list(number, I32, values.len());
        values.iter().for_each(|&value| varint(&mut this.bytes, zigzag(i64::from(value))));
        this
    }

    fn list(self, number: u8, kind: u8, len: usize) -> Self {
        let mut this = self.field(number, LIST);
        match u8::try_from(len) {
            Ok(short @ 0..15) => this.bytes.push(short << 4 | kind),
            _ => {
                this.bytes.push(0xf0 | kind);
                varint(&mut this.bytes, len as u64);
            }
        }
        this
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// Seven bits in each byte, the lowest first.
pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn binary(bytes: &mut Vec<u8>, value: &[u8]) {
    varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from the description of the protocol.
    #[test]
    fn a_structure_is_as_described() {
        let inner = Struct::default().bool(1, true).bool(2, false);
        let bytes = Struct::default()
            .i32(1, -1)
            .i64(3, 300)
            .binary(4, b"ab")
            .structure(5, inner)
            .i32s(7, &[1; 15])
            .finish();
        let mut expected = vec![0x15, 1, 0x26, 0xd8, 4, 0x18, 2, b'a', b'b', 0x1c, 0x11, 0x12, 0];
        expected.extend([0x29, 0xf5, 15]);
        expected.extend([2; 15]);
        expected.push(0);
        assert_eq!(bytes, expected);
    }
}
