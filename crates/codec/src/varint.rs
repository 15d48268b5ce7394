//! Integers in as few bytes as they need.
//!
//! A varint has 7 bits a byte, the low ones first; the top bit says that another
//! byte follows (LEB128). A signed number is folded first: 0, -1, 1, -2 become 0, 1, 2, 3.
//! The integers of memtrace are others: see [`Cursor::vint`](crate::Cursor::vint).

/// The most bytes of a varint.
pub const MAX_VARINT: usize = 10;

/// Folds a difference of two numbers, whatever their size.
#[inline]
pub fn fold(difference: u64) -> u64 {
    (difference << 1) ^ (((difference as i64) >> 63) as u64)
}

/// The difference that was folded.
#[inline]
pub fn unfold(folded: u64) -> u64 {
    (folded >> 1) ^ (folded & 1).wrapping_neg()
}

/// Appends a varint.
pub fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Cursor};

    #[test]
    fn numbers_come_back() {
        let mut numbers = vec![0, 1, 127, 128, 16383, 16384, u64::MAX, u64::MAX >> 1];
        numbers.extend((0..64).map(|bit| 1u64 << bit));
        let mut buffer = Box::new(Buffer::<1024>::EMPTY);
        let mut vector = Vec::new();
        for &number in &numbers {
            for number in [number, fold(number)] {
                buffer.put_varint(number);
                put_varint(&mut vector, number);
            }
        }
        assert_eq!(buffer.bytes(), vector);
        let mut cursor = Cursor::new(&vector);
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
}
