//! A buffer of a fixed size, for those who may not allocate.

use crate::varint::MAX_VARINT;

/// A fixed buffer that is filled and then written out. All zeros is an empty one.
///
/// The user makes room before it puts something; a byte without room is dropped
/// and the buffer says so, since the caller may not panic.
#[repr(C)]
pub struct Buffer<const N: usize> {
    /// At most `N`.
    len: usize,
    /// Whether something did not fit. Sticky until `clear`.
    overflowed: bool,
    bytes: [u8; N],
}

impl<const N: usize> Buffer<N> {
    /// An empty one.
    pub const EMPTY: Buffer<N> = Buffer { len: 0, overflowed: false, bytes: [0; N] };

    /// Whether that many bytes fit.
    pub fn has_room(&self, bytes: usize) -> bool {
        N.saturating_sub(self.len) >= bytes
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether something did not fit since the last `clear`.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// What it holds.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.len = 0;
        self.overflowed = false;
    }

    /// Appends a byte.
    #[inline]
    pub fn put_byte(&mut self, byte: u8) {
        match self.bytes.get_mut(self.len) {
            Some(slot) => {
                *slot = byte;
                self.len += 1;
            }
            None => self.overflowed = true,
        }
    }

    /// Appends a varint. Needs room for [`MAX_VARINT`] bytes, however small the number is.
    #[inline]
    pub fn put_varint(&mut self, number: u64) {
        let rest = self.bytes.get_mut(self.len..).unwrap_or_default();
        let Some(room) = rest.first_chunk_mut::<MAX_VARINT>() else {
            self.overflowed = true;
            return;
        };
        let mut number = number;
        for (index, slot) in room.iter_mut().enumerate() {
            if number < 0x80 {
                *slot = number as u8;
                self.len += index + 1;
                return;
            }
            *slot = number as u8 | 0x80;
            number >>= 7;
        }
    }

    /// Adds one to the last byte, and to those before it as long as they overflow.
    pub fn carry(&mut self) {
        for byte in self.bytes.iter_mut().take(self.len).rev() {
            let (sum, overflows) = byte.overflowing_add(1);
            *byte = sum;
            if !overflows {
                return;
            }
        }
    }

    /// Appends bytes: all of them or none.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        match self.bytes.get_mut(self.len..self.len.saturating_add(bytes.len())) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            None => self.overflowed = true,
        }
    }

    /// A length and the bytes.
    pub fn put_string(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u64);
        self.put_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_buffer_drops_what_does_not_fit_and_says_so() {
        let mut buffer = Buffer::<12>::EMPTY;
        buffer.put_bytes(&[1; 12]);
        assert!(!buffer.overflowed());
        buffer.put_byte(1);
        assert!(buffer.overflowed());
        buffer.clear();
        buffer.put_varint(1);
        buffer.put_varint(1);
        buffer.put_varint(1);
        assert!(!buffer.overflowed());
        buffer.put_varint(1);
        assert!(buffer.overflowed());
        assert_eq!(buffer.bytes(), [1, 1, 1]);
    }

    /// A carry runs through bytes of 255.
    #[test]
    fn carries_go_back_into_the_buffer() {
        let mut buffer = Buffer::<64>::EMPTY;
        buffer.put_bytes(&[7, 255, 255]);
        buffer.carry();
        assert_eq!(buffer.bytes(), [8, 0, 0]);
    }
}
