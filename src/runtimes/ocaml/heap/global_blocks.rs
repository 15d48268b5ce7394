//! Which blocks of the heap hold the variables of a bytecode program.

use super::NO_MEMORY;
use super::seen::SeenSet;
use super::words::{Words, is_pointer};
use crate::runtimes::ocaml::bytecode::{GlobalUnits, Unit};
use crate::snapshot::WalkError;

/// The tag of a structure.
const STRUCTURE: u8 = 0;

/// The blocks that hold variables.
pub(crate) struct GlobalBlocks {
    /// The table of globals.
    pub(super) table: usize,
    /// Slots that the linker has given: the table holds what they lead to.
    pub(super) linked: usize,
    /// The blocks of units.
    units: SeenSet,
}

impl GlobalBlocks {
    /// `global_data` is the value of `caml_global_data`. `None` before the program has begun.
    pub(crate) fn find(
        words: Words,
        global_data: usize,
        known: Option<&GlobalUnits>,
    ) -> Result<Option<GlobalBlocks>, WalkError> {
        if !is_pointer(global_data) || global_data == 0 {
            return Ok(None);
        }
        let units = known.map_or(&[][..], |known| &known.units);
        // Half of the places of a set stay empty.
        let bits = (units.len() * 2 + 1).next_power_of_two().ilog2().max(6);
        let set = SeenSet::new(bits).ok_or(NO_MEMORY)?;
        let size = words.header(global_data).size();
        let linked = known.map_or(0, |known| known.slots.min(size));
        let mut blocks = GlobalBlocks { table: global_data, linked, units: set };
        for unit in units {
            if let Some(block) = blocks.block_of(words, unit) {
                blocks.units.insert(block as u64);
            }
        }
        Ok(Some(blocks))
    }

    /// The block of a unit. An exception has another tag, and a unit that has not begun has none.
    pub(super) fn block_of(&self, words: Words, unit: &Unit) -> Option<usize> {
        let is_slot = unit.slot < self.linked;
        let value = is_slot.then(|| words.field(self.table, unit.slot))?;
        let is_block = is_pointer(value) && words.header(value).tag() == STRUCTURE;
        is_block.then_some(value)
    }

    /// How many of the fields of a block, from the first, are pointers of the block itself.
    #[inline]
    pub(super) fn own_fields(&self, block: usize, size: usize) -> usize {
        if block == self.table {
            self.linked
        } else if self.units.contains(block as u64) {
            0
        } else {
            size
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of these fields, which stays.
    fn block(tag: usize, fields: &[usize]) -> usize {
        let words: Vec<usize> =
            std::iter::once(fields.len() << 10 | tag).chain(fields.iter().copied()).collect();
        words.leak().as_ptr() as usize + size_of::<usize>()
    }

    #[test]
    fn units_have_no_pointers_of_their_own_and_the_table_those_to_them() {
        let (exception, unit, literal) =
            (block(248, &[1, 1]), block(0, &[1, 3, 5]), block(252, &[0]));
        let loaded = block(0, &[1]);
        let table = block(0, &[exception, literal, unit, 1, loaded]);
        let named = |slot, name: &str| Unit { slot, name: name.into() };
        let units =
            vec![named(0, "Not_found"), named(2, "Main"), named(3, "Later"), named(9, "Lost")];
        let known = GlobalUnits { slots: 4, units };
        // SAFETY: words of this test, which stay.
        let words = unsafe { Words::at_rest() };
        let blocks = GlobalBlocks::find(words, table, Some(&known)).unwrap().unwrap();
        let own = |at| blocks.own_fields(at, 3);
        assert_eq!([own(unit), own(table), own(exception), own(literal)], [0, 4, 3, 3]);
        let unknown = GlobalBlocks::find(words, table, None).unwrap().unwrap();
        assert_eq!((unknown.own_fields(table, 5), unknown.own_fields(unit, 3)), (0, 3));
        assert!(GlobalBlocks::find(words, 1, Some(&known)).unwrap().is_none());
    }
}
