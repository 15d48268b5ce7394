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
//! From 5.2 (5.3.0's file), two forms, told apart by bit 63:
//! ```text
//! 0 line:12 lines:3 start:6 end:7 bol:9 names:24 raise:1 next:1
//! 1 line:19 lines:18 names:24 raise:1 next:1
//! names = file:i32 definition                             (the first)
//! names = file:i32 start:u16 end:u16 end_offset:i32 definition   (the second)
//! ```
//! where `end` counts from the beginning of the last line and `bol` is from the
//! beginning of the first line to that of the last. A place's end is counted from
//! the beginning of its first line, as `Printexc.location.end_char` is.
//!
//! Memory comes through [`Memory`], so nothing here can touch an address of its
//! own accord. Every loop is bounded.

use crate::Place;

/// Memory in which frame tables lie.
pub trait Memory {
    /// Fills `into` from `address` on; false if that is not possible in full.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
}

/// How an entry is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// OCaml 4.11 to 5.1.
    Until5_1,
    /// OCaml 5.2 and later.
    Since5_2,
}

/// A trace keeps at most this many places for one code.
const MAX_INLINED: usize = 255;

/// The longest name that is shown; longer ones are cut.
const MAX_NAME: usize = 1024;

/// Emits the places of the entry at `address`, outermost first. False, and
/// nothing is emitted, if the entry or a name cannot be read or more than 255
/// calls are inlined.
pub fn locate(
    memory: &dyn Memory,
    address: u64,
    packing: Packing,
    emit: &mut dyn FnMut(Place<'_>),
) -> bool {
    let Some(entries) = entries(memory, address, packing) else {
        return false;
    };
    for entry in entries.iter().rev() {
        emit(Place {
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

/// What the bits of an entry say.
#[derive(Debug, PartialEq, Eq)]
struct Chars {
    line: u32,
    start_char: u32,
    end_char: u32,
    /// Where in the record of names the definition begins.
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

/// The NUL-terminated text at `address`, cut at [`MAX_NAME`].
fn read_name(memory: &dyn Memory, address: u64) -> Option<Vec<u8>> {
    /// Pieces end at multiples of this, so that none reaches into a page in
    /// which no byte of the name lies.
    const PIECE: u64 = 64;
    let mut name = Vec::new();
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes at an address.
    struct Bytes {
        start: u64,
        bytes: Vec<u8>,
    }

    impl Memory for Bytes {
        fn read(&self, address: u64, into: &mut [u8]) -> bool {
            let found = address.checked_sub(self.start).and_then(|from| {
                let from = usize::try_from(from).ok()?;
                self.bytes.get(from..from.checked_add(into.len())?)
            });
            found.map(|bytes| into.copy_from_slice(bytes)).is_some()
        }
    }

    /// A place as the compiler knows it (`Debuginfo.item`).
    #[derive(Clone, Debug)]
    struct Item {
        file: String,
        definition: String,
        line: u64,
        /// How many lines further it ends.
        lines: u64,
        start: u64,
        /// From the beginning of its first line to that of its last.
        bol: u64,
        /// From the beginning of its last line.
        end: u64,
    }

    /// What a reader should find.
    type Found = (String, u32, u32, u32, String);

    fn found(memory: &Bytes, packing: Packing) -> Option<Vec<Found>> {
        let mut places = Vec::new();
        let any = locate(memory, memory.start, packing, &mut |place| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let Place { file, line, start_char, end_char, function } = place;
            places.push((text(file), line, start_char, end_char, text(function)));
        });
        assert_eq!(any, !places.is_empty());
        any.then_some(places)
    }

    /// Lays entries out as `emit_debuginfo` in `asmcomp/emitaux.ml` does (4.14.1,
    /// 5.3.0), innermost first: the entries, then for each its file and names.
    fn lay_out(items: &[Item], packing: Packing) -> Bytes {
        let mut entries = Vec::new();
        let mut names = Vec::new();
        let names_start = 8 * items.len();
        for (index, item) in items.iter().enumerate() {
            let file = names.len();
            names.extend_from_slice(item.file.as_bytes());
            names.push(0);
            names.resize(names.len().next_multiple_of(4), 0);
            let record = names.len();
            let to_file = file as i32 - record as i32;
            names.extend_from_slice(&to_file.to_le_bytes());
            let next = u64::from(index + 1 < items.len());
            let packed = match packing {
                Packing::Until5_1 => {
                    item.line.min(0xf_ffff) << 44
                        | item.start.min(0xff) << 36
                        | (item.bol + item.end).min(0x3ff) << 26
                }
                Packing::Since5_2 if is_small(item) => {
                    item.line << 51
                        | item.lines << 48
                        | item.start << 42
                        | item.end << 35
                        | item.bol << 26
                }
                Packing::Since5_2 => {
                    names.extend_from_slice(&(item.start.min(0xffff) as u16).to_le_bytes());
                    names.extend_from_slice(&(item.end.min(0xffff) as u16).to_le_bytes());
                    let end = (item.bol + item.end).min(0x3fff_ffff) as u32;
                    names.extend_from_slice(&end.to_le_bytes());
                    1 << 63 | item.line.min(0x7_ffff) << 44 | item.lines.min(0x3_ffff) << 26
                }
            };
            names.extend_from_slice(item.definition.as_bytes());
            names.push(0);
            let distance = (names_start + record - 8 * index) as u64;
            entries.extend_from_slice(&(packed | distance | next).to_le_bytes());
        }
        entries.extend_from_slice(&names);
        // Names are read in whole pieces, up to the end of a page.
        entries.resize(entries.len().next_multiple_of(64), 0xee);
        Bytes { start: 0x40_0000, bytes: entries }
    }

    fn is_small(item: &Item) -> bool {
        item.line <= 0xfff
            && item.lines <= 7
            && item.start <= 0x3f
            && item.end <= 0x7f
            && item.bol <= 0x1ff
    }

    fn wanted(items: &[Item], packing: Packing) -> Vec<Found> {
        let place = |item: &Item| {
            let end = item.bol + item.end;
            let (line, start, end) = match packing {
                Packing::Until5_1 => {
                    (item.line.min(0xf_ffff), item.start.min(0xff), end.min(0x3ff))
                }
                Packing::Since5_2 if is_small(item) => (item.line, item.start, end),
                Packing::Since5_2 => {
                    (item.line.min(0x7_ffff), item.start.min(0xffff), end.min(0x3fff_ffff))
                }
            };
            (item.file.clone(), line as u32, start as u32, end as u32, item.definition.clone())
        };
        items.iter().rev().map(place).collect()
    }

    fn item() -> impl Strategy<Value = Item> {
        let small = (1..0x1000_u64, 0..8_u64, 0..64_u64, 0..0x200_u64, 0..0x80_u64);
        let large =
            (1..0x20_0000_u64, 0..0x10_0000_u64, 0..100_000_u64, 0..90_000_u64, 0..70_000_u64);
        ("[a-z/]{1,80}\\.ml", "[A-Z][A-Za-z_.()+]{0,150}", prop_oneof![small, large]).prop_map(
            |(file, definition, (line, lines, start, bol, end))| Item {
                file,
                definition,
                line,
                lines,
                start,
                bol,
                end,
            },
        )
    }

    fn packing() -> impl Strategy<Value = Packing> {
        prop::sample::select(vec![Packing::Until5_1, Packing::Since5_2])
    }

    fn plain(line: u64) -> Item {
        let (file, definition) = ("a.ml".to_string(), "A.f".to_string());
        Item { file, definition, line, lines: 0, start: 1, bol: 0, end: 9 }
    }

    #[test]
    fn as_many_inlined_calls_as_a_trace_holds_and_no_more() {
        for packing in [Packing::Until5_1, Packing::Since5_2] {
            let most: Vec<Item> = (1..=255).map(plain).collect();
            assert_eq!(found(&lay_out(&most, packing), packing), Some(wanted(&most, packing)));
            let more: Vec<Item> = (1..=256).map(plain).collect();
            assert_eq!(found(&lay_out(&more, packing), packing), None);
        }
    }

    #[test]
    fn a_name_without_end_is_cut() {
        let long = Item { definition: "x".repeat(5000), ..plain(3) };
        let places = found(&lay_out(&[long], Packing::Until5_1), Packing::Until5_1).unwrap();
        assert_eq!(places[0].4, "x".repeat(MAX_NAME));
    }

    #[test]
    fn what_cannot_be_read_is_not_shown_in_part() {
        let items: Vec<Item> = (1..4).map(plain).collect();
        let whole = lay_out(&items, Packing::Since5_2);
        for length in 0..whole.bytes.len() - 64 {
            let cut = Bytes { start: whole.start, bytes: whole.bytes[..length].to_vec() };
            assert_eq!(found(&cut, Packing::Since5_2), None, "{length}");
        }
    }

    proptest! {
        #[test]
        fn what_the_compiler_packs_is_unpacked(
            items in prop::collection::vec(item(), 1..6),
            packing in packing(),
        ) {
            prop_assert_eq!(found(&lay_out(&items, packing), packing), Some(wanted(&items, packing)));
        }

        #[test]
        fn any_memory_is_decoded_without_a_panic(
            bytes in prop::collection::vec(prop_oneof![Just(0), Just(1), any::<u8>()], 0..4096),
            start in prop_oneof![Just(0), Just(u64::MAX - 100), any::<u64>()],
            packing in packing(),
        ) {
            if let Some(places) = found(&Bytes { start, bytes }, packing) {
                prop_assert!(places.len() <= MAX_INLINED);
            }
        }
    }
}
