//! Files that were compressed by gzip or Zstandard, decompressed as they are read.
//!
//! One pass from begin to end, in the memory of a window: at most 128 MiB for Zstandard, as in its
//! own program, and 32 KiB for gzip. A file may consist of several members or frames. One that ends
//! early or is damaged is an error and no shorter trace, since what is missing could not be said.

use std::io::{self, BufRead as _, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use heaptap_trace::FileKind;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// How a file is compressed, if that can be undone here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    pub(super) fn of(kind: Option<FileKind>) -> Option<Compression> {
        match kind? {
            FileKind::Gzip => Some(Compression::Gzip),
            FileKind::Zstd => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// Why the file cannot be decompressed.
    fn failure(self, error: &(dyn std::error::Error + 'static)) -> io::Error {
        let (name, program) = match self {
            Compression::Gzip => ("gzip", "zcat"),
            Compression::Zstd => ("zstd", "zstdcat"),
        };
        let what = if is_end(error) { "ends too early" } else { "is damaged" };
        invalid(format!(
            "is compressed by {name}, and {what}: copy the file again, or save what is left by \
             `{program} FILE > trace.ctf`"
        ))
    }
}

/// What is wrong with the file, and no error in reading it.
fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Whether an error is, or comes from, the end of the file.
fn is_end(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|io| io.kind() == io::ErrorKind::UnexpectedEof)
        || error.source().is_some_and(is_end)
}

/// The contents of a file.
pub(super) enum Decompressed<R> {
    Plain(R),
    Gzip(MultiGzDecoder<BufReader<Compressed<R>>>),
    Zstd(Box<ZstdFrames<R>>),
}

impl<R: Read> Decompressed<R> {
    /// The contents of a file from its beginning, which `read` is at.
    pub(super) fn new(read: R, compression: Option<Compression>) -> Self {
        let buffered = |read| BufReader::new(Compressed { read, failed: None });
        match compression {
            None => Decompressed::Plain(read),
            Some(Compression::Gzip) => Decompressed::Gzip(MultiGzDecoder::new(buffered(read))),
            Some(Compression::Zstd) => Decompressed::Zstd(Box::new(ZstdFrames {
                decoder: FrameDecoder::new(),
                in_frame: false,
                source: buffered(read),
            })),
        }
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Decompressed::Plain(read) => read.read(room),
            Decompressed::Gzip(decoder) => decoder.read(room).map_err(|error| {
                let failed = decoder.get_mut().get_mut().failed.take();
                failed.unwrap_or_else(|| Compression::Gzip.failure(&error))
            }),
            Decompressed::Zstd(frames) => frames.read(room).map_err(|error| {
                let failed = frames.source.get_mut().failed.take();
                failed.unwrap_or_else(|| error.into_io())
            }),
        }
    }
}

/// A compressed file. Decoders wrap the errors of what they read; it remembers its own.
pub(super) struct Compressed<R> {
    read: R,
    failed: Option<io::Error>,
}

impl<R: Read> Read for Compressed<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.read.read(room).map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                self.failed = Some(error);
            }
            kind.into()
        })
    }
}

/// The frames of a Zstandard file, one after the other.
pub(super) struct ZstdFrames<R> {
    decoder: FrameDecoder,
    /// Within a frame, of which not everything was returned.
    in_frame: bool,
    source: BufReader<Compressed<R>>,
}

/// Why a frame cannot be decompressed.
enum ZstdError {
    Source(io::Error),
    Frame(FrameDecoderError),
    Checksum,
}

impl From<io::Error> for ZstdError {
    fn from(error: io::Error) -> Self {
        ZstdError::Source(error)
    }
}

impl From<FrameDecoderError> for ZstdError {
    fn from(error: FrameDecoderError) -> Self {
        ZstdError::Frame(error)
    }
}

impl ZstdError {
    fn into_io(self) -> io::Error {
        match self {
            ZstdError::Frame(FrameDecoderError::WindowSizeTooBig { requested, .. }) => {
                invalid(format!(
                    "was compressed with a window of {} MiB, which would all be kept in memory: \
                     pass it through `zstdcat --long=31`, and `-` for FILE",
                    requested >> 20
                ))
            }
            ZstdError::Frame(FrameDecoderError::DictNotProvided { .. }) => invalid(
                "was compressed with a dictionary: pass it through `zstdcat -D DICTIONARY`, and \
                 `-` for FILE"
                    .to_owned(),
            ),
            ZstdError::Frame(error) => Compression::Zstd.failure(&error),
            ZstdError::Source(error) => Compression::Zstd.failure(&error),
            ZstdError::Checksum => Compression::Zstd.failure(&io::Error::other("checksum")),
        }
    }
}

impl<R: Read> ZstdFrames<R> {
    fn read(&mut self, room: &mut [u8]) -> Result<usize, ZstdError> {
        while !room.is_empty() {
            if !self.in_frame {
                if self.source.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                self.begin_frame()?;
                continue;
            }
            if self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, one)?;
            }
            let count = self.decoder.read(room)?;
            if count > 0 {
                return Ok(count);
            }
            if self.decoder.is_finished() {
                self.end_frame()?;
            }
        }
        Ok(0)
    }

    /// Begins a frame, or passes over one that is not of the contents.
    fn begin_frame(&mut self) -> Result<(), ZstdError> {
        match self.decoder.reset(&mut self.source) {
            Ok(()) => self.in_frame = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let mut skipped = self.source.by_ref().take(length.into());
                if io::copy(&mut skipped, &mut io::sink())? < length.into() {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn end_frame(&mut self) -> Result<(), ZstdError> {
        self.in_frame = false;
        let stated = self.decoder.get_checksum_from_data();
        match stated.is_none() || stated == self.decoder.get_calculated_checksum() {
            true => Ok(()),
            false => Err(ZstdError::Checksum),
        }
    }
}

#[cfg(test)]
#[path = "decompressed_tests.rs"]
mod tests;
