//! The parts of a program's file that say how it was built.
//!
//! Of an ELF file, its writable segments, in which the data of all modules and the tables of the
//! linker are, and the strings of its debug information. Of bytecode, the sections behind the
//! code (`bytecomp/bytesections.ml`, the same from 4.12 to 5.4).

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A part of the file.
pub(super) enum Part {
    /// Static data of a native program.
    Data(Vec<u8>),
    /// Strings of the debug information.
    Debug(Vec<u8>),
    /// Of bytecode: the interfaces that its units import.
    Interfaces(Vec<u8>),
    /// Of bytecode: its debug information.
    Events(Vec<u8>),
    /// Of bytecode: the runtime that its first line names.
    Interpreter(PathBuf),
}

/// A part is not read beyond this.
const BIGGEST_PART: u64 = 256 << 20;

/// More headers are not read.
const MOST_HEADERS: u64 = 4096;

/// Opens a regular file. A pipe of this name is not waited for.
pub(crate) fn open_regular(path: &Path) -> Option<(File, Metadata)> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    metadata.is_file().then_some((file, metadata))
}

/// The parts of a file, and when it was written.
pub(super) fn parts(path: &Path) -> Option<(Option<SystemTime>, Vec<Part>)> {
    let (file, metadata) = open_regular(path)?;
    let size = metadata.len();
    let mut parts = of_elf(&file).unwrap_or_default();
    parts.extend(of_bytecode(&file, size).unwrap_or_default());
    Some((metadata.modified().ok(), parts))
}

/// Bytes of the file; fewer where it ends before.
fn read(file: &File, offset: u64, size: u64) -> Option<Vec<u8>> {
    let left = file.metadata().ok()?.len().saturating_sub(offset);
    let mut bytes = vec![0; size.min(left).min(BIGGEST_PART) as usize];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn half(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u16::from_le_bytes(number(bytes, at)?).into())
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u32::from_le_bytes(number(bytes, at)?).into())
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(number(bytes, at)?))
}

/// The writable segments and the strings for debuggers (System V ABI, ELF-64).
fn of_elf(file: &File) -> Option<Vec<Part>> {
    const LOAD: u64 = 1;
    const WRITABLE: u64 = 2;
    let header = read(file, 0, 64)?;
    if header.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let mut parts = Vec::new();
    let (start, size, count) = (long(&header, 32)?, half(&header, 54)?, half(&header, 56)?);
    for index in 0..count.min(MOST_HEADERS) {
        let segment = read(file, start.checked_add(index.checked_mul(size)?)?, 56)?;
        if word(&segment, 0)? == LOAD && word(&segment, 4)? & WRITABLE != 0 {
            parts.extend(read(file, long(&segment, 8)?, long(&segment, 32)?).map(Part::Data));
        }
    }
    parts.extend(debug_strings(file, &header).unwrap_or_default());
    Some(parts)
}

fn debug_strings(file: &File, header: &[u8]) -> Option<Vec<Part>> {
    const COMPRESSED: u64 = 1 << 11;
    let (start, size) = (long(header, 40)?, half(header, 58)?);
    let (count, names) = (half(header, 60)?, half(header, 62)?);
    let section = |index: u64| read(file, start.checked_add(index.checked_mul(size)?)?, 64);
    let of = |section: &[u8]| read(file, long(section, 24)?, long(section, 32)?);
    let names = of(&section(names)?)?;
    let mut parts = Vec::new();
    for index in 0..count.min(MOST_HEADERS) {
        let section = section(index)?;
        let name = names.get(word(&section, 0)? as usize..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        let is_wanted = matches!(name, b".debug_str" | b".debug_line" | b".debug_line_str");
        if is_wanted && long(&section, 8)? & COMPRESSED == 0 {
            parts.extend(of(&section).map(Part::Debug));
        }
    }
    Some(parts)
}

/// The sections of bytecode: from the end, a magic number, how many there are, and the name and
/// size of each.
fn of_bytecode(file: &File, size: u64) -> Option<Vec<Part>> {
    let trailer = read(file, size.checked_sub(16)?, 16)?;
    if trailer.get(4..13)? != b"Caml1999X" {
        return None;
    }
    let count: u64 = u32::from_be_bytes(number(&trailer, 0)?).into();
    if count > 256 {
        return None;
    }
    let table_at = size.checked_sub(16 + 8 * count)?;
    let table = read(file, table_at, 8 * count)?;
    let mut parts = Vec::new();
    let mut end = table_at;
    for entry in table.rchunks_exact(8) {
        let length = u32::from_be_bytes(number(entry, 4)?).into();
        end = end.checked_sub(length)?;
        match entry.get(..4)? {
            b"CRCS" => parts.push(Part::Interfaces(read(file, end, length)?)),
            b"DBUG" => parts.push(Part::Events(read(file, end, length)?)),
            _ => {}
        }
    }
    let first = read(file, 0, 512)?;
    let line = first.strip_prefix(b"#!").and_then(|line| line.split(|byte| *byte == b'\n').next());
    let interpreter = line.and_then(|line| std::str::from_utf8(line).ok());
    parts.extend(interpreter.map(|path| Part::Interpreter(PathBuf::from(path.trim()))));
    Some(parts)
}
