//! The names of symbols, of which few are ever read.
//!
//! The names in a file are not kept in memory. The file is opened again for each name,
//! and must not have changed since its symbols were read. Names from elsewhere are kept.

use std::sync::Arc;

use crate::elf::{Elf, Section};
use crate::source::{Budget, Origin, ReadAt, Stamp};

/// Where the names of a symbol table are.
pub(crate) enum Names {
    Kept(Arc<[u8]>),
    InFile(StoredNames),
}

/// A string table in a file.
pub(crate) struct StoredNames {
    origin: Origin,
    /// The file's identity when its symbols were read.
    stamp: Stamp,
    offset: u64,
    size: u64,
}

/// How much of a file is read at a time: enough for most names.
const PIECE: u64 = 256;

/// Longer names are cut.
const LONGEST: usize = 64 << 10;

impl Names {
    /// The names in a section of `elf`, which was opened from `origin`.
    pub(crate) fn of(
        elf: &Elf<'_>,
        origin: &Origin,
        section: &Section,
        budget: &mut Budget,
    ) -> Option<Names> {
        match (elf.source.stamp(), elf.stored_at(section)) {
            (Some(stamp), Some(stored)) => {
                let (offset, size) = (stored.start, stored.end - stored.start);
                Some(Names::InFile(StoredNames { origin: origin.clone(), stamp, offset, size }))
            }
            _ => elf.contents(section, budget).map(Names::Kept),
        }
    }

    /// The name at the offset `start`; `None` if it is empty.
    pub(crate) fn read(&self, start: u32) -> Option<Vec<u8>> {
        let name = match self {
            Names::Kept(names) => {
                let rest = names.get(start as usize..)?;
                rest.split(|&byte| byte == 0).next()?.to_vec()
            }
            Names::InFile(stored) => stored.read(u64::from(start))?,
        };
        (!name.is_empty()).then_some(name)
    }

    /// The first two bytes of each of these names, whose offsets are sorted.
    pub(crate) fn beginnings(
        &self,
        elf: &Elf<'_>,
        starts: impl Iterator<Item = u32>,
    ) -> Vec<[u8; 2]> {
        let mut pieces = Pieces { source: elf.source, piece: Vec::new(), at: 0 };
        let beginning = |start: u32| match self {
            Names::Kept(names) => names.get(start as usize..)?.first_chunk().copied(),
            Names::InFile(StoredNames { offset, size, .. }) => {
                let start = u64::from(start);
                (start < *size).then(|| pieces.bytes(offset + start))?
            }
        };
        starts.map(beginning).map(Option::unwrap_or_default).collect()
    }
}

impl StoredNames {
    fn read(&self, start: u64) -> Option<Vec<u8>> {
        let source = self.origin.open()?;
        if source.stamp() != Some(self.stamp) {
            return None;
        }
        let mut name = Vec::new();
        let mut at = start;
        while at < self.size && name.len() < LONGEST {
            let before = name.len();
            name.resize(before + PIECE.min(self.size - at) as usize, 0);
            let piece = name.get_mut(before..)?;
            if !source.read_at(self.offset + at, piece) {
                return None;
            }
            if let Some(end) = piece.iter().position(|&byte| byte == 0) {
                name.truncate(before + end);
                break;
            }
            at += PIECE;
        }
        Some(name)
    }
}

/// Reads ahead, for reads at increasing offsets.
struct Pieces<'a> {
    source: &'a dyn ReadAt,
    piece: Vec<u8>,
    /// The offset of the piece in the source.
    at: u64,
}

impl Pieces<'_> {
    fn bytes(&mut self, at: u64) -> Option<[u8; 2]> {
        const AHEAD: u64 = 64 << 10;
        let found = |pieces: &Self| {
            let within = usize::try_from(at.checked_sub(pieces.at)?).ok()?;
            pieces.piece.get(within..)?.first_chunk().copied()
        };
        found(self).or_else(|| {
            let length = self.source.size().checked_sub(at)?.min(AHEAD);
            self.piece.resize(length as usize, 0);
            self.at = at;
            if !self.source.read_at(at, &mut self.piece) {
                self.piece.clear();
            }
            found(self)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_changed_has_no_names() {
        let path = std::env::temp_dir().join(format!("heaptap-names-{}", std::process::id()));
        let long = "x".repeat(1000);
        std::fs::write(&path, format!("....\0first\0{long}\0last")).unwrap();
        let origin = Origin::File(path.clone());
        let stamp = origin.open().unwrap().stamp().unwrap();
        let size = 5 + 6 + 1001 + 4 - 4;
        let names = Names::InFile(StoredNames { origin, stamp, offset: 4, size });
        assert_eq!(names.read(1).as_deref(), Some(&b"first"[..]));
        assert_eq!(names.read(7).as_deref(), Some(long.as_bytes()));
        assert_eq!(names.read(1008).as_deref(), Some(&b"last"[..]));
        for nothing in [0, 6, 1012, u32::MAX] {
            assert_eq!(names.read(nothing), None);
        }
        std::fs::write(&path, "something else").unwrap();
        assert_eq!(names.read(1), None);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(names.read(1), None);
    }
}
