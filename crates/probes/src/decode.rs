//! From bytes to events. Bytes are hostile: every length is checked, and memory is bounded by
//! one packet.

use std::fmt;

use heaptap_codec::Cursor;

use crate::event::Timed;
use crate::fields::{Field as _, OVERRUN};
use crate::packet::{HEADER, MAGIC, PACKET_BYTES, UUID, VERSION};

/// Why a sidecar cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where the packet begins that is damaged, in bytes from the start of the file.
    pub offset: u64,
    /// What is wrong.
    pub what: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.what)
    }
}

impl std::error::Error for Damage {}

/// Reads a sidecar in pieces of any length, so also one that is still written: bytes go in by
/// [`feed`](Decoder::feed), and [`next`](Decoder::next_event) returns `None` until a packet is whole.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Bytes that were fed. Those before `begin` are decoded: they are dropped when more is fed, not packet by
    /// packet, since packets are short.
    bytes: Vec<u8>,
    /// Where the current packet begins, in `bytes` and in the file.
    begin: usize,
    offset: u64,
    /// How far the current packet was decoded, and where it ends; both in `bytes`.
    at: usize,
    packet_end: usize,
    /// The process of the first packet. A forked child's packets are skipped.
    pid: Option<u64>,
    damage: Option<Damage>,
}

impl Decoder {
    /// At the start of a file.
    #[must_use]
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Takes the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.damage.is_some() {
            return;
        }
        let decoded = std::mem::take(&mut self.begin);
        self.bytes.drain(..decoded);
        if self.packet_end > 0 {
            self.at -= decoded;
            self.packet_end -= decoded;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next event. `None`: more bytes are needed.
    ///
    /// # Errors
    /// The packet is damaged. The same error is returned from then on.
    pub fn next_event(&mut self) -> Result<Option<Timed>, Damage> {
        if let Some(damage) = &self.damage {
            return Err(damage.clone());
        }
        let result = self.decode();
        // The packet may have changed meanwhile.
        let result = result.map_err(|what| Damage { offset: self.offset, what });
        if let Err(damage) = &result {
            self.damage = Some(damage.clone());
            (self.bytes, self.begin) = (Vec::new(), 0);
        }
        result
    }

    /// How many bytes were fed that belong to a packet which is not whole.
    #[must_use]
    pub fn pending(&self) -> usize {
        if self.packet_end == 0 { self.bytes.len() - self.begin } else { 0 }
    }

    fn decode(&mut self) -> Result<Option<Timed>, &'static str> {
        loop {
            if self.packet_end == 0 && !self.open_packet()? {
                return Ok(None);
            }
            if self.at < self.packet_end {
                let rest = self.bytes.get(self.at..self.packet_end).unwrap_or_default();
                let mut input = Cursor::new(rest);
                let timed = Timed::take(&mut input)?;
                self.at = self.packet_end - input.remaining();
                return Ok(Some(timed));
            }
            self.offset += (self.packet_end - self.begin) as u64;
            self.begin = self.packet_end;
            (self.at, self.packet_end) = (0, 0);
        }
    }

    /// Checks the header of the next packet, if that packet is whole.
    fn open_packet(&mut self) -> Result<bool, &'static str> {
        let rest = self.bytes.get(self.begin..).unwrap_or_default();
        let input = &mut Cursor::new(rest);
        if rest.len() < HEADER {
            return Ok(false);
        }
        if u32::take(input)? != MAGIC {
            return Err("not a packet of CTF");
        }
        if input.take(16).ok_or(OVERRUN)? != UUID {
            return Err("not a sidecar of heaptap (its name should end in .probes)");
        }
        let (bits, content) = (u32::take(input)?, u32::take(input)?);
        let bytes = (bits / 8) as usize;
        if bits != content || bits % 8 != 0 || !(HEADER..=PACKET_BYTES).contains(&bytes) {
            return Err("a packet of an impossible size");
        }
        let _times = (u64::take(input)?, u64::take(input)?);
        let pid = u64::take(input)?;
        if u16::take(input)? != VERSION {
            return Err("written by a newer heaptap");
        }
        if rest.len() < bytes {
            return Ok(false);
        }
        self.packet_end = self.begin + bytes;
        let foreign = *self.pid.get_or_insert(pid) != pid;
        self.at = if foreign { self.packet_end } else { self.begin + HEADER };
        Ok(true)
    }
}
