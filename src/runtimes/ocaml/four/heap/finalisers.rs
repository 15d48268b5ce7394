//! Finalisers and ephemerons.
//!
//! `caml_final_do_roots` reports the functions of `Gc.finalise`, then those of
//! `Gc.finalise_last`, then function and value of those that are due (`runtime/finalise.c`,
//! 4.14.1). A function is the first word of a `struct final`, and the value the second. Where
//! the first table ends is in variables that have no symbols; the functions that register
//! finalisers refer to them.

use heaptap_heap::FinaliserKind;

use super::variables::Variables;
use crate::runtimes::ocaml::heap::scan::scan;
use crate::runtimes::ocaml::heap::{BlockWriter, FINALISER_WORDS, Words};
use crate::snapshot::WalkError;
use crate::tracer::WORD;

/// Writes finalisers and ephemerons.
pub(super) fn write(
    variables: &Variables,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    write_finalisers(variables, writer)?;
    let words = writer.words;
    let none = words.word(variables.ephemeron_none);
    writer.ephemerons(words.word(variables.ephemerons), none)
}

fn write_finalisers(
    variables: &Variables,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    let words = writer.words;
    let tables = variables.register_finaliser.map(|function| Table::used_by(function, words));
    let mut kinds = Kinds { tables, table: 0, entry: 0 };
    // The slot of the function whose value comes next, because it is due.
    let mut due = 0;
    scan(|action| (variables.scan_finalisers)(action), &mut |value, slot| {
        let (kind, function) = if due != 0 && slot == due + WORD {
            (FinaliserKind::Pending, words.word(std::mem::take(&mut due)))
        } else if let Some(kind) = kinds.next(slot) {
            (kind, value)
        } else {
            due = slot;
            return Ok(());
        };
        let finalised = if kind == FinaliserKind::Pending { value } else { words.field(slot, 1) };
        writer.finaliser(kind, function, finalised)
    })
}

/// Tells the kinds of finalisers apart, in the order in which they are reported.
struct Kinds {
    /// First and last.
    tables: [Option<Table>; 2],
    /// The table that is being reported.
    table: usize,
    /// How many entries of it were.
    entry: usize,
}

impl Kinds {
    /// The kind of the entry at `slot`; `None` if it is in neither table.
    fn next(&mut self, slot: usize) -> Option<FinaliserKind> {
        const KINDS: [FinaliserKind; 2] = [FinaliserKind::First, FinaliserKind::Last];
        while let Some(table) = self.tables.get(self.table) {
            let table = table.as_ref()?;
            if self.entry < table.entries {
                let is_next = slot == table.start + self.entry * FINALISER_WORDS * WORD;
                self.entry += 1;
                return KINDS.get(self.table).copied().filter(|_| is_next);
            }
            (self.table, self.entry) = (self.table + 1, 0);
        }
        None
    }
}

/// `struct finalisable`: table, old, young, size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Table {
    start: usize,
    /// `young`
    entries: usize,
}

impl Table {
    /// The table to which a function adds: its first argument in the call of
    /// `generic_final_register`.
    fn used_by(function: usize, words: Words) -> Option<Table> {
        const LENGTH: usize = 64;
        let code = words.bytes(function, LENGTH);
        let at = structure(code, function)?;
        let [start, old, young, size] = [0, 1, 2, 3].map(|index| words.field(at, index));
        (old <= young && young <= size).then_some(Table { start, entries: young })
    }
}

/// The address that the code at `address` loads into `rdi`: `lea rdi, [rip + disp32]`, or
/// `mov edi, imm32`.
fn structure(code: &[u8], address: usize) -> Option<usize> {
    code.windows(7).enumerate().find_map(|(at, bytes)| match *bytes {
        [0x48, 0x8d, 0x3d, a, b, c, d] => {
            let distance = i32::from_le_bytes([a, b, c, d]) as isize;
            Some(address.wrapping_add(at + 7).wrapping_add_signed(distance))
        }
        [0xbf, a, b, c, d, ..] => Some(u32::from_le_bytes([a, b, c, d]) as usize),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_says_where_the_table_is() {
        // sub rsp, 8; mov rdx, rsi; mov rsi, rdi; lea rdi, [rip + 0x1000]; call
        let code = [
            0x48, 0x83, 0xec, 8, 0x48, 0x89, 0xf2, 0x48, 0x89, 0xfe, 0x48, 0x8d, 0x3d, 0, 0x10, 0,
            0, 0xe8, 0, 0, 0, 0,
        ];
        assert_eq!(structure(&code, 0x40_0000), Some(0x40_0000 + 17 + 0x1000));
        let fixed = [0x48, 0x89, 0xf2, 0xbf, 0x80, 0x10, 0x60, 0, 0x48, 0x89, 0xfe];
        assert_eq!(structure(&fixed, 0x40_0000), Some(0x60_1080));
        assert_eq!(structure(&[0x90; 64], 0x40_0000), None);
    }

    #[test]
    fn entries_are_told_apart_by_their_order() {
        let table = |start, entries| Some(Table { start, entries });
        let mut kinds = Kinds { tables: [table(0x100, 2), table(0x1000, 1)], table: 0, entry: 0 };
        assert_eq!(kinds.next(0x100), Some(FinaliserKind::First));
        assert_eq!(kinds.next(0x100 + FINALISER_WORDS * WORD), Some(FinaliserKind::First));
        assert_eq!(kinds.next(0x1000), Some(FinaliserKind::Last));
        assert_eq!(kinds.next(0x2000), None, "due");
    }
}
