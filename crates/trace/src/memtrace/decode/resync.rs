//! Finding the next packet when the last one does not lead to it.

use crate::memtrace::header::{Header, MAX_HEADER, Version};
use crate::memtrace::rules::MAGIC;

/// What the reader skips before it reads on. It may take bytes that are not written yet,
/// so it is kept from one attempt to the next.
#[derive(Clone, Copy)]
pub(crate) enum Skip {
    /// A packet of this size, if the next one begins behind it.
    Packet(usize),
    /// Everything before the next packet.
    Search {
        /// Nothing was skipped so far. The packet at the current position is the damaged
        /// one that led here.
        first: bool,
    },
}

/// What all packets of the trace have in common.
#[derive(Clone, Copy)]
pub(crate) struct Landmarks {
    pub(crate) version: Version,
    pub(crate) pid: u64,
}

impl Landmarks {
    /// Whether a packet of this trace begins at the start of `bytes`.
    pub(crate) fn begin_packet(&self, bytes: &[u8]) -> bool {
        matches!(Header::parse(bytes),
            Some(Ok(header)) if header.version == self.version && header.pid == self.pid)
    }

    /// The offset of the first packet in `bytes`, not counting one at 0.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<usize> {
        let [first, ..] = MAGIC.to_le_bytes();
        let mut from = 1;
        while let Some(rest) = bytes.get(from..) {
            let at = from + rest.iter().position(|&byte| byte == first)?;
            if bytes.get(at..).is_some_and(|rest| self.begin_packet(rest)) {
                return Some(at);
            }
            from = at + 1;
        }
        None
    }

    /// The number of bytes to keep after a search without result: a header may
    /// begin in them.
    pub(crate) const OVERLAP: usize = MAX_HEADER;
}
