//! Reads one chunk at a time, verifies it and decompresses its streams.

use std::io::{self, Read};

use heaptap_codec::lz::decompress;

use super::error::{Defect, ReadError};
use crate::chunk::{
    CHUNK_HEADER, ChunkHeader, Codec, FILE_HEADER, MAGIC, MAX_STREAMS, OLDEST_VERSION,
    STREAM_HEADER, VERSION,
};

/// The chunk that was read last.
#[derive(Debug)]
pub(super) struct ChunkInput<R> {
    input: R,
    /// Where the chunk begins.
    pub(super) offset: u64,
    /// Where the next one begins.
    next_offset: u64,
    /// Its number, from 1.
    pub(super) number: u64,
    /// Its bytes behind the header.
    stored: Vec<u8>,
    /// Its streams, decompressed. Together at most [`MAX_RAW`](crate::chunk::MAX_RAW) bytes.
    pub(super) streams: [Vec<u8>; MAX_STREAMS],
}

/// What came instead of `N` bytes.
enum Short {
    /// The end of the file, after this number of bytes.
    End(usize),
    Error(io::Error),
}

impl<R: Read> ChunkInput<R> {
    /// Reads the header of the file.
    pub(super) fn new(input: R) -> Result<ChunkInput<R>, ReadError> {
        let mut chunks = ChunkInput {
            input,
            offset: 0,
            next_offset: FILE_HEADER as u64,
            number: 0,
            stored: Vec::new(),
            streams: Default::default(),
        };
        let mut header = [0; FILE_HEADER];
        let read = match chunks.fill(&mut header) {
            Ok(()) => FILE_HEADER,
            Err(Short::End(read)) => read,
            Err(Short::Error(error)) => return Err(chunks.error(Defect::Io(error))),
        };
        let begins_alike = header.iter().zip(&MAGIC).take(read).all(|(byte, magic)| byte == magic);
        if read == 0 || !begins_alike {
            return Err(chunks.error(Defect::NotASnapshot));
        }
        if read < FILE_HEADER {
            return Err(chunks.error(Defect::HeaderCutShort));
        }
        let [_, _, _, _, _, _, _, _, v0, v1, v2, v3, ..] = header;
        let version = u32::from_le_bytes([v0, v1, v2, v3]);
        if !is_checked(&header) {
            return Err(chunks.error(Defect::FileHeader));
        }
        if !(OLDEST_VERSION..=VERSION).contains(&version) {
            return Err(chunks.error(Defect::Version(version)));
        }
        Ok(chunks)
    }

    pub(super) fn error(&self, defect: Defect) -> ReadError {
        ReadError { defect, chunk: self.number, offset: self.offset }
    }

    /// Whether nothing is left of the file.
    pub(super) fn is_at_end(&mut self) -> Result<bool, ReadError> {
        match self.fill(&mut [0]) {
            Ok(()) => Ok(false),
            Err(Short::End(_)) => Ok(true),
            Err(Short::Error(error)) => Err(self.error(Defect::Io(error))),
        }
    }

    fn fill(&mut self, mut buffer: &mut [u8]) -> Result<(), Short> {
        let mut filled = 0;
        while !buffer.is_empty() {
            match self.input.read(buffer) {
                Ok(0) => return Err(Short::End(filled)),
                Ok(read) => {
                    filled += read;
                    buffer = buffer.get_mut(read..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Short::Error(error)),
            }
        }
        Ok(())
    }

    /// Reads the next chunk; returns its kind. `None` at the end of the file, whether it is
    /// between two chunks or inside of one.
    pub(super) fn next(&mut self) -> Result<Option<u8>, ReadError> {
        self.offset = self.next_offset;
        self.number += 1;
        let mut bytes = [0; CHUNK_HEADER];
        match self.fill(&mut bytes) {
            Ok(()) => {}
            Err(Short::End(_)) => return Ok(None),
            Err(Short::Error(error)) => return Err(self.error(Defect::Io(error))),
        }
        let header = ChunkHeader::read(&bytes).ok_or_else(|| self.error(Defect::ChunkHeader))?;
        let mut stored = std::mem::take(&mut self.stored);
        stored.resize(header.stored as usize, 0);
        let read = self.fill(&mut stored);
        self.stored = stored;
        match read {
            Ok(()) => {}
            Err(Short::End(_)) => return Ok(None),
            Err(Short::Error(error)) => return Err(self.error(Defect::Io(error))),
        }
        self.next_offset += CHUNK_HEADER as u64 + u64::from(header.stored);
        // The fuzz targets change bytes, and what decodes them is to be reached.
        if !cfg!(fuzzing) && header.checksum(&self.stored) != header.crc {
            return Err(self.error(Defect::Checksum));
        }
        self.unpack(&header).map_err(|defect| self.error(defect))?;
        Ok(Some(header.kind))
    }

    /// Decompresses the streams.
    fn unpack(&mut self, header: &ChunkHeader) -> Result<(), Defect> {
        self.streams.iter_mut().for_each(Vec::clear);
        let streams = usize::from(header.streams);
        let (heads, mut rest) =
            self.stored.split_at_checked(streams * STREAM_HEADER).ok_or(Defect::Stream)?;
        let mut room = header.raw as usize;
        for (head, stream) in heads.as_chunks::<STREAM_HEADER>().0.iter().zip(&mut self.streams) {
            let [r0, r1, r2, codec, s0, s1, s2, s3] = *head;
            let raw = u32::from_le_bytes([r0, r1, r2, 0]) as usize;
            let length = u32::from_le_bytes([s0, s1, s2, s3]) as usize;
            let (packed, behind) = rest.split_at_checked(length).ok_or(Defect::Stream)?;
            rest = behind;
            room = room.checked_sub(raw).ok_or(Defect::Stream)?;
            match codec {
                codec if codec == Codec::Stored as u8 => stream.extend_from_slice(packed),
                codec if codec == Codec::Lz as u8 => {
                    decompress(packed, raw, stream).ok_or(Defect::Stream)?;
                }
                codec => return Err(Defect::Codec(codec)),
            }
            if stream.len() != raw {
                return Err(Defect::Stream);
            }
        }
        if room != 0 || !rest.is_empty() {
            return Err(Defect::Stream);
        }
        Ok(())
    }
}

/// Whether the checksum at the end of a file's header is right.
fn is_checked(header: &[u8; FILE_HEADER]) -> bool {
    let Some((covered, crc)) = header.split_last_chunk::<4>() else { return false };
    heaptap_codec::crc::crc32c(&[covered]) == u32::from_le_bytes(*crc)
}
