//! The first packet of a trace, which holds the trace info.

use crate::input::Input;
use crate::memtrace::defect::Defect;
use crate::memtrace::header::{Header, MAX_HEADER};
use crate::model::{Located, ReadError, TraceInfo};

/// The first packet of a trace, which holds the trace info.
pub(crate) struct FirstPacket {
    pub(crate) header: Header,
    pub(crate) info: TraceInfo,
}

impl FirstPacket {
    /// Reads the packet without consuming it.
    pub(crate) fn read(input: &mut impl Input) -> Result<FirstPacket, ReadError> {
        let at_start = |offset, defect: Defect| {
            ReadError::Defect(Located { packet: 0, offset, defect: defect.into() })
        };
        input.fill(MAX_HEADER)?;
        let have = input.visible().len();
        let header = match Header::parse(input.visible()) {
            None if have == 0 => return Err(at_start(0, Defect::Empty)),
            None => return Err(at_start(0, Defect::Truncated { have, need: 0 })),
            Some(parsed) => parsed.map_err(|defect| at_start(0, defect))?,
        };
        let head = header.version.header_len();
        input.fill(header.size)?;
        let (bytes, need) = (input.visible(), header.size);
        let body = bytes
            .get(head..need)
            .ok_or_else(|| at_start(0, Defect::Truncated { have: bytes.len(), need }))?;
        let info =
            TraceInfo::parse(&header, body).map_err(|defect| at_start(head as u64, defect))?;
        Ok(FirstPacket { header, info })
    }
}
