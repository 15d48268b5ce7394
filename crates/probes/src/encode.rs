//! From events to packets.

use crate::event::Timed;
use crate::fields::Field as _;
use crate::packet::{HEADER, MAGIC, MAX_EVENT, PACKET_BYTES, UUID, VERSION};

/// Collects events in a packet, which the caller takes and writes with one `write`.
#[derive(Debug)]
pub struct Encoder {
    pid: u64,
    bytes: Vec<u8>,
    begin: u64,
    end: u64,
}

impl Encoder {
    /// For the sidecar of this process.
    #[must_use]
    pub fn new(pid: u64) -> Encoder {
        Encoder { pid, bytes: Vec::new(), begin: 0, end: 0 }
    }

    /// The bytes of the packet so far.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.bytes.len()
    }

    /// Adds an event. Returns a packet that has to be written if there was no room.
    #[must_use = "the packet has to be written"]
    pub fn add(&mut self, timed: &Timed) -> Option<Vec<u8>> {
        let full = self.bytes.len() + MAX_EVENT > PACKET_BYTES;
        let packet = if full { self.take() } else { None };
        if self.bytes.is_empty() {
            self.bytes.resize(HEADER, 0);
            (self.begin, self.end) = (timed.time, timed.time);
        }
        // A slice is known when it ends: its time is earlier than that of events before it.
        self.begin = self.begin.min(timed.time);
        self.end = self.end.max(timed.time);
        timed.put(&mut self.bytes);
        packet
    }

    /// The packet of all events since the last one. `None` if there are none.
    #[must_use = "the packet has to be written"]
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if self.bytes.is_empty() {
            return None;
        }
        let mut packet = std::mem::take(&mut self.bytes);
        let bits = (packet.len() * 8) as u32;
        let mut header = Vec::with_capacity(HEADER);
        header.extend(MAGIC.to_le_bytes());
        header.extend(UUID);
        header.extend(bits.to_le_bytes());
        header.extend(bits.to_le_bytes());
        header.extend(self.begin.to_le_bytes());
        header.extend(self.end.to_le_bytes());
        header.extend(self.pid.to_le_bytes());
        header.extend(VERSION.to_le_bytes());
        debug_assert_eq!(header.len(), HEADER);
        for (to, from) in packet.iter_mut().zip(header) {
            *to = from;
        }
        Some(packet)
    }
}
