//! From bytes to events. Bytes are hostile: every length is checked, and memory is bounded by
//! one packet.

use std::fmt;

use heaptap_codec::Cursor;

use crate::event::{
    Event, Heap, Pauses, ProbeKind, SliceKind, Spacing, Start, System, TagSize, Timed,
};
use crate::packet::{HEADER, MAGIC, NONE, PACKET_BYTES, UUID, VERSION, id};
use crate::{MAX_PROBES, MAX_TEXT};

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
                let mut input = In(Cursor::new(rest));
                let timed = input.event()?;
                self.at = self.packet_end - input.0.remaining();
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
        let mut input = In(Cursor::new(rest));
        if rest.len() < HEADER {
            return Ok(false);
        }
        if input.u32()? != MAGIC {
            return Err("not a packet of CTF");
        }
        if input.0.take(16).ok_or(OVERRUN)? != UUID {
            return Err("not a sidecar of heaptap (its name should end in .probes)");
        }
        let (bits, content) = (input.u32()?, input.u32()?);
        let bytes = (bits / 8) as usize;
        if bits != content || bits % 8 != 0 || !(HEADER..=PACKET_BYTES).contains(&bytes) {
            return Err("a packet of an impossible size");
        }
        let _times = (input.u64()?, input.u64()?);
        let pid = input.u64()?;
        if input.u16()? != VERSION {
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

const OVERRUN: &str = "an event ends behind its packet";

/// What is left of a packet.
struct In<'a>(Cursor<'a>);

impl In<'_> {
    fn event(&mut self) -> Result<Timed, &'static str> {
        let number = self.u8()?;
        let time = self.u64()?;
        let event = match number {
            id::START => Event::Start(Start {
                trace_start: self.u64()?,
                pid: self.u64()?,
                word_size: self.u8()?,
                host: self.text()?,
                program: self.text()?,
            }),
            id::PROBE => {
                Event::Probe { probe: self.probe()?, kind: self.kind()?, name: self.text()? }
            }
            id::COUNT => Event::Count { probe: self.probe()?, total: self.u64()? },
            id::TIMER => Event::Timer {
                probe: self.probe()?,
                total_ns: self.u64()?,
                runs: self.u64()?,
                running: self.u32()?,
            },
            id::VALUE => Event::Value {
                probe: self.probe()?,
                last: self.f64()?,
                least: self.f64()?,
                greatest: self.f64()?,
            },
            id::TEXT => Event::Text { probe: self.probe()?, text: self.text()? },
            id::TAG => Event::Tag {
                probe: self.probe()?,
                live: self.u64()?,
                marked: self.u64()?,
                size: self.size()?,
            },
            id::LOG => Event::Log { text: self.text()? },
            id::PAUSE => Event::Pause { text: self.text()? },
            id::LOST => Event::Lost { logs: self.u64()?, slices: self.u64()? },
            id::SLICE => {
                Event::Slice { kind: self.slice_kind()?, domain: self.u16()?, ns: self.u64()? }
            }
            id::PAUSES => Event::Pauses(Pauses {
                kind: self.slice_kind()?,
                count: self.u64()?,
                total_ns: self.u64()?,
                longest_ns: self.u64()?,
            }),
            id::HEAP => Event::Heap(self.heap()?),
            id::SYSTEM => Event::System(self.system()?),
            id::PRESSURE => Event::Pressure { headroom: self.u64()? },
            id::END => Event::End,
            id::SPACING => Event::Spacing(Spacing { until: self.u64()?, ns: self.u64()? }),
            id::REPLACED => Event::Replaced,
            _ => return Err("an event that this heaptap does not know"),
        };
        Ok(Timed { time, event })
    }

    // Fields are evaluated in the order in which they are written.
    fn heap(&mut self) -> Result<Heap, &'static str> {
        Ok(Heap {
            minor_words: self.optional()?,
            promoted_words: self.optional()?,
            major_words: self.optional()?,
            minor_collections: self.optional()?,
            major_collections: self.optional()?,
            compactions: self.optional()?,
            heap_words: self.optional()?,
            live_words: self.optional()?,
        })
    }

    fn system(&mut self) -> Result<System, &'static str> {
        Ok(System {
            rss: self.optional()?,
            cgroup_usage: self.optional()?,
            cgroup_limit: self.optional()?,
            threads: self.optional()?,
            domains: self.optional()?,
        })
    }

    fn size(&mut self) -> Result<TagSize, &'static str> {
        match (self.u8()?, self.u64()?) {
            (0, _) => Ok(TagSize::Unknown),
            (1, words) => Ok(TagSize::Exactly(words)),
            (2, words) => Ok(TagSize::AtLeast(words)),
            _ => Err("a tag's size of an unknown kind"),
        }
    }

    fn probe(&mut self) -> Result<u32, &'static str> {
        let probe = self.u32()?;
        if (probe as usize) < MAX_PROBES {
            Ok(probe)
        } else {
            Err("a probe with too high a number")
        }
    }

    fn kind(&mut self) -> Result<ProbeKind, &'static str> {
        ProbeKind::from_number(u32::from(self.u8()?)).ok_or("a probe of an unknown kind")
    }

    fn slice_kind(&mut self) -> Result<SliceKind, &'static str> {
        SliceKind::from_number(self.u8()?).ok_or("a slice of an unknown kind")
    }

    /// Bytes that are no UTF-8 are replaced: names come from the program.
    fn text(&mut self) -> Result<String, &'static str> {
        let length = usize::from(self.u16()?);
        if length > MAX_TEXT {
            return Err("a text that is too long");
        }
        Ok(String::from_utf8_lossy(self.0.take(length).ok_or(OVERRUN)?).into_owned())
    }

    fn optional(&mut self) -> Result<Option<u64>, &'static str> {
        Ok(Some(self.u64()?).filter(|&value| value != NONE))
    }

    fn u8(&mut self) -> Result<u8, &'static str> {
        self.0.u8().ok_or(OVERRUN)
    }

    fn u16(&mut self) -> Result<u16, &'static str> {
        self.0.u16().ok_or(OVERRUN)
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        self.0.u32().ok_or(OVERRUN)
    }

    fn u64(&mut self) -> Result<u64, &'static str> {
        self.0.u64().ok_or(OVERRUN)
    }

    fn f64(&mut self) -> Result<f64, &'static str> {
        self.0.f64().ok_or(OVERRUN)
    }
}
