//! Reads numbers and strings off the front of bytes.

use crate::varint::unfold;

/// What is left of some bytes. Its functions return `None` where the bytes end too early or make no sense.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// At the start of `bytes`.
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    /// Whether nothing is left.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes are left.
    #[inline(always)]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next `count` bytes.
    #[inline(always)]
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    #[inline(always)]
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    /// A byte.
    #[inline(always)]
    pub fn u8(&mut self) -> Option<u8> {
        self.chunk::<1>().map(|[byte]| byte)
    }

    /// A number in 2 bytes, the low one first, as all of those below.
    #[inline(always)]
    pub fn u16(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_le_bytes)
    }

    /// A number in 4 bytes.
    #[inline(always)]
    pub fn u32(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_le_bytes)
    }

    /// A number in 8 bytes.
    #[inline(always)]
    pub fn u64(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes)
    }

    /// A floating-point number in 8 bytes.
    #[inline(always)]
    pub fn f64(&mut self) -> Option<f64> {
        self.chunk().map(f64::from_le_bytes)
    }

    /// A [varint](crate::varint).
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let first = self.u8()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.u8()?;
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

    /// A varint of at most 32 bits.
    pub fn varint_u32(&mut self) -> Option<u32> {
        self.varint()?.try_into().ok()
    }

    /// A folded difference, added to `base`.
    #[inline]
    pub fn difference(&mut self, base: u64) -> Option<u64> {
        Some(base.wrapping_add(unfold(self.varint()?)))
    }

    /// An integer of memtrace: 0–252 in the byte itself, else 253 → u16,
    /// 254 → i32, 255 → i64.
    #[inline(always)]
    pub fn vint(&mut self) -> Option<i64> {
        match self.u8()? {
            small @ 0..=252 => Some(i64::from(small)),
            tag => self.long_vint(tag),
        }
    }

    fn long_vint(&mut self, tag: u8) -> Option<i64> {
        match tag {
            253 => self.u16().map(i64::from),
            254 => self.chunk().map(|bytes| i64::from(i32::from_le_bytes(bytes))),
            _ => self.chunk().map(i64::from_le_bytes),
        }
    }

    /// A varint of at most `limit`, and that many bytes.
    pub fn counted(&mut self, limit: usize) -> Option<&'a [u8]> {
        let count = usize::try_from(self.varint()?).ok()?;
        if count > limit { None } else { self.take(count) }
    }

    /// What is before the next NUL, which is skipped.
    pub fn until_nul(&mut self) -> Option<&'a [u8]> {
        let text = self.take(first_nul(self.rest)?)?;
        self.u8()?;
        Some(text)
    }
}

/// The position of the first NUL. Eight bytes at a time: the lengths of names are
/// unpredictable, and so would be the exit of a loop over single bytes.
fn first_nul(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest of the high bits that are set belongs to the first NUL;
        // those above may be set by a borrow from it.
        let nuls = word.wrapping_sub(ONES) & !word & ONES << 7;
        if nuls != 0 {
            return Some(8 * at + nuls.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|&byte| byte == 0)?;
    Some(bytes.len() - rest.len() + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_past_the_end_is_none() {
        assert_eq!(Cursor::new(&[254, 1, 2, 3]).vint(), None);
        assert_eq!(Cursor::new(b"no end").until_nul(), None);
        assert_eq!(Cursor::new(&[1, 2, 3]).u32(), None);
        assert_eq!(Cursor::new(&[2, 1]).counted(9), None);
        assert_eq!(Cursor::new(&[2, 1, 1]).counted(1), None);
    }

    #[test]
    fn the_first_nul_is_found_wherever_it_is() {
        for len in 0..40 {
            for first in 0..len {
                for filler in [1, 0x7f, 0x80, 0xff] {
                    let mut bytes = vec![filler; len];
                    bytes[first] = 0;
                    assert_eq!(first_nul(&bytes), Some(first), "of {len} bytes of {filler}");
                    // The bytes after it do not matter.
                    if let Some(behind) = bytes.get_mut(first + 1) {
                        *behind = 1;
                    }
                    bytes.extend([0, 1, 0]);
                    assert_eq!(first_nul(&bytes), Some(first));
                }
            }
            assert_eq!(first_nul(&vec![0x80; len]), None);
            assert_eq!(first_nul(&vec![1; len]), None);
        }
    }
}
