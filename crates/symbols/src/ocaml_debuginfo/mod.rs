//! The debug information that OCaml's native compiler puts next to its frame
//! descriptors: file, line, characters, definition, and the calls that were
//! inlined.
//!
//! A frame descriptor has the address of an entry of two 32-bit words. Entries of
//! inlined calls follow one another, innermost first; bit 0 of the first word
//! says that another follows. Bits 2–25 of it are the distance from the entry to
//! a record of names, whose first word is the distance from the record to the
//! file's name (`caml_debuginfo_location` in `runtime/backtrace_nat.c`).
//!
//! Up to 5.1 (4.14.1's file; 4.11 brought the definitions), in the 64 bits:
//! ```text
//! line:20 start:8 end:10 names:24 raise:1 next:1
//! names = file:i32 definition
//! ```
//! From 5.2 (5.3.0's file), two forms, distinguished by bit 63:
//! ```text
//! 0 line:12 lines:3 start:6 end:7 bol:9 names:24 raise:1 next:1
//! 1 line:19 lines:18 names:24 raise:1 next:1
//! names = file:i32 definition                             (the first)
//! names = file:i32 start:u16 end:u16 end_offset:i32 definition   (the second)
//! ```
//! where `end` counts from the beginning of the last line and `bol` is from the
//! beginning of the first line to that of the last. A location's end is counted from
//! the beginning of its first line, as `Printexc.location.end_char` is.
//!
//! Memory is only read through [`Memory`]. Every loop is bounded.

use crate::location::SourceLocation;

/// Memory in which frame tables lie.
pub trait Memory {
    /// Fills `into` from `address` on; false if not all of it can be read.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
}

/// The layout of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// OCaml 4.11 to 5.1.
    Until5_1,
    /// OCaml 5.2 and later.
    Since5_2,
}

/// A trace stores at most this many locations for one code.
const MAX_INLINED: usize = 255;

/// Longer names are cut.
const MAX_NAME: usize = 1024;

/// Emits the locations of the entry at `address`, outermost first. Emits nothing and
/// returns false if the entry or a name cannot be read or more than 255 calls are
/// inlined.
pub fn locate(
    memory: &dyn Memory,
    address: u64,
    packing: Packing,
    emit: &mut dyn FnMut(SourceLocation<'_>),
) -> bool {
    let Some(entries) = entries(memory, address, packing) else {
        return false;
    };
    for entry in entries.iter().rev() {
        emit(SourceLocation {
            file: &entry.file,
            line: entry.line,
            start_char: entry.start_char,
            end_char: entry.end_char,
            function: &entry.definition,
        });
    }
    true
}

struct Entry {
    file: Vec<u8>,
    line: u32,
    start_char: u32,
    end_char: u32,
    definition: Vec<u8>,
}

/// The entry and those that follow it, innermost first.
fn entries(memory: &dyn Memory, address: u64, packing: Packing) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut address = address;
    while entries.len() < MAX_INLINED {
        let info = u64::from_le_bytes(read(memory, address)?);
        entries.push(entry(memory, address, info, packing)?);
        if info & 1 == 0 {
            return Some(entries);
        }
        address = address.checked_add(8)?;
    }
    None
}

fn entry(memory: &dyn Memory, address: u64, info: u64, packing: Packing) -> Option<Entry> {
    let names = address.checked_add(info & 0x3ff_fffc)?;
    let file = i32::from_le_bytes(read(memory, names)?);
    let file = read_name(memory, names.checked_add_signed(i64::from(file))?)?;
    let chars = match packing {
        Packing::Until5_1 => packed_until_5_1(info),
        Packing::Since5_2 if info >> 63 == 0 => packed_since_5_2(info),
        Packing::Since5_2 => unpacked_since_5_2(info, read(memory, names.checked_add(4)?)?),
    };
    let definition = read_name(memory, names.checked_add(chars.definition)?)?;
    let Chars { line, start_char, end_char, .. } = chars;
    Some(Entry { file, line, start_char, end_char, definition })
}

/// The position in an entry.
#[derive(Debug, PartialEq, Eq)]
struct Chars {
    line: u32,
    start_char: u32,
    end_char: u32,
    /// The offset of the definition in the record of names.
    definition: u64,
}

fn packed_until_5_1(info: u64) -> Chars {
    Chars {
        line: bits(info, 44, 20),
        start_char: bits(info, 36, 8),
        end_char: bits(info, 26, 10),
        definition: 4,
    }
}

fn packed_since_5_2(info: u64) -> Chars {
    Chars {
        line: bits(info, 51, 12),
        start_char: bits(info, 42, 6),
        end_char: bits(info, 35, 7) + bits(info, 26, 9),
        definition: 4,
    }
}

fn unpacked_since_5_2(info: u64, record: [u8; 8]) -> Chars {
    let record = u64::from_le_bytes(record);
    Chars {
        line: bits(info, 44, 19),
        start_char: bits(record, 0, 16),
        // The compiler keeps it below 2^30 (asmcomp/emitaux.ml, 5.3.0).
        end_char: bits(record, 32, 31),
        definition: 12,
    }
}

/// `count` bits from bit `first` on; at most 32 of them.
fn bits(word: u64, first: u32, count: u32) -> u32 {
    ((word >> first) & ((1 << count) - 1)) as u32
}

fn read<const N: usize>(memory: &dyn Memory, address: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    memory.read(address, &mut bytes).then_some(bytes)
}

/// The NUL-terminated string at `address`, cut at [`MAX_NAME`].
fn read_name(memory: &dyn Memory, address: u64) -> Option<Vec<u8>> {
    /// Pieces end at multiples of this, so that none reaches into a page without a byte
    /// of the name.
    const PIECE: u64 = 64;
    let mut name = Vec::with_capacity(PIECE as usize);
    let mut address = address;
    while name.len() < MAX_NAME {
        let mut piece = [0; PIECE as usize];
        let length = PIECE - address % PIECE;
        let piece = piece.get_mut(..length as usize)?;
        if !memory.read(address, piece) {
            return None;
        }
        if let Some(end) = piece.iter().position(|&byte| byte == 0) {
            name.extend_from_slice(piece.get(..end)?);
            break;
        }
        name.extend_from_slice(piece);
        address = address.checked_add(length)?;
    }
    name.truncate(MAX_NAME);
    Some(name)
}

#[cfg(test)]
mod tests;
