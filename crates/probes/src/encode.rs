//! From events to packets.

use crate::MAX_TEXT;
use crate::event::{Event, Heap, System, TagSize, Timed};
use crate::packet::{HEADER, MAGIC, MAX_EVENT, NONE, PACKET_BYTES, UUID, VERSION, id};

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
        let mut out = Out(&mut self.bytes);
        out.event(timed);
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

struct Out<'a>(&'a mut Vec<u8>);

impl Out<'_> {
    fn event(&mut self, timed: &Timed) {
        let number = number(&timed.event);
        self.u8(number).u64(timed.time);
        match &timed.event {
            Event::Start(start) => {
                self.u64(start.trace_start).u64(start.pid).u8(start.word_size);
                self.text(&start.host).text(&start.program);
            }
            Event::Probe { probe, kind, name } => _ = self.u32(*probe).u8(kind.number()).text(name),
            Event::Count { probe, total } => _ = self.u32(*probe).u64(*total),
            Event::Timer { probe, total_ns, runs, running } => {
                self.u32(*probe).u64(*total_ns).u64(*runs).u32(*running);
            }
            Event::Value { probe, last, least, greatest } => {
                self.u32(*probe).f64(*last).f64(*least).f64(*greatest);
            }
            Event::Text { probe, text } => _ = self.u32(*probe).text(text),
            Event::Tag { probe, live, marked, size } => {
                let (how, words) = match size {
                    TagSize::Unknown => (0, 0),
                    TagSize::Exactly(words) => (1, *words),
                    TagSize::AtLeast(words) => (2, *words),
                };
                self.u32(*probe).u64(*live).u64(*marked).u8(how).u64(words);
            }
            Event::Log { text } | Event::Pause { text } => _ = self.text(text),
            Event::Lost { logs, slices } => _ = self.u64(*logs).u64(*slices),
            Event::Slice { kind, domain, ns } => _ = self.u8(kind.number()).u16(*domain).u64(*ns),
            Event::Pauses(pauses) => {
                self.u8(pauses.kind.number()).u64(pauses.count);
                self.u64(pauses.total_ns).u64(pauses.longest_ns);
            }
            Event::Heap(heap) => heap_fields(heap).into_iter().for_each(|n| _ = self.optional(n)),
            Event::System(system) => {
                system_fields(system).into_iter().for_each(|n| _ = self.optional(n));
            }
            Event::Pressure { headroom } => _ = self.u64(*headroom),
            Event::Spacing(spacing) => _ = self.u64(spacing.until).u64(spacing.ns),
            Event::End | Event::Replaced => {}
        }
    }

    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u8(&mut self, value: u8) -> &mut Self {
        self.put(&[value])
    }

    fn u16(&mut self, value: u16) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    fn f64(&mut self, value: f64) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    fn optional(&mut self, value: Option<u64>) -> &mut Self {
        self.u64(value.unwrap_or(NONE))
    }

    fn text(&mut self, text: &str) -> &mut Self {
        let text = cut(text);
        self.u16(text.len() as u16).put(text.as_bytes())
    }
}

/// The first [`MAX_TEXT`] bytes, or a few less: no character is cut in two.
fn cut(text: &str) -> &str {
    let mut length = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    text.get(..length).unwrap_or("")
}

fn number(event: &Event) -> u8 {
    match event {
        Event::Start(_) => id::START,
        Event::Probe { .. } => id::PROBE,
        Event::Count { .. } => id::COUNT,
        Event::Timer { .. } => id::TIMER,
        Event::Value { .. } => id::VALUE,
        Event::Text { .. } => id::TEXT,
        Event::Tag { .. } => id::TAG,
        Event::Log { .. } => id::LOG,
        Event::Pause { .. } => id::PAUSE,
        Event::Lost { .. } => id::LOST,
        Event::Slice { .. } => id::SLICE,
        Event::Pauses(_) => id::PAUSES,
        Event::Heap(_) => id::HEAP,
        Event::System(_) => id::SYSTEM,
        Event::Pressure { .. } => id::PRESSURE,
        Event::End => id::END,
        Event::Spacing(_) => id::SPACING,
        Event::Replaced => id::REPLACED,
    }
}

fn heap_fields(heap: &Heap) -> [Option<u64>; 8] {
    let Heap { minor_words, promoted_words, major_words, minor_collections, .. } = *heap;
    let Heap { major_collections, compactions, heap_words, live_words, .. } = *heap;
    [
        minor_words,
        promoted_words,
        major_words,
        minor_collections,
        major_collections,
        compactions,
        heap_words,
        live_words,
    ]
}

fn system_fields(system: &System) -> [Option<u64>; 5] {
    let System { rss, cgroup_usage, cgroup_limit, threads, domains } = *system;
    [rss, cgroup_usage, cgroup_limit, threads, domains]
}
