//! Packets put together by hand, right or wrong.

/// When forged traces begin.
pub(crate) const START: u64 = 1_600_000_000_000_000;

const PID: u64 = 4242;

/// A packet under construction: its header's fields, and its body.
#[derive(Clone)]
pub(crate) struct Forged {
    pub(crate) magic: u32,
    /// The size it states, if not its own.
    pub(crate) bits: Option<u32>,
    pub(crate) times: (u64, u64),
    pub(crate) version: u16,
    pub(crate) pid: u64,
    pub(crate) domain: u16,
    /// Slot, prediction and code.
    pub(crate) check: (u16, u16, u64),
    pub(crate) ids: (u64, u64),
    pub(crate) body: Vec<u8>,
}

/// A sound first packet, which takes 102 bytes in version 2.
pub(crate) fn info(version: u16) -> Forged {
    let packet = packet(version).event(0).u64(0.5_f64.to_bits()).u8(64);
    let packet = packet.string(b"exe").string(b"host").string(b"").u64(PID);
    if version == 1 { packet } else { packet.string(b"") }
}

/// A packet without events.
pub(crate) fn packet(version: u16) -> Forged {
    Forged {
        magic: 0xc1fc_1fc1,
        bits: None,
        times: (START, START),
        version,
        pid: PID,
        domain: 0,
        check: (0xffff, 0, 0),
        ids: (0, 0),
        body: Vec::new(),
    }
}

/// The bytes of a trace.
pub(crate) fn trace(packets: &[Forged]) -> Vec<u8> {
    packets.iter().flat_map(Forged::bytes).collect()
}

impl Forged {
    pub(crate) fn header_len(&self) -> usize {
        if self.version == 3 { 68 } else { 66 }
    }

    /// Its size, which is also where in it the next event will begin.
    pub(crate) fn len(&self) -> usize {
        self.header_len() + self.body.len()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.magic.to_le_bytes());
        bytes.extend(self.bits.unwrap_or(8 * self.len() as u32).to_le_bytes());
        bytes.extend(self.times.0.to_le_bytes());
        bytes.extend(self.times.1.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.version.to_le_bytes());
        bytes.extend(self.pid.to_le_bytes());
        if self.version == 3 {
            bytes.extend(self.domain.to_le_bytes());
        }
        bytes.extend(self.check.0.to_le_bytes());
        bytes.extend(self.check.1.to_le_bytes());
        bytes.extend(self.check.2.to_le_bytes());
        bytes.extend(self.ids.0.to_le_bytes());
        bytes.extend(self.ids.1.to_le_bytes());
        bytes.extend(&self.body);
        bytes
    }

    pub(crate) fn ids(self, first: u64, next: u64) -> Self {
        Forged { ids: (first, next), ..self }
    }

    pub(crate) fn domain(self, domain: u16) -> Self {
        Forged { domain, ..self }
    }

    /// An event's first bytes, at the time the packet begins.
    pub(crate) fn event(self, code: u32) -> Self {
        let time = self.times.0;
        self.event_at(code, time)
    }

    pub(crate) fn event_at(self, code: u32, time: u64) -> Self {
        self.u32(code << 25 | (time % (1 << 25)) as u32)
    }

    /// A whole short allocation of one word, of which the entries follow.
    pub(crate) fn short(self, prefix: u8, entries: u8) -> Self {
        self.event(101).u8(prefix).u8(entries)
    }

    /// The same in the long form.
    pub(crate) fn long(self, prefix: i64, entries: u16) -> Self {
        self.event(2).u8(1).u8(1).u8(0).vint(prefix).u16(entries)
    }

    pub(crate) fn miss(self, slot: u16, code: u64) -> Self {
        self.u16(slot << 2 | 3).u64(code)
    }

    /// A hit with two or more predictions.
    pub(crate) fn hit(self, slot: u16, predictions: u8) -> Self {
        self.u16(slot << 2 | 2).u8(predictions)
    }

    /// A code without locations.
    pub(crate) fn location(self, code: u64) -> Self {
        self.event(1).u64(code).u8(0)
    }

    pub(crate) fn u8(mut self, value: u8) -> Self {
        self.body.push(value);
        self
    }

    pub(crate) fn u16(mut self, value: u16) -> Self {
        self.body.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.body.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.body.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn string(mut self, text: &[u8]) -> Self {
        self.body.extend(text);
        self.u8(0)
    }

    /// In the longest form, which holds any number.
    pub(crate) fn vint(self, value: i64) -> Self {
        self.u8(255).u64(value as u64)
    }
}
