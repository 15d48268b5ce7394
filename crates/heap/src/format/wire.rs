//! Numbers and strings as bytes.
//!
//! A varint has 7 bits a byte, the low ones first; the top bit says that another
//! byte follows. A signed number is folded first: 0, -1, 1, -2 become 0, 1, 2, 3.

/// The most bytes of a varint.
pub(crate) const MAX_VARINT: usize = 10;

/// Folds a difference of two numbers, whatever their size.
pub(crate) fn fold(difference: u64) -> u64 {
    (difference << 1) ^ (((difference as i64) >> 63) as u64)
}

pub(crate) fn unfold(folded: u64) -> u64 {
    (folded >> 1) ^ (folded & 1).wrapping_neg()
}

/// A fixed buffer that is filled and then written out. All zeros is an empty one.
///
/// The user makes room before it puts something; a byte without room is dropped
/// and the lane says so, since the caller may not panic.
#[repr(C)]
pub(crate) struct Lane<const N: usize> {
    /// At most `N`.
    len: usize,
    /// Whether something did not fit. Sticky until `clear`.
    overflowed: bool,
    bytes: [u8; N],
}

impl<const N: usize> Lane<N> {
    pub(crate) const EMPTY: Lane<N> = Lane { len: 0, overflowed: false, bytes: [0; N] };

    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        N.saturating_sub(self.len) >= bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn overflowed(&self) -> bool {
        self.overflowed
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.overflowed = false;
    }

    #[inline]
    pub(crate) fn put_byte(&mut self, byte: u8) {
        match self.bytes.get_mut(self.len) {
            Some(slot) => {
                *slot = byte;
                self.len += 1;
            }
            None => self.overflowed = true,
        }
    }

    /// Needs room for [`MAX_VARINT`] bytes, however small the number is.
    #[inline]
    pub(crate) fn put_varint(&mut self, number: u64) {
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
    pub(crate) fn carry(&mut self) {
        for byte in self.bytes.iter_mut().take(self.len).rev() {
            let (sum, overflows) = byte.overflowing_add(1);
            *byte = sum;
            if !overflows {
                return;
            }
        }
    }

    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) {
        match self.bytes.get_mut(self.len..self.len.saturating_add(bytes.len())) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            None => self.overflowed = true,
        }
    }

    /// A length and the bytes.
    pub(crate) fn put_string(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u64);
        self.put_bytes(bytes);
    }
}

/// Reads what a lane holds. `None` means that the bytes make no sense.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has one bit left.
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn varint_u32(&mut self) -> Option<u32> {
        self.varint()?.try_into().ok()
    }

    /// A folded difference, added to `base`.
    #[inline]
    pub(crate) fn difference(&mut self, base: u64) -> Option<u64> {
        Some(base.wrapping_add(unfold(self.varint()?)))
    }

    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        if len > super::model::MAX_STRING {
            return None;
        }
        let (string, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut numbers = vec![0, 1, 127, 128, 16383, 16384, u64::MAX, u64::MAX >> 1];
        numbers.extend((0..64).map(|bit| 1u64 << bit));
        let mut lane = Box::new(Lane::<1024>::EMPTY);
        for &number in &numbers {
            lane.put_varint(number);
            lane.put_varint(fold(number));
        }
        let mut cursor = Cursor::new(lane.bytes());
        for &number in &numbers {
            assert_eq!(cursor.varint(), Some(number));
            assert_eq!(cursor.difference(0), Some(number));
        }
        assert!(cursor.is_empty());
        assert_eq!(cursor.varint(), None);
    }

    #[test]
    fn folding_keeps_small_differences_small() {
        let folded = [0i64, -1, 1, -2, 2].map(|number| fold(number as u64));
        assert_eq!(folded, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        let mut bytes = [0xff; 10];
        bytes[9] = 2;
        assert_eq!(Cursor::new(&bytes).varint(), None);
        bytes[9] = 1;
        assert_eq!(Cursor::new(&bytes).varint(), Some(u64::MAX));
        assert_eq!(Cursor::new(&[0xff; 11]).varint(), None);
    }

    #[test]
    fn a_full_lane_drops_what_does_not_fit_and_says_so() {
        let mut lane = Lane::<12>::EMPTY;
        lane.put_bytes(&[1; 12]);
        assert!(!lane.overflowed());
        lane.put_byte(1);
        assert!(lane.overflowed());
        lane.clear();
        lane.put_varint(1);
        lane.put_varint(1);
        lane.put_varint(1);
        assert!(!lane.overflowed());
        lane.put_varint(1);
        assert!(lane.overflowed());
        assert_eq!(lane.bytes(), [1, 1, 1]);
    }
}
