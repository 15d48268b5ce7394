//! The bytes of one packet, readable beyond its end.
//!
//! The bytes reach [`PADDING`] beyond the largest packet, so that any number can
//! be read without asking where the packet ends. Whether an event stayed within
//! the packet is checked once, after it.

use crate::memtrace::decode::entry::Entry;
use crate::memtrace::header::Header;
use crate::memtrace::rules::{MAX_ENTRY, MAX_PACKET};

/// A packet's body and the bytes after it.
pub(crate) type Body = [u8; MAX_PACKET + PADDING];

/// How many bytes there are after the end of the largest packet.
const PADDING: usize = 16;

/// The largest number that a vint holds in its first byte.
pub(crate) const MAX_SMALL: u64 = 252;

/// A vint's first byte when two more bytes hold the number.
pub(crate) const TWO_BYTES: u64 = 253;

/// The body of the packet that `visible` begins with. Only near the end of an
/// input it has to be copied to be followed by enough bytes.
pub(crate) fn padded_body<'a>(
    visible: &'a [u8],
    header: &Header,
    copy: &'a mut Vec<u8>,
) -> Option<&'a Body> {
    let head = header.version.header_len();
    if let Some(body) = visible.get(head..).and_then(|bytes| bytes.first_chunk()) {
        return Some(body);
    }
    copy.clear();
    copy.extend_from_slice(visible.get(head..header.size)?);
    copy.resize(size_of::<Body>(), 0);
    copy.first_chunk()
}

#[inline(always)]
pub(crate) fn word_at(bytes: &Body, at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|&word| u64::from_le_bytes(word))
}

/// The entry at `at`, if all of it is there.
#[inline(always)]
pub(crate) fn entry_at(bytes: &Body, at: usize) -> Option<Entry> {
    if at > bytes.len() - MAX_ENTRY { None } else { Entry::read(bytes, at) }
}
