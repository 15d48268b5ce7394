//! The file's header, and the frame around each chunk.
//!
//! A chunk is a header of 16 bytes, one header of 8 bytes for each of its streams,
//! and the streams. See `docs/heap-format.md`.

use heaptap_codec::crc::crc32c;
use heaptap_codec::lz::{Positions, compress};

/// The first bytes of a snapshot. As in PNG: a transfer that changes line ends or
/// clears the top bit is noticed at once.
pub const MAGIC: [u8; 8] = *b"\x89HEAP\r\n\x1a";
/// The version that is written. Version 1 has no roots of kind 7 and 8.
pub(crate) const VERSION: u32 = 2;
/// The first version that is read.
pub(crate) const OLDEST_VERSION: u32 = 1;

/// The most bytes of a chunk before compression.
pub(crate) const MAX_RAW: usize = 256 << 10;
/// The most blocks, or parts of blocks, in a chunk.
pub(crate) const MAX_PARTS: u64 = 1 << 17;
/// The most pointers of the blocks in a chunk.
pub(crate) const MAX_POINTERS: u64 = 1 << 18;
/// The most streams in a chunk.
pub(crate) const MAX_STREAMS: usize = 8;
/// The bytes of the file's header.
pub const HEADER_BYTES: usize = 16;
pub(crate) const FILE_HEADER: usize = HEADER_BYTES;
pub(crate) const CHUNK_HEADER: usize = 16;
pub(crate) const STREAM_HEADER: usize = 8;
/// The most bytes of a chunk behind its header. A stream is never stored in more bytes than it has.
pub(crate) const MAX_STORED: usize = MAX_RAW + MAX_STREAMS * STREAM_HEADER;

/// What a chunk holds. A reader skips kinds that it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ChunkKind {
    Meta = 1,
    Segments = 2,
    Blocks = 3,
    Roots = 4,
    Finalisers = 5,
    Ephemerons = 6,
    Modules = 7,
    Threads = 8,
    CodesSeen = 9,
    CustomKinds = 10,
    KindNames = 11,
    Names = 12,
    Tracked = 13,
    /// The totals of a file that somebody else completes.
    Totals = 14,
    /// The totals of a complete file.
    End = 15,
    OutsideAreas = 16,
}

impl ChunkKind {
    pub(crate) fn of(byte: u8) -> Option<ChunkKind> {
        use ChunkKind::*;
        let kinds = [
            Meta,
            Segments,
            Blocks,
            Roots,
            Finalisers,
            Ephemerons,
            Modules,
            Threads,
            CodesSeen,
            CustomKinds,
            KindNames,
            Names,
            Tracked,
            Totals,
            End,
            OutsideAreas,
        ];
        kinds.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// How a stream is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Codec {
    Stored = 0,
    Lz = 1,
}

/// The header of the file.
pub(crate) fn file_header() -> [u8; FILE_HEADER] {
    let mut header = [0; FILE_HEADER];
    put(&mut header, 0, &MAGIC);
    put(&mut header, 8, &VERSION.to_le_bytes());
    let crc = crc32c(&[&MAGIC, &VERSION.to_le_bytes()]);
    put(&mut header, 12, &crc.to_le_bytes());
    header
}

/// Whether a file begins as a snapshot does, of this version or a later one: its first
/// [`HEADER_BYTES`] bytes.
pub fn is_snapshot_header(header: &[u8; HEADER_BYTES]) -> bool {
    let (checked, crc) = header.split_at(HEADER_BYTES - 4);
    checked.starts_with(&MAGIC) && crc == crc32c(&[checked]).to_le_bytes()
}

/// The lengths of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    /// A [`ChunkKind`], or one of a later version.
    pub(crate) kind: u8,
    /// At most [`MAX_STREAMS`].
    pub(crate) streams: u8,
    /// The streams' bytes before compression, at most [`MAX_RAW`].
    pub(crate) raw: u32,
    /// The bytes behind the header, at most [`MAX_STORED`].
    pub(crate) stored: u32,
    /// Of the 12 bytes before it and of the bytes behind the header.
    pub(crate) crc: u32,
}

impl ChunkHeader {
    /// The bytes before the checksum. The lengths are guarded by themselves, so that a
    /// damaged length is not taken for the end of the file.
    fn guarded(&self) -> [u8; 12] {
        let mut bytes = [0; 12];
        put(&mut bytes, 0, &[self.kind, self.streams]);
        put(&mut bytes, 4, &self.raw.to_le_bytes());
        put(&mut bytes, 8, &self.stored.to_le_bytes());
        let guard = crc32c(&[&bytes]) as u16;
        put(&mut bytes, 2, &guard.to_le_bytes());
        bytes
    }

    pub(crate) fn bytes(&self) -> [u8; CHUNK_HEADER] {
        let mut bytes = [0; CHUNK_HEADER];
        put(&mut bytes, 0, &self.guarded());
        put(&mut bytes, 12, &self.crc.to_le_bytes());
        bytes
    }

    /// `None` if the guard does not match or a length is beyond its bound.
    pub(crate) fn read(bytes: &[u8; CHUNK_HEADER]) -> Option<ChunkHeader> {
        let [kind, streams, _, _, r0, r1, r2, r3, s0, s1, s2, s3, c0, c1, c2, c3] = *bytes;
        let header = ChunkHeader {
            kind,
            streams,
            raw: u32::from_le_bytes([r0, r1, r2, r3]),
            stored: u32::from_le_bytes([s0, s1, s2, s3]),
            crc: u32::from_le_bytes([c0, c1, c2, c3]),
        };
        let is_bounded = usize::from(streams) <= MAX_STREAMS
            && header.raw as usize <= MAX_RAW
            && header.stored as usize <= MAX_STORED;
        // Without the guard in the fuzz targets, which change bytes.
        (is_bounded && (cfg!(fuzzing) || header.bytes() == *bytes)).then_some(header)
    }

    pub(crate) fn checksum(&self, stored: &[u8]) -> u32 {
        crc32c(&[&self.guarded(), stored])
    }
}

/// A stream to be packed.
#[derive(Clone, Copy)]
pub(crate) struct Stream<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whether it need not be compressed.
    pub(crate) is_dense: bool,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Stream<'a> {
        Stream { bytes, is_dense: false }
    }

    pub(crate) fn dense(bytes: &'a [u8]) -> Stream<'a> {
        Stream { bytes, is_dense: true }
    }
}

/// The room that [`pack`] needs at most.
pub(crate) const MAX_CHUNK: usize = CHUNK_HEADER + MAX_STORED;

/// Makes a chunk of its streams in `output`; returns its length. `None` if the streams are
/// too many or too long, which their user rules out.
pub(crate) fn pack(
    kind: ChunkKind,
    streams: &[Stream<'_>],
    output: &mut [u8],
    positions: &mut Positions,
) -> Option<usize> {
    let raw: usize = streams.iter().map(|stream| stream.bytes.len()).sum();
    if raw > MAX_RAW || streams.len() > MAX_STREAMS {
        return None;
    }
    let (head, body) = output.split_at_mut_checked(CHUNK_HEADER)?;
    let (stream_headers, mut room) = body.split_at_mut_checked(streams.len() * STREAM_HEADER)?;
    let mut stored = stream_headers.len();
    for (stream, header) in streams.iter().zip(stream_headers.as_chunks_mut::<8>().0) {
        let Stream { bytes, is_dense } = *stream;
        let room_to_win = if is_dense { 0 } else { bytes.len().saturating_sub(1) };
        let (codec, length) = match compress(bytes, room.get_mut(..room_to_win)?, positions) {
            Some(length) => (Codec::Lz, length),
            None => {
                room.get_mut(..bytes.len())?.copy_from_slice(bytes);
                (Codec::Stored, bytes.len())
            }
        };
        let raw_and_codec = bytes.len() as u32 | (u32::from(codec as u8) << 24);
        put(header, 0, &raw_and_codec.to_le_bytes());
        put(header, 4, &(length as u32).to_le_bytes());
        stored += length;
        room = room.get_mut(length..)?;
    }
    let mut header = ChunkHeader {
        kind: kind as u8,
        streams: streams.len() as u8,
        raw: raw as u32,
        stored: stored as u32,
        crc: 0,
    };
    header.crc = header.checksum(body.get(..stored)?);
    head.copy_from_slice(&header.bytes());
    Some(CHUNK_HEADER + stored)
}

fn put<const N: usize, const M: usize>(into: &mut [u8; N], at: usize, bytes: &[u8; M]) {
    if let Some(room) = into.get_mut(at..at + M) {
        room.copy_from_slice(bytes);
    }
}
