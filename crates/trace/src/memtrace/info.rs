//! The trace info event, alone in the first packet of a file.

use heaptap_codec::Cursor;

use crate::memtrace::defect::Defect;
use crate::memtrace::event::{event_code, event_header, event_time};
use crate::memtrace::header::{Header, PacketRange, Version};
use crate::memtrace::rules::code;

use crate::memtrace::wire::Packet;
use crate::model::TraceInfo;
use crate::model::locate::until_nul;

impl TraceInfo {
    /// Reads the one event of a trace's first packet.
    pub(crate) fn parse(header: &Header, body: &[u8]) -> Result<TraceInfo, Defect> {
        let mut input = Cursor::new(body);
        let event = input.u32().ok_or(Defect::TraceInfo)?;
        let alone = header.first_id == 0 && header.next_id == 0;
        if event_code(event) != code::TRACE_INFO
            || event_time(event, header.begin) != header.begin
            || header.begin != header.end
            || !alone
        {
            return Err(Defect::TraceInfo);
        }
        let info = Self::parse_fields(header, &mut input).ok_or(Defect::TraceInfo)?;
        if input.remaining() != 0 {
            return Err(Defect::TraceInfo);
        }
        info.check()?;
        Ok(info)
    }

    /// The context is empty in version 1, and the domain is 0 before version 3.
    fn parse_fields(header: &Header, input: &mut Cursor<'_>) -> Option<TraceInfo> {
        Some(TraceInfo {
            sample_rate: f64::from_bits(input.u64()?),
            word_size: input.u8()?,
            executable: input.until_nul()?.to_vec(),
            host: input.until_nul()?.to_vec(),
            runtime_params: input.until_nul()?.to_vec(),
            pid: input.u64()?,
            context: match header.version {
                Version::V1 => Vec::new(),
                Version::V2 | Version::V3 => input.until_nul()?.to_vec(),
            },
            start_time: header.begin,
            domain: header.domain,
        })
    }

    /// Checks the values of a trace info.
    pub(crate) fn check(&self) -> Result<(), Defect> {
        if !(self.sample_rate > 0.0 && self.sample_rate <= 1.0) {
            return Err(Defect::SampleRate { bits: self.sample_rate.to_bits() });
        }
        if self.word_size != 32 && self.word_size != 64 {
            return Err(Defect::WordSize { bits: self.word_size });
        }
        Ok(())
    }

    /// Writes the whole first packet.
    pub(crate) fn put(&self, packet: &mut Packet, version: Version) {
        Header::open(packet, version, self.pid, self.domain, None);
        packet.u32(event_header(code::TRACE_INFO, self.start_time));
        packet.u64(self.sample_rate.to_bits());
        packet.u8(self.word_size);
        packet.string(&self.executable);
        packet.string(&self.host);
        packet.string(&self.runtime_params);
        packet.u64(self.pid);
        if version != Version::V1 {
            packet.string(&self.context);
        }
        let begin = self.start_time;
        let range = PacketRange { begin, end: begin, first_id: 0, next_id: 0 };
        Header::finish(packet, version, range);
    }

    /// The same with every string cut at its first NUL and at `limit` bytes.
    pub(crate) fn with_strings_cut(&self, limit: usize) -> TraceInfo {
        let cut = |text: &[u8]| {
            let text = until_nul(text);
            text.get(..limit).unwrap_or(text).to_vec()
        };
        TraceInfo {
            executable: cut(&self.executable),
            host: cut(&self.host),
            runtime_params: cut(&self.runtime_params),
            context: cut(&self.context),
            ..*self
        }
    }
}
