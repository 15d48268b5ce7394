//! The functions that an ELF symbol table names, by address.
//!
//! A symbol covers its size, or, if it has none (assembly without `.size`), everything
//! up to the next symbol; never more than its section. Of several that cover an
//! address, the nearest one before it is chosen; of several at one address, a function
//! before a label, a sized before an unsized one, a global before a weak before a local
//! one.

use std::cmp::Reverse;
use std::ops::Range;

use object::LittleEndian;
use object::elf::{SHN_UNDEF, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Sym64};
use object::pod::slice_from_bytes;

use crate::elf::{Elf, Section};
use crate::source::{Budget, Origin};
use crate::symbol_names::Names;

const LE: LittleEndian = LittleEndian;

/// One named function.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    start: u64,
    /// One past its last byte, within its section. The start, for a symbol without a
    /// size, until [`give_ends`].
    end: u64,
    /// The offset of its name in the string table.
    name: u32,
    /// Of several symbols at one address the one with the lowest rank is chosen.
    rank: u8,
}

impl Symbol {
    /// Of several symbols that cover an address the least is chosen.
    fn order(&self) -> impl Ord + use<> {
        // The nearest, unless it is a label inside a function.
        (self.rank >= LABEL, Reverse(self.start), self.rank, self.name)
    }
}

/// The lowest rank of a label, that is of a symbol that is no function.
const LABEL: u8 = 8;

/// The functions of one symbol table.
pub(crate) struct SymbolTable {
    /// Ordered by start.
    symbols: Vec<Symbol>,
    /// For each symbol the greatest end of it and all before it. A search stops where
    /// this is not beyond the address.
    reach: Vec<u64>,
    names: Names,
    cost: u64,
}

impl SymbolTable {
    /// Reads the table in the section of that name (`.symtab`, `.dynsym`) of `elf`,
    /// which was opened from `origin`.
    pub(crate) fn read(
        elf: &Elf<'_>,
        origin: &Origin,
        name: &[u8],
        budget: &mut Budget,
    ) -> Option<SymbolTable> {
        let before = budget.left();
        let table = SymbolTable::read_within(elf, origin, name, budget);
        let cost = before - budget.left();
        if table.is_none() {
            budget.give_back(cost);
        }
        table.map(|table| SymbolTable { cost, ..table })
    }

    fn read_within(
        elf: &Elf<'_>,
        origin: &Origin,
        name: &[u8],
        budget: &mut Budget,
    ) -> Option<SymbolTable> {
        let section = elf.section(name)?;
        let names = elf.sections.get(section.link as usize)?;
        let names = Names::of(elf, origin, names, budget)?;
        let executable = elf.sections.iter().filter(|section| section.executable);
        let sections = Sections::of(executable.map(Section::addresses).collect());
        let size = size_of::<Sym64<LittleEndian>>();
        let stored = elf.stored_at(section).filter(|_| section.size <= budget.left());
        // Capacity that is not used takes no memory; growing would copy.
        let mut symbols = Vec::with_capacity(stored.map_or(0, |_| section.size as usize / size));
        let read = elf.pieces(section, size, budget, &mut |piece| {
            if let Ok((piece, _)) = slice_from_bytes(piece, piece.len() / size) {
                symbols.extend(piece.iter().filter_map(|symbol| function(symbol, &sections)));
            }
        });
        remove_assembler_labels(&mut symbols, elf, &names);
        if !read || symbols.is_empty() {
            return None;
        }
        let mut symbols = in_order(&symbols);
        let reach = give_ends(&mut symbols, &sections);
        Some(SymbolTable { symbols, reach, names, cost: 0 })
    }

    /// The bytes that it took from the budget.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// The name of the function that covers `address`.
    pub(crate) fn find(&self, address: u64) -> Option<Vec<u8>> {
        self.names.read(self.covering(address)?.name)
    }

    fn covering(&self, address: u64) -> Option<&Symbol> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= address);
        let before = self.symbols.get(..after)?.iter().zip(self.reach.get(..after)?).rev();
        before
            .take_while(|(_, reach)| **reach > address)
            .filter(|(symbol, _)| symbol.end > address)
            .map(|(symbol, _)| symbol)
            .min_by_key(|symbol| symbol.order())
    }
}

/// The executable sections.
struct Sections {
    sections: Vec<Range<u64>>,
    /// From the lowest to the highest of them.
    all: Range<u64>,
}

impl Sections {
    fn of(sections: Vec<Range<u64>>) -> Sections {
        let start = sections.iter().map(|section| section.start).min().unwrap_or(0);
        let end = sections.iter().map(|section| section.end).max().unwrap_or(0);
        Sections { sections, all: start..end }
    }

    /// The end of the section that holds this address.
    fn end(&self, address: u64) -> Option<u64> {
        // Most symbols are data.
        if !self.all.contains(&address) {
            return None;
        }
        let section = self.sections.iter().find(|section| section.contains(&address))?;
        Some(section.end)
    }
}

/// The symbols, sorted by start. A bucket sort: starts are spread evenly, so with about
/// as many buckets as symbols few are left to sort in each.
fn in_order(symbols: &[Symbol]) -> Vec<Symbol> {
    let mut ordered = symbols.to_vec();
    let starts = || symbols.iter().map(|symbol| symbol.start);
    let (Some(low), Some(high)) = (starts().min(), starts().max()) else { return ordered };
    let bits = u64::BITS - (high - low).leading_zeros();
    let shift = bits.saturating_sub(symbols.len().ilog2());
    let bucket = |symbol: &Symbol| ((symbol.start - low) >> shift) as usize;
    // First the size of each bucket, then the index at which its next symbol goes.
    let mut indices = vec![0; ((high - low) >> shift) as usize + 1];
    symbols.iter().for_each(|symbol| indices[bucket(symbol)] += 1);
    let mut next = 0;
    for index in &mut indices {
        next += std::mem::replace(index, next);
    }
    for symbol in symbols {
        let index = &mut indices[bucket(symbol)];
        ordered[*index] = *symbol;
        *index += 1;
    }
    let mut from = 0;
    for to in indices {
        ordered[from..to].sort_unstable_by_key(|symbol| symbol.start);
        from = to;
    }
    ordered
}

/// Gives an end to each of the sorted symbols that has no size, and returns
/// [`SymbolTable::reach`].
fn give_ends(symbols: &mut [Symbol], sections: &Sections) -> Vec<u64> {
    // From the last to the first: the start of the next one at a later address.
    let mut next = u64::MAX;
    let mut last = u64::MAX;
    for symbol in symbols.iter_mut().rev() {
        if symbol.start != last {
            next = std::mem::replace(&mut last, symbol.start);
        }
        if symbol.end == symbol.start {
            symbol.end = sections.end(symbol.start).map_or(next, |end| end.min(next));
        }
    }
    let mut reach = 0;
    let reaches = symbols.iter().map(|symbol| {
        reach = symbol.end.max(reach);
        reach
    });
    reaches.collect()
}

/// Removes local labels, and the mapping symbols of ARM and RISC-V.
fn remove_assembler_labels(symbols: &mut Vec<Symbol>, elf: &Elf<'_>, names: &Names) {
    let mut labels: Vec<(u32, usize)> = (0..)
        .zip(&*symbols)
        .filter(|(_, symbol)| symbol.rank >= LABEL)
        .map(|(index, symbol)| (symbol.name, index))
        .collect();
    labels.sort_unstable();
    let beginnings = names.beginnings(elf, labels.iter().map(|(name, _)| *name));
    let is_assembler_label =
        |[first, second]: [u8; 2]| first == 0 || first == b'$' || [first, second] == *b".L";
    let labels = labels.iter().zip(beginnings);
    for ((_, index), _) in labels.filter(|(_, beginning)| is_assembler_label(*beginning)) {
        symbols[*index].name = 0;
    }
    symbols.retain(|symbol| symbol.name != 0);
}

/// The symbol, if it names code.
fn function(symbol: &Sym64<LittleEndian>, sections: &Sections) -> Option<Symbol> {
    let kind = symbol.st_type();
    let is_function = kind == STT_FUNC || kind == STT_GNU_IFUNC;
    if symbol.st_shndx.get(LE) == SHN_UNDEF || !is_function && kind != STT_NOTYPE {
        return None;
    }
    let start = symbol.st_value.get(LE);
    // By address: tools that remove sections leave stale indices in .dynsym.
    let limit = sections.end(start)?;
    // Offset 0 is the empty name.
    let name = Some(symbol.st_name.get(LE)).filter(|&name| name != 0)?;
    let size = symbol.st_size.get(LE);
    let binding = symbol.st_bind();
    let rank = if is_function { 0 } else { LABEL }
        + if size > 0 { 0 } else { 4 }
        + if binding == STB_GLOBAL {
            0
        } else if binding == STB_WEAK {
            1
        } else {
            2
        };
    let end = start.saturating_add(size).min(limit);
    Some(Symbol { start, end, name, rank })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    /// A symbol as [`function`] makes them, in one of two sections.
    fn symbol() -> impl Strategy<Value = Symbol> {
        let sizes = prop_oneof![Just(0), 1..40_u64, Just(u64::MAX)];
        (10..200_u64, sizes, 0..8_u8, 0..50_u32).prop_map(|(at, size, rank, name)| {
            let (start, limit) = if at < 100 { (at, 100) } else { (at + 50, 250) };
            let end = start.saturating_add(size).min(limit);
            let rank = rank & 3 | if size == 0 { 4 } else { 0 } | (rank & 4) << 1;
            Symbol { start, end, name, rank }
        })
    }

    /// The oracle: a scan of all symbols.
    fn covering<'a>(symbols: &'a [Symbol], sections: &Sections, at: u64) -> Option<&'a Symbol> {
        let before = || symbols.iter().filter(|symbol| symbol.start <= at);
        let nearest = before().map(|symbol| symbol.start).max()?;
        let limit = sections.end(nearest)?;
        let covers = |symbol: &&Symbol| {
            let up_to_next = symbol.end == symbol.start && symbol.start == nearest;
            at < symbol.end || up_to_next && at < limit
        };
        before().filter(covers).min_by_key(|symbol| symbol.order())
    }

    proptest! {
        #[test]
        fn the_same_symbol_is_chosen_as_by_a_scan(
            symbols in proptest::collection::vec(symbol(), 1..40),
        ) {
            let sections = Sections::of(vec![10..100, 150..250]);
            let mut ordered = in_order(&symbols);
            let reach = give_ends(&mut ordered, &sections);
            let table = SymbolTable { symbols: ordered, reach, names: Names::Kept(Arc::default()), cost: 0 };
            let found = |symbol: Option<&Symbol>| symbol.map(|symbol| (symbol.start, symbol.name));
            for at in 0..300 {
                let wanted = found(covering(&symbols, &sections, at));
                prop_assert_eq!(found(table.covering(at)), wanted, "at {}", at);
            }
        }

        #[test]
        fn a_bucket_sort_sorts(
            starts in prop_oneof![
                proptest::collection::vec(any::<u64>(), 1..200),
                proptest::collection::vec(0..40_u64, 1..200),
                proptest::collection::vec(prop_oneof![Just(0), Just(u64::MAX)], 1..20),
            ],
        ) {
            let symbol = |(name, &start)| Symbol { start, end: start, name, rank: 0 };
            let symbols: Vec<_> = (0..).zip(&starts).map(symbol).collect();
            let ordered = in_order(&symbols);
            prop_assert!(ordered.is_sorted_by_key(|symbol| symbol.start));
            let mut names: Vec<_> = ordered.iter().map(|symbol| symbol.name).collect();
            names.sort_unstable();
            prop_assert!(names.into_iter().eq(0..starts.len() as u32));
        }
    }
}
