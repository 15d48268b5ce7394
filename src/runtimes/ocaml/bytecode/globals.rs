//! Which slots of the table of globals are modules.
//!
//! `caml_global_data` is a block of the heap. The linker gives slots to predefined exceptions,
//! constants, and the blocks of compilation units, and writes a map from names to slots
//! (`global_table`, `bytecomp/symtable.ml`, 4.14.1 and 5.3.0): a record of the number of slots
//! and a tree of `Map.Make`. It is in section `SYMB` of the file, or, in an executable without
//! sections, in a table that the runtime keeps for `Dynlink`.
//!
//! Not inside hooks: allocates, and reads a file. Nothing in it is trusted.

use super::Code;
use super::file::BytecodeFile;
use super::marshal::{Value, Values};
use super::program;
use super::tree::Tree;
use crate::runtimes::attach::symbols;
use crate::runtimes::ocaml::unit_name::readable;
use crate::tracer::WORD;

/// More units than any program has: a tree with shared parts could have very many.
const MOST_UNITS: usize = 1 << 20;
/// More than any program's table of sections.
const LARGEST_TABLE: usize = 1 << 30;

/// A compilation unit, or a predefined exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Its slot in the table.
    pub(crate) slot: usize,
    /// As it is named in sources, such as `Stdlib.Map`.
    pub(crate) name: Vec<u8>,
}

/// The slots that the linker has given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GlobalUnits {
    /// How many there are; those of code that is loaded later come behind.
    pub(crate) slots: usize,
    /// By ascending slot.
    pub(crate) units: Vec<Unit>,
}

impl GlobalUnits {
    /// Those of the program that runs, once it has begun; `None` if they cannot be found.
    pub(crate) fn read(code: Code) -> Option<GlobalUnits> {
        let of_file = || GlobalUnits::of_file(&program::open(code)?);
        of_file().or_else(|| GlobalUnits::of_table(&section_table()?))
    }

    fn of_file(file: &BytecodeFile) -> Option<GlobalUnits> {
        let section = file.section(*b"SYMB")?;
        let values = Values::read(&section)?;
        GlobalUnits::of_map(&values, values.root)
    }

    /// Those in a table of sections: a list of pairs of name and contents in OCaml 4
    /// (`caml_get_section_table`, `runtime/meta.c`), an array of them in OCaml 5
    /// (`caml_dynlink_get_bytecode_sections`, `runtime/dynlink.c`).
    fn of_table(table: &[u8]) -> Option<GlobalUnits> {
        const MOST_SECTIONS: usize = 100;
        let values = Values::read(table)?;
        let contents = |pair: Value| {
            let is_map = values.string(values.field(pair, 0)?)? == b"SYMB";
            if is_map { values.field(pair, 1) } else { None }
        };
        let in_array = (0..MOST_SECTIONS)
            .map_while(|index| values.field(values.root, index))
            .find_map(contents);
        let in_list = || {
            let rest = |list: &Value| values.field(*list, 1);
            let lists = std::iter::successors(Some(values.root), rest).take(MOST_SECTIONS);
            lists.filter_map(|list| values.field(list, 0)).find_map(contents)
        };
        GlobalUnits::of_map(&values, in_array.or_else(in_list)?)
    }

    fn of_map(values: &Values<'_>, map: Value) -> Option<GlobalUnits> {
        let slots = usize::try_from(values.int(values.field(map, 0)?)?).ok()?;
        // Left, key, slot, right; then the height, which is of no interest.
        let mut units = Vec::new();
        let mut trees = vec![values.field(map, 1)?];
        while let Some(tree) = trees.pop() {
            let Some(left) = values.field(tree, 0) else { continue };
            // An `Ident.t` in OCaml 4, a `Global.t` in OCaml 5: both begin with the name.
            let name = values.string(values.field(values.field(tree, 1)?, 0)?)?;
            let slot = usize::try_from(values.int(values.field(tree, 2)?)?).ok()?;
            if slot >= slots || units.len() == MOST_UNITS {
                return None;
            }
            units.push(Unit { slot, name: readable(name) });
            trees.extend([left, values.field(tree, 3)?]);
        }
        units.sort_unstable_by_key(|unit| unit.slot);
        Some(GlobalUnits { slots, units })
    }
}

/// The sections of an executable that has the bytecode in its data (`ocamlc -output-obj` and
/// `-output-complete-exe`): `caml_section_table` (4.14.1, `runtime/meta.c`), or two fields of
/// `caml_params` (5.3.0, `runtime/caml/startup_aux.h`).
fn section_table() -> Option<Vec<u8>> {
    // SAFETY: variables of the runtime that hold a word.
    let word = |address: usize| unsafe { (address as *const usize).read_volatile() };
    let places = match symbols::lookup(c"caml_section_table") {
        Some(table) => (table, symbols::lookup(c"caml_section_table_size")?),
        None => {
            let params = word(symbols::lookup(c"caml_params")?);
            (params + WORD, params + 2 * WORD)
        }
    };
    let (table, size) = (word(places.0), word(places.1));
    if table == 0 || size > LARGEST_TABLE {
        return None;
    }
    // SAFETY: not NULL, so it is constant data of the program of that size, which the runtime has
    // recorded when it started.
    Some(unsafe { std::slice::from_raw_parts(table as *const u8, size) }.to_vec())
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::made;
    use super::super::marshal::tests::marshalled;
    use super::*;

    /// A map of 7 slots: the unit `Stdlib__Map` in 5, the exception `Not_found` in 2.
    fn map() -> Vec<u8> {
        let mut data = vec![0xA0, 0x47];
        // Node (Node (Empty, Predef ("Not_found", 1), 2, Empty, 1), …)
        data.extend([0xD0, 0xD0, 0x40, 0xA3, 0x29]);
        data.extend(b"Not_found");
        data.extend([0x41, 0x42, 0x40, 0x41]);
        data.extend([0x92, 0x2B]);
        data.extend(b"Stdlib__Map");
        data.extend([0x45, 0x40, 0x42]);
        data
    }

    fn expected() -> GlobalUnits {
        let unit = |slot, name: &str| Unit { slot, name: name.into() };
        GlobalUnits { slots: 7, units: vec![unit(2, "Not_found"), unit(5, "Stdlib.Map")] }
    }

    #[test]
    fn units_are_found_in_the_file() {
        let symbols = marshalled(&map());
        let file = made(&[(*b"CODE", b"12345678"), (*b"SYMB", &symbols)]);
        let file = BytecodeFile::read(file).unwrap();
        assert_eq!(GlobalUnits::of_file(&file), Some(expected()));
    }

    #[test]
    fn units_are_found_in_the_tables_of_both_versions() {
        let section =
            |name: &[u8; 4], contents: &[u8]| [&[0xA0, 0x24], &name[..], contents].concat();
        let (first, second) = (section(b"CRCS", &[0x40]), section(b"SYMB", &map()));
        let list = [&[0xA0], &first[..], &[0xA0], &second, &[0x40]].concat();
        let array = [&[0xA0], &first[..], &second].concat();
        for table in [list, array] {
            assert_eq!(GlobalUnits::of_table(&marshalled(&table)), Some(expected()));
        }
        assert_eq!(GlobalUnits::of_table(&marshalled(&[0x40])), None);
    }

    #[test]
    fn other_values_are_no_map() {
        for data in [&[0x40][..], &[0xA0, 0x47, 0xD0, 0x40, 0x40, 0x42, 0x40, 0x41], &[0xA0, 0x41]]
        {
            let input = marshalled(data);
            let units =
                Values::read(&input).and_then(|values| GlobalUnits::of_map(&values, values.root));
            assert_eq!(units, None, "{data:?}");
        }
        // A slot beyond the number of slots.
        let mut data = map();
        data[1] = 0x44;
        let input = marshalled(&data);
        let values = Values::read(&input).unwrap();
        assert_eq!(GlobalUnits::of_map(&values, values.root), None);
    }
}
