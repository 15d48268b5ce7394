//! The sections of a bytecode executable (`runtime/caml/exec.h`, 4.14.1 and 5.3.0).
//!
//! At the file's end are the number of sections and a magic number, before these the sections'
//! names and lengths, before those the sections. Nothing in it is trusted.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// More than any section of a program.
const LARGEST: u64 = 1 << 30;
/// More than any program has.
const MOST_SECTIONS: u64 = 1_000;
const TRAILER: u64 = 16;

/// A section's place in the file.
#[derive(Debug)]
struct Section {
    name: [u8; 4],
    start: u64,
    length: u64,
}

/// A bytecode executable.
#[derive(Debug)]
pub(super) struct BytecodeFile {
    file: File,
    sections: Vec<Section>,
}

impl BytecodeFile {
    /// `None` for any other file.
    pub(super) fn read(file: File) -> Option<BytecodeFile> {
        let length = file.metadata().ok()?.len();
        let mut trailer = [0; TRAILER as usize];
        file.read_exact_at(&mut trailer, length.checked_sub(TRAILER)?).ok()?;
        let (count, magic) = trailer.split_first_chunk::<4>()?;
        if !magic.starts_with(b"Caml1999X") {
            return None;
        }
        let count = u64::from(u32::from_be_bytes(*count)).min(MOST_SECTIONS);
        let table_at = length.checked_sub(TRAILER + count * 8)?;
        let mut table = vec![0; (count * 8) as usize];
        file.read_exact_at(&mut table, table_at).ok()?;
        let (mut sections, mut end) = (Vec::new(), table_at);
        for entry in table.chunks_exact(8).rev() {
            let (name, length) = entry.split_first_chunk::<4>()?;
            let length = u64::from(u32::from_be_bytes(length.try_into().ok()?));
            let start = end.checked_sub(length)?;
            sections.push(Section { name: *name, start, length });
            end = start;
        }
        Some(BytecodeFile { file, sections })
    }

    /// The length of a section in bytes.
    pub(super) fn length(&self, name: [u8; 4]) -> Option<u64> {
        self.find(name).map(|section| section.length)
    }

    /// The contents of a section.
    pub(super) fn section(&self, name: [u8; 4]) -> Option<Vec<u8>> {
        let &Section { start, length, .. } = self.find(name)?;
        if length >= LARGEST {
            return None;
        }
        let mut section = vec![0; length as usize];
        self.file.read_exact_at(&mut section, start).ok()?;
        Some(section)
    }

    fn find(&self, name: [u8; 4]) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use super::*;

    /// A file with these sections.
    pub(in super::super) fn made(sections: &[([u8; 4], &[u8])]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"#!/usr/bin/ocamlrun\n").unwrap();
        sections.iter().for_each(|(_, bytes)| file.write_all(bytes).unwrap());
        for (name, bytes) in sections {
            file.write_all(name).unwrap();
            file.write_all(&(bytes.len() as u32).to_be_bytes()).unwrap();
        }
        file.write_all(&(sections.len() as u32).to_be_bytes()).unwrap();
        file.write_all(b"Caml1999X030").unwrap();
        file
    }

    #[test]
    fn sections_are_found_from_the_end() {
        let file = made(&[(*b"CODE", b"code"), (*b"DBUG", b"debug"), (*b"CRCS", b"crc")]);
        let file = BytecodeFile::read(file).unwrap();
        assert_eq!(file.section(*b"DBUG").unwrap(), b"debug");
        assert_eq!(file.length(*b"CODE"), Some(4));
        assert_eq!(file.section(*b"SYMB"), None);
    }

    #[test]
    fn other_files_have_none() {
        let mut file = tempfile::tempfile().unwrap();
        let mut is_none = |bytes: &[u8]| {
            file.write_all(bytes).unwrap();
            BytecodeFile::read(file.try_clone().unwrap()).is_none()
        };
        assert!(is_none(b""));
        assert!(is_none(&[0xff; 100]));
        assert!(is_none(b"\xff\xff\xff\xffCaml1999X030"));
    }
}
