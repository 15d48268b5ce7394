//! What can be wrong with a file.

use std::fmt;
use std::io;

/// What is wrong with a snapshot.
#[derive(Debug)]
#[non_exhaustive]
pub enum Defect {
    /// The file does not begin like a snapshot.
    NotASnapshot,
    /// The file ends within its header.
    HeaderCutShort,
    /// The header of the file is damaged.
    FileHeader,
    /// A version that this reader does not know.
    Version(u32),
    /// The header of a chunk is damaged.
    ChunkHeader,
    /// The contents of a chunk are damaged.
    Checksum,
    /// A stream is stored in a manner that this reader does not know.
    Codec(u8),
    /// The checksum is right, and still a stream does not decompress or its lengths differ.
    Stream,
    /// The checksum is right, and still the contents make no sense.
    Malformed,
    /// Something follows the end.
    TrailingBytes,
    /// It takes more memory than this number of bytes to work on it.
    Memory(u64),
    /// The file could not be read.
    Io(io::Error),
}

/// An error in reading a snapshot, and where it is.
#[derive(Debug)]
pub struct ReadError {
    /// What is wrong.
    pub defect: Defect,
    /// The chunk's number, from 1; 0 for the header of the file.
    pub chunk: u64,
    /// Where the chunk begins in the file.
    pub offset: u64,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.defect {
            Defect::NotASnapshot => return f.write_str("not a heap snapshot"),
            Defect::HeaderCutShort => {
                return f.write_str(
                    "a heap snapshot that is cut short within its header: nothing is left of it",
                );
            }
            Defect::FileHeader => return f.write_str("the header of the file is damaged"),
            Defect::Version(version) => {
                return write!(
                    f,
                    "a heap snapshot of version {version}, and this program reads versions 1 and 2: \
                     use a newer heaptap"
                );
            }
            _ => write!(f, "chunk {} at byte {}: ", self.chunk, self.offset)?,
        }
        match &self.defect {
            Defect::ChunkHeader => f.write_str("its header is damaged"),
            Defect::Checksum => f.write_str("its checksum does not match, so it is damaged"),
            Defect::Codec(codec) => write!(
                f,
                "a stream is compressed in a manner ({codec}) that this program does not know: \
                 use a newer heaptap"
            ),
            Defect::Stream => {
                f.write_str("a stream does not decompress, though its checksum matches")
            }
            Defect::Malformed => {
                f.write_str("its contents make no sense, though its checksum matches")
            }
            Defect::TrailingBytes => f.write_str("something follows the end of the snapshot"),
            Defect::Memory(limit) => write!(
                f,
                "up to here more than {limit} bytes of memory are needed: a heap of this size is read \
                 on a bigger machine, a small file was made to harm"
            ),
            Defect::Io(error) => write!(f, "{error}"),
            Defect::NotASnapshot
            | Defect::HeaderCutShort
            | Defect::FileHeader
            | Defect::Version(_) => Ok(()),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.defect {
            Defect::Io(error) => Some(error),
            _ => None,
        }
    }
}
