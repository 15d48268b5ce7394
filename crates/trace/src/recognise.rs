//! What kind of file some bytes are the beginning of, by their magic number.
//!
//! The only place that knows magic numbers of files: the plugin asks before it
//! overwrites a file, the tools before they read one. A new kind of file is a
//! new variant here, and a new format of traces is one too: `formats`.

use crate::memtrace::rules::MAGIC;
use crate::series::SERIES_MAGIC;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// A trace in memtrace's format, `.ctf`.
    Memtrace,
    /// A heap snapshot, `.heap`.
    HeapSnapshot,
    /// The sidecar of a trace, `.ctf.probes`.
    Probes,
    /// The sidecar of a part of a series, `.ctf.series`.
    Series,
    /// Compressed by gzip.
    Gzip,
    /// Compressed by Zstandard.
    Zstd,
    /// Compressed by xz.
    Xz,
    /// Compressed by bzip2.
    Bzip2,
}

/// The kinds by their magic numbers.
const KINDS: [(&[u8], FileKind); 8] = [
    // Before the traces, whose magic number it begins with: docs/probes-format.md.
    (b"\xc1\x1f\xfc\xc1heap", FileKind::Probes),
    (&MAGIC.to_le_bytes(), FileKind::Memtrace),
    // The first half of its magic number, which is enough: docs/heap-format.md.
    (b"\x89HEA", FileKind::HeapSnapshot),
    (&SERIES_MAGIC, FileKind::Series),
    (&[0x1f, 0x8b], FileKind::Gzip),
    (&[0x28, 0xb5, 0x2f, 0xfd], FileKind::Zstd),
    (&[0xfd, b'7', b'z', b'X'], FileKind::Xz),
    (b"BZh", FileKind::Bzip2),
];

impl FileKind {
    /// The number of bytes that [`FileKind::of`] needs at most.
    pub const LONGEST_MAGIC: usize = 8;

    /// The kind of the file that begins with these bytes; `None` if it is not
    /// one of them or the bytes are too few.
    pub fn of(bytes: &[u8]) -> Option<FileKind> {
        let kind = KINDS.iter().find(|(magic, _)| bytes.starts_with(magic))?;
        Some(kind.1)
    }

    /// Whether bytes that follow these might decide what [`FileKind::of`] returns.
    pub(crate) fn is_undecided(bytes: &[u8]) -> bool {
        KINDS.iter().any(|(magic, _)| magic.len() > bytes.len() && magic.starts_with(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_first_bytes() {
        for (bytes, kind) in [
            (&[0xc1, 0x1f, 0xfc, 0xc1, 7][..], Some(FileKind::Memtrace)),
            (b"\xc1\x1f\xfc\xc1heaptap", Some(FileKind::Probes)),
            (b"\x89HEAP\r\n\x1a", Some(FileKind::HeapSnapshot)),
            (b"\x89SERIES\n\x01", Some(FileKind::Series)),
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
