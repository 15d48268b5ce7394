//! The headers of an ELF file, and its sections one by one.
//!
//! 64-bit little-endian only; other files, and damaged ones, count as absent. Tables
//! are read when the file is opened, the contents of a section only on request. The
//! extended numbering of files with more than 65,279 sections is not supported: linked
//! programs have some forty.

use std::ops::Range;
use std::sync::Arc;

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use object::LittleEndian;
use object::elf::{
    CompressionHeader64, ELFCLASS64, ELFCOMPRESS_ZLIB, ELFDATA2LSB, ELFMAG, FileHeader64,
    NT_GNU_BUILD_ID, PF_X, PT_LOAD, PT_NOTE, ProgramHeader64, SHF_COMPRESSED, SHF_EXECINSTR,
    SHT_NOBITS, SHT_NOTE, SectionHeader64,
};
use object::pod::{Pod, from_bytes, slice_from_all_bytes};
use object::read::elf::NoteIterator;

use crate::source::{Budget, ReadAt, read_range};

const LE: LittleEndian = LittleEndian;

/// The bytes of a section that are read at a time if it is not kept.
const PIECE: usize = 16 << 10;

/// Notes have some hundred bytes. A file with more is damaged.
const MAX_NOTES: u64 = 64 << 10;

/// A program header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    loaded: bool,
    notes: bool,
    executable: bool,
    offset: u64,
    address: u64,
    file_size: u64,
}

impl Segment {
    /// The linked address of the byte at `offset` in the file, if this segment loads it.
    fn address_of(&self, offset: u64) -> Option<u64> {
        let within = offset.checked_sub(self.offset)?;
        (within < self.file_size).then(|| self.address.wrapping_add(within))
    }
}

/// The linked address of a byte of the file. A page may be loaded by two segments, code
/// and the constants beside it: then that of the code.
pub(crate) fn linked_address(segments: &[Segment], offset: u64) -> Option<u64> {
    let loaded = || segments.iter().filter(|segment| segment.loaded);
    loaded()
        .filter(|segment| segment.executable)
        .chain(loaded())
        .find_map(|segment| segment.address_of(offset))
}

/// A section header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    name: u32,
    note: bool,
    empty: bool,
    compressed: bool,
    /// Holds instructions.
    pub(crate) executable: bool,
    /// Its linked address.
    address: u64,
    offset: u64,
    /// Its size in memory and in the file.
    pub(crate) size: u64,
    /// The index of the section that belongs to it: for a symbol table, its names.
    pub(crate) link: u32,
}

impl Section {
    /// From its first address to one past its last.
    pub(crate) fn addresses(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.size)
    }
}

/// An opened ELF file.
pub(crate) struct Elf<'a> {
    pub(crate) source: &'a dyn ReadAt,
    /// Its program headers.
    pub(crate) segments: Vec<Segment>,
    /// Its section headers; none if they cannot be read, as in an image in memory.
    pub(crate) sections: Vec<Section>,
    names: Arc<[u8]>,
}

impl<'a> Elf<'a> {
    /// Reads the headers; `None` if this is no such file.
    pub(crate) fn open(source: &'a dyn ReadAt) -> Option<Elf<'a>> {
        let bytes = read_range(source, 0, size_of::<FileHeader64<LittleEndian>>() as u64)?;
        let (header, _) = from_bytes::<FileHeader64<LittleEndian>>(&bytes).ok()?;
        let ident = &header.e_ident;
        if ident.magic != ELFMAG || ident.class != ELFCLASS64 || ident.data != ELFDATA2LSB {
            return None;
        }
        let segments = read_table(
            source,
            header.e_phoff.get(LE),
            header.e_phnum.get(LE),
            header.e_phentsize.get(LE),
        )?;
        let sections = read_table(
            source,
            header.e_shoff.get(LE),
            header.e_shnum.get(LE),
            header.e_shentsize.get(LE),
        );
        let mut elf = Elf {
            source,
            segments: segments.iter().map(segment).collect(),
            sections: sections.unwrap_or_default().iter().map(section).collect(),
            names: Arc::default(),
        };
        let names = elf.sections.get(usize::from(header.e_shstrndx.get(LE).0)).copied();
        if let Some(names) = names {
            elf.names = read_range(source, names.offset, names.size).unwrap_or_default();
        }
        Some(elf)
    }

    /// The section of that name, if it has contents in this file.
    pub(crate) fn section(&self, name: &[u8]) -> Option<&Section> {
        self.sections.iter().find(|section| !section.empty && self.name_is(section, name))
    }

    fn name_is(&self, section: &Section, name: &[u8]) -> bool {
        let rest = self.names.get(section.name as usize..).unwrap_or_default();
        rest.strip_prefix(name).is_some_and(|after| after.first() == Some(&0))
    }

    /// A section's contents, decompressed, charged to the budget.
    pub(crate) fn contents(&self, section: &Section, budget: &mut Budget) -> Option<Arc<[u8]>> {
        if section.empty {
            return None;
        }
        if section.compressed {
            return self.inflate(section, budget);
        }
        // Bytes that the file does not have are not charged.
        if section.offset.checked_add(section.size)? > self.source.size()
            || !budget.spend(section.size)
        {
            return None;
        }
        let bytes = read_range(self.source, section.offset, section.size);
        if bytes.is_none() {
            budget.give_back(section.size);
        }
        bytes
    }

    /// The range of the file with a section's contents; `None` if they are compressed
    /// or the file is too short.
    pub(crate) fn stored_at(&self, section: &Section) -> Option<Range<u64>> {
        let end = section.offset.checked_add(section.size)?;
        let is_there = !section.empty && !section.compressed && end <= self.source.size();
        is_there.then_some(section.offset..end)
    }

    /// Passes a section's contents to `give` in pieces of whole entries, for a reader
    /// that does not keep the bytes. Charged like [`Elf::contents`]. False if it cannot
    /// be read, after which some pieces may have been passed.
    pub(crate) fn pieces(
        &self,
        section: &Section,
        entry: usize,
        budget: &mut Budget,
        give: &mut dyn FnMut(&[u8]),
    ) -> bool {
        let Some(Range { start: mut offset, end }) = self.stored_at(section) else {
            return self.contents(section, budget).is_some_and(|bytes| {
                give(&bytes);
                true
            });
        };
        if !budget.spend(section.size) {
            return false;
        }
        let mut buffer = vec![0; PIECE - PIECE % entry];
        while offset < end {
            let length = (end - offset).min(buffer.len() as u64);
            let piece = buffer.get_mut(..length as usize).unwrap_or_default();
            if !self.source.read_at(offset, piece) {
                budget.give_back(section.size);
                return false;
            }
            give(piece);
            offset += length;
        }
        true
    }

    /// Decompresses a section: `Elf64_Chdr`, then a zlib stream, as distributions
    /// compress their separate debug files. Other methods (zstd) are not supported.
    fn inflate(&self, section: &Section, budget: &mut Budget) -> Option<Arc<[u8]>> {
        if section.size > budget.left() {
            return None;
        }
        let packed = read_range(self.source, section.offset, section.size)?;
        let (header, stream) = from_bytes::<CompressionHeader64<LittleEndian>>(&packed).ok()?;
        let size = header.ch_size.get(LE);
        if header.ch_type.get(LE) != ELFCOMPRESS_ZLIB || !budget.spend(size) {
            return None;
        }
        let limit = usize::try_from(size).ok()?;
        match decompress_to_vec_zlib_with_limit(stream, limit) {
            Ok(bytes) if bytes.len() == limit => Some(Arc::from(bytes)),
            _ => {
                budget.give_back(size);
                None
            }
        }
    }

    /// The build id: from the sections, since a separate debug file lacks the contents
    /// of its segments; else from the segments, since an image in memory lacks section
    /// headers.
    pub(crate) fn build_id(&self) -> Option<Vec<u8>> {
        let sections = self.sections.iter().filter(|section| section.note && !section.empty);
        let segments = self.segments.iter().filter(|segment| segment.notes);
        sections
            .map(|section| (section.offset, section.size))
            .chain(segments.map(|segment| (segment.offset, segment.file_size)))
            .find_map(|(offset, size)| self.build_id_in(offset, size))
    }

    fn build_id_in(&self, offset: u64, size: u64) -> Option<Vec<u8>> {
        if size > MAX_NOTES {
            return None;
        }
        let bytes = read_range(self.source, offset, size)?;
        let mut notes = NoteIterator::<FileHeader64<LittleEndian>>::new(LE, 4, &bytes).ok()?;
        while let Ok(Some(note)) = notes.next() {
            if note.name() == b"GNU" && note.n_type(LE) == NT_GNU_BUILD_ID {
                return Some(note.desc().to_vec());
            }
        }
        None
    }
}

/// A table of headers; empty if there are none.
fn read_table<T: Pod + Copy>(
    source: &dyn ReadAt,
    offset: u64,
    count: u16,
    entry: u16,
) -> Option<Vec<T>> {
    if count == 0 {
        return Some(Vec::new());
    }
    if usize::from(entry) != size_of::<T>() {
        return None;
    }
    let bytes = read_range(source, offset, u64::from(count) * u64::from(entry))?;
    Some(slice_from_all_bytes::<T>(&bytes).ok()?.to_vec())
}

fn segment(header: &ProgramHeader64<LittleEndian>) -> Segment {
    Segment {
        loaded: header.p_type.get(LE) == PT_LOAD,
        notes: header.p_type.get(LE) == PT_NOTE,
        executable: header.p_flags.get(LE).contains(PF_X),
        offset: header.p_offset.get(LE),
        address: header.p_vaddr.get(LE),
        file_size: header.p_filesz.get(LE),
    }
}

fn section(header: &SectionHeader64<LittleEndian>) -> Section {
    let flags = header.sh_flags.get(LE);
    Section {
        name: header.sh_name.get(LE),
        note: header.sh_type.get(LE) == SHT_NOTE,
        empty: header.sh_type.get(LE) == SHT_NOBITS,
        compressed: flags.contains(SHF_COMPRESSED),
        executable: flags.contains(SHF_EXECINSTR),
        address: header.sh_addr.get(LE),
        offset: header.sh_offset.get(LE),
        size: header.sh_size.get(LE),
        link: header.sh_link.get(LE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(executable: bool, offset: u64, address: u64, file_size: u64) -> Segment {
        Segment { loaded: true, notes: false, executable, offset, address, file_size }
    }

    #[test]
    fn of_two_segments_that_load_a_byte_the_code_is_chosen() {
        let constants = loaded(false, 0, 0x40_0000, 0x1800);
        let code = loaded(true, 0x1000, 0x41_1000, 0x1000);
        for segments in [[constants, code], [code, constants]] {
            assert_eq!(linked_address(&segments, 0xfff), Some(0x40_0fff));
            assert_eq!(linked_address(&segments, 0x1000), Some(0x41_1000));
            assert_eq!(linked_address(&segments, 0x1fff), Some(0x41_1fff));
            assert_eq!(linked_address(&segments, 0x2000), None);
        }
        let not_loaded = Segment { loaded: false, ..code };
        assert_eq!(linked_address(&[not_loaded], 0x1000), None);
    }
}
