//! What kind of file some bytes are the beginning of, by their magic number.
//!
//! The only place that knows magic numbers of files: the plugin asks before it
//! overwrites a file, the tools before they read one. A new kind of file is a
//! new variant here.

use crate::memtrace::rules::MAGIC;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// A trace in memtrace's format, `.ctf`.
    Memtrace,
    /// A heap snapshot, `.heap`.
    HeapSnapshot,
    /// Compressed by gzip.
    Gzip,
    /// Compressed by Zstandard.
    Zstd,
    /// Compressed by xz.
    Xz,
    /// Compressed by bzip2.
    Bzip2,
}

impl FileKind {
    /// The number of bytes that [`FileKind::of`] needs at most.
    pub const LONGEST_MAGIC: usize = 4;

    /// The kind of the file that begins with these bytes; `None` if it is not
    /// one of them or the bytes are too few.
    pub fn of(bytes: &[u8]) -> Option<FileKind> {
        const KINDS: [(&[u8], FileKind); 6] = [
            (&MAGIC.to_le_bytes(), FileKind::Memtrace),
            // The first half of its magic number, which is enough: docs/heap-format.md.
            (b"\x89HEA", FileKind::HeapSnapshot),
            (&[0x1f, 0x8b], FileKind::Gzip),
            (&[0x28, 0xb5, 0x2f, 0xfd], FileKind::Zstd),
            (&[0xfd, b'7', b'z', b'X'], FileKind::Xz),
            (b"BZh", FileKind::Bzip2),
        ];
        let kind = KINDS.iter().find(|(magic, _)| bytes.starts_with(magic))?;
        Some(kind.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_first_bytes() {
        for (bytes, kind) in [
            (&[0xc1, 0x1f, 0xfc, 0xc1, 7][..], Some(FileKind::Memtrace)),
            (b"\x89HEAP\r\n\x1a", Some(FileKind::HeapSnapshot)),
            (&[0x1f, 0x8b, 8, 0], Some(FileKind::Gzip)),
            (&[0x28, 0xb5, 0x2f, 0xfd], Some(FileKind::Zstd)),
            (b"\xfd7zXZ\0", Some(FileKind::Xz)),
            (b"BZh9", Some(FileKind::Bzip2)),
            (b"", None),
            (&[0xc1, 0x1f, 0xfc], None),
            (b"#!/bin/sh", None),
        ] {
            assert_eq!(FileKind::of(bytes), kind, "{bytes:x?}");
        }
    }
}
