//! The plain writer.

use heaptap_trace::{Block, Code, Format, Source, TraceInfo};

use crate::debug_info::DebugInfo;
use crate::oracle::cache::PlainCache;
use crate::oracle::events::{RecentNames, put_event, put_location, put_string, put_vint};
use crate::script::{Recorder, same_frames};

/// Writes a trace into memory.
pub(crate) struct PlainWriter<'a> {
    out: Vec<u8>,
    version: u16,
    pid: u64,
    start_time: u64,
    free_id: u64,
    ids_per_block: u64,
    debug_info: &'a DebugInfo,
    domains: Vec<Domain>,
}

struct Domain {
    number: u16,
    body: Vec<u8>,
    begin: u64,
    end: u64,
    first_id: u64,
    next_id: u64,
    end_id: u64,
    renumber: Option<u64>,
    /// Slot, prediction and code.
    check: (u16, u16, u64),
    cache: PlainCache,
    files: RecentNames,
    packets: u64,
}

const NO_CHECK: (u16, u16, u64) = (0xffff, 0, 0);

impl<'a> PlainWriter<'a> {
    pub(crate) fn new(format: Format, info: &TraceInfo, debug_info: &'a DebugInfo) -> Self {
        let (version, ids_per_block) = match format {
            Format::V2 => (2, (1 << 62) - 1),
            Format::V3 => (3, 10_000),
        };
        let mut body = Vec::new();
        put_event(&mut body, 0, info.start_time);
        body.extend(info.sample_rate.to_le_bytes());
        body.push(info.word_size);
        for text in [&info.executable, &info.host, &info.runtime_params] {
            put_string(&mut body, &text[..text.len().min(4096)]);
        }
        body.extend(info.pid.to_le_bytes());
        put_string(&mut body, &info.context[..info.context.len().min(4096)]);
        let mut writer = PlainWriter {
            out: Vec::new(),
            version,
            pid: info.pid,
            start_time: info.start_time,
            free_id: 0,
            ids_per_block,
            debug_info,
            domains: Vec::new(),
        };
        let times = (info.start_time, info.start_time);
        writer.put_packet(info.domain, times, NO_CHECK, (0, 0), &body);
        writer.domain_index(info.domain, info.start_time);
        writer
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        for index in 0..self.domains.len() {
            let domain = &self.domains[index];
            if !domain.body.is_empty() || domain.packets == 0 {
                self.close(index, domain.end);
            }
        }
        self.out
    }

    fn put_packet(
        &mut self,
        domain: u16,
        times: (u64, u64),
        check: (u16, u16, u64),
        ids: (u64, u64),
        body: &[u8],
    ) {
        let size = self.header_len() + body.len();
        assert!(size <= 32_768, "a packet of {size} bytes");
        let out = &mut self.out;
        out.extend(0xc1fc_1fc1_u32.to_le_bytes());
        out.extend((8 * size as u32).to_le_bytes());
        out.extend(times.0.to_le_bytes());
        out.extend(times.1.to_le_bytes());
        out.extend(0_u32.to_le_bytes());
        out.extend(self.version.to_le_bytes());
        out.extend(self.pid.to_le_bytes());
        if self.version == 3 {
            out.extend(domain.to_le_bytes());
        }
        out.extend(check.0.to_le_bytes());
        out.extend(check.1.to_le_bytes());
        out.extend(check.2.to_le_bytes());
        out.extend(ids.0.to_le_bytes());
        out.extend(ids.1.to_le_bytes());
        out.extend(body);
    }

    fn header_len(&self) -> usize {
        if self.version == 3 { 68 } else { 66 }
    }

    /// What is left of a packet with such a body.
    fn room(&self, body: &[u8]) -> usize {
        32_768 - self.header_len() - body.len()
    }

    fn take_ids(&mut self) -> (u64, u64) {
        let first = self.free_id;
        self.free_id += self.ids_per_block;
        (first, self.free_id)
    }

    fn domain_index(&mut self, number: u16, time: u64) -> usize {
        if let Some(index) = self.domains.iter().position(|domain| domain.number == number) {
            return index;
        }
        assert!(time >= self.start_time);
        let (first_id, end_id) = self.take_ids();
        self.domains.push(Domain {
            number,
            body: Vec::new(),
            begin: time,
            end: time,
            first_id,
            next_id: first_id,
            end_id,
            renumber: None,
            check: NO_CHECK,
            cache: PlainCache::new(),
            files: Vec::new(),
            packets: 0,
        });
        self.domains.len() - 1
    }

    /// Starts an event, in a new packet if need be.
    fn event(&mut self, index: usize, code: u32, time: u64) {
        let domain = &self.domains[index];
        let age = time - domain.begin;
        let unused = domain.body.is_empty() && domain.packets == 0 && age <= 30_000_000;
        let full = self.room(&domain.body) < 4196
            || domain.cache.missed.len() > 128
            || age > 30_000_000
            || domain.next_id == domain.end_id
            || domain.renumber.is_some();
        if full && !unused {
            self.close(index, time);
        }
        let domain = &mut self.domains[index];
        if let Some(first) = domain.renumber.take() {
            domain.first_id = first;
            domain.next_id = first;
            domain.end_id = (first / self.ids_per_block + 1) * self.ids_per_block;
            self.free_id = self.free_id.max(domain.end_id);
        }
        domain.end = time;
        put_event(&mut domain.body, code, time);
    }

    fn close(&mut self, index: usize, time: u64) {
        self.put_locations(index);
        let domain = &mut self.domains[index];
        let body = std::mem::take(&mut domain.body);
        let Domain { number, begin, end, check, first_id, next_id, end_id, .. } = *domain;
        self.put_packet(number, (begin, end), check, (first_id, next_id), &body);
        let ids = if next_id == end_id { self.take_ids() } else { (next_id, end_id) };
        let domain = &mut self.domains[index];
        (domain.first_id, domain.end_id) = ids;
        domain.next_id = domain.first_id;
        (domain.begin, domain.end) = (time, time);
        domain.check = domain.cache.check();
        domain.packets += 1;
    }

    fn put_locations(&mut self, index: usize) {
        let Domain { number, begin, first_id, .. } = self.domains[index];
        let mut body = Vec::new();
        for code in std::mem::take(&mut self.domains[index].cache.missed) {
            let mut event = Vec::new();
            put_event(&mut event, 1, begin);
            event.extend(code.to_le_bytes());
            let locations = self.debug_info.recorded(code);
            event.push(locations.len() as u8);
            let mut most = 4 + 8 + 1;
            for location in &locations {
                most += 6 + location.file.len() + 1 + location.definition.len() + 1;
                put_location(&mut event, location, &mut self.domains[index].files);
            }
            if self.room(&body) <= 4096 || self.room(&body) < most {
                self.put_packet(number, (begin, begin), NO_CHECK, (first_id, first_id), &body);
                body.clear();
            }
            body.extend(event);
        }
        if !body.is_empty() {
            self.put_packet(number, (begin, begin), NO_CHECK, (first_id, first_id), &body);
        }
    }

    fn object(&mut self, domain: u16, time: u64, id: u64, code: u32) {
        let index = self.domain_index(domain, time);
        self.event(index, code, time);
        let Domain { body, next_id, .. } = &mut self.domains[index];
        put_vint(body, *next_id as i64 - 1 - id as i64);
    }
}

impl Recorder for PlainWriter<'_> {
    fn alloc(
        &mut self,
        domain: u16,
        time: u64,
        block: Block,
        last: &[Code],
        stack: &[Code],
    ) -> u64 {
        let index = self.domain_index(domain, time);
        let prefix = same_frames(last, stack);
        let new = &stack[prefix..];
        let short = (1..=16).contains(&block.length)
            && block.source == Source::Minor
            && block.samples == 1
            && new.len() < 256;
        let code = if short { 100 + block.length as u32 } else { 2 };
        self.event(index, code, time);
        let domain = &mut self.domains[index];
        let id = domain.next_id;
        domain.next_id += 1;
        let (entries, bytes) = domain.cache.entries(new, id);
        let body = &mut domain.body;
        if !short {
            put_vint(body, block.length as i64);
            put_vint(body, block.samples as i64);
            body.push(block.source as u8);
        }
        put_vint(body, prefix as i64);
        if short {
            body.push(entries as u8);
        } else {
            body.extend((entries as u16).to_le_bytes());
        }
        body.extend(bytes);
        id
    }

    fn promote(&mut self, domain: u16, time: u64, id: u64) {
        self.object(domain, time, id, 3);
    }

    fn collect(&mut self, domain: u16, time: u64, id: u64) {
        self.object(domain, time, id, 4);
    }

    fn flush(&mut self) {
        for index in 0..self.domains.len() {
            if !self.domains[index].body.is_empty() {
                self.close(index, self.domains[index].end);
            }
        }
    }

    fn next_id(&self, domain: u16) -> Option<u64> {
        let domain = self.domains.iter().find(|known| known.number == domain)?;
        Some(domain.renumber.unwrap_or(domain.next_id))
    }

    fn renumber(&mut self, domain: u16, time: u64, first: u64) {
        let index = self.domain_index(domain, time);
        if Some(first) != self.next_id(domain) {
            self.domains[index].renumber = Some(first);
        }
    }
}
