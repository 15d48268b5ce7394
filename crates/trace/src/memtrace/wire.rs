//! Writes little-endian numbers, variable-length integers and NUL-terminated strings.
//!
//! They go into a [`Packet`], whose capacity is that of a packet; callers
//! check for room beforehand. `heaptap_codec::Cursor` reads them.

use crate::memtrace::rules::MAX_PACKET;
use crate::memtrace::zeroed::{UNTOUCHED, boxed};
use crate::model::locate::until_nul;

/// The bytes of a packet under construction.
///
/// Storage is one fixed block. A write that would not fit is dropped and marks
/// the packet as overfull. The encoder closes packets before that can happen, and
/// its tests assert it; no input causes a panic.
pub(crate) struct Packet {
    /// Only the first [`MAX_PACKET`] bytes are used.
    bytes: Box<[u8; UNTOUCHED]>,
    len: usize,
    overfull: bool,
}

impl Packet {
    pub(crate) fn new() -> Self {
        Packet { bytes: boxed(), len: 0, overfull: false }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.overfull = false;
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn room(&self) -> usize {
        MAX_PACKET - self.len
    }

    pub(crate) fn is_overfull(&self) -> bool {
        self.overfull
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }

    /// The next `N` bytes of room, if there is that much. [`Packet::extend`] adds
    /// what was written there.
    #[inline(always)]
    pub(crate) fn window<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        self.behind()?.first_chunk_mut()
    }

    /// All of the room that is left.
    #[inline(always)]
    pub(crate) fn behind(&mut self) -> Option<&mut [u8]> {
        self.bytes.get_mut(self.len..MAX_PACKET)
    }

    /// Adds the first `count` bytes of the room.
    #[inline(always)]
    pub(crate) fn extend(&mut self, count: usize) {
        self.len = MAX_PACKET.min(self.len.saturating_add(count));
    }

    #[inline(always)]
    fn put_chunk<const N: usize>(&mut self, value: [u8; N]) {
        match self.window::<N>() {
            Some(place) => {
                *place = value;
                self.len += N;
            }
            None => self.overfull = true,
        }
    }

    #[inline(always)]
    pub(crate) fn u8(&mut self, value: u8) {
        self.put_chunk([value]);
    }

    #[inline(always)]
    pub(crate) fn u16(&mut self, value: u16) {
        self.put_chunk(value.to_le_bytes());
    }

    #[inline(always)]
    pub(crate) fn u32(&mut self, value: u32) {
        self.put_chunk(value.to_le_bytes());
    }

    #[inline(always)]
    pub(crate) fn u64(&mut self, value: u64) {
        self.put_chunk(value.to_le_bytes());
    }

    /// The shortest of the forms that [`Cursor::vint`](heaptap_codec::Cursor::vint) reads, as the original
    /// writer chooses it.
    #[inline(always)]
    pub(crate) fn vint(&mut self, value: i64) {
        match u8::try_from(value) {
            Ok(small @ 0..=252) => self.u8(small),
            _ => self.long_vint(value),
        }
    }

    fn long_vint(&mut self, value: i64) {
        if let Ok(value) = u16::try_from(value) {
            self.u8(253);
            self.u16(value);
        } else if let Ok(value) = i32::try_from(value) {
            self.u8(254);
            self.put_chunk(value.to_le_bytes());
        } else {
            self.u8(255);
            self.put_chunk(value.to_le_bytes());
        }
    }

    /// Up to the first NUL, and one NUL.
    pub(crate) fn string(&mut self, text: &[u8]) {
        let text = until_nul(text);
        match self.behind().and_then(|room| room.get_mut(..=text.len())) {
            Some(place) => {
                if let Some((nul, body)) = place.split_last_mut() {
                    body.copy_from_slice(text);
                    *nul = 0;
                }
                self.len += text.len() + 1;
            }
            None => self.overfull = true,
        }
    }

    /// Overwrites the bytes at `at`.
    #[inline(always)]
    pub(crate) fn patch<const N: usize>(&mut self, at: usize, value: [u8; N]) {
        match self.bytes.get_mut(at..MAX_PACKET).and_then(|b| b.first_chunk_mut::<N>()) {
            Some(place) => *place = value,
            None => self.overfull = true,
        }
    }
}

/// The vint of a number as a little-endian word, and its length in bytes; `None`
/// if that is more than 5.
#[inline(always)]
pub(crate) fn short_vint(value: u64) -> Option<(u64, usize)> {
    match value {
        0..=252 => Some((value, 1)),
        253..=0xffff => Some((253 | value << 8, 3)),
        0x1_0000..=0x7fff_ffff => Some((254 | value << 8, 5)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_codec::Cursor;

    #[test]
    fn vint_takes_the_shortest_form_at_every_limit() {
        let cases: [(i64, usize); 11] = [
            (0, 1),
            (252, 1),
            (253, 3),
            (0xffff, 3),
            (0x1_0000, 5),
            (i64::from(i32::MAX), 5),
            (i64::from(i32::MAX) + 1, 9),
            (-1, 5),
            (i64::from(i32::MIN), 5),
            (i64::from(i32::MIN) - 1, 9),
            (i64::MAX, 9),
        ];
        for (value, size) in cases {
            let mut packet = Packet::new();
            packet.vint(value);
            assert_eq!(packet.len(), size, "size of {value}");
            assert_eq!(Cursor::new(packet.as_slice()).vint(), Some(value));
        }
    }

    #[test]
    fn a_short_vint_is_a_vint() {
        assert_eq!(short_vint(1 << 31), None);
        for value in [0, 1, 252, 253, 0xffff, 0x1_0000, (1 << 31) - 1] {
            let mut packet = Packet::new();
            packet.vint(value as i64);
            let (word, size) = short_vint(value).unwrap();
            assert_eq!(word.to_le_bytes()[..size], *packet.as_slice(), "{value}");
        }
    }

    #[test]
    fn a_string_ends_at_its_first_nul() {
        let mut packet = Packet::new();
        packet.string(b"ab\0cd");
        packet.string(b"\xff\xfe");
        let mut bytes = Cursor::new(packet.as_slice());
        assert_eq!(bytes.until_nul(), Some(&b"ab"[..]));
        assert_eq!(bytes.until_nul(), Some(&b"\xff\xfe"[..]));
        assert_eq!(bytes.remaining(), 0);
    }

    #[test]
    fn a_full_packet_accepts_nothing_and_is_overfull() {
        let mut packet = Packet::new();
        packet.string(&[b'x'; MAX_PACKET - 2]);
        assert!(!packet.is_overfull());
        packet.u16(7);
        assert!(packet.is_overfull());
        assert_eq!(packet.len(), MAX_PACKET - 1);
    }
}
