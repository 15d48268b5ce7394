//! The functions that an ELF symbol table names, by address.
//!
//! A symbol covers its size, or, when it has none (assembly without `.size`),
//! everything up to the next symbol; never more than its section. Of several
//! that cover an address the nearest one before it answers; of several at one
//! address the most telling: a function before a label, a sized one before an
//! unsized one, a global before a weak before a local one.

use std::sync::Arc;

use object::LittleEndian;
use object::elf::{SHN_UNDEF, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Sym64};
use object::pod::slice_from_bytes;

use crate::elf::{Elf, Section};
use crate::source::Budget;

const LE: LittleEndian = LittleEndian;

/// One named function.
struct Symbol {
    start: u64,
    /// One past its last byte.
    end: u64,
    /// The greatest `end` among this symbol and all before it: a search may stop
    /// where this does not reach the address.
    reach: u64,
    /// Where its section ends.
    limit: u64,
    /// The smaller, the more telling.
    rank: u8,
    /// Where its name begins.
    name: u32,
}

/// The functions of one symbol table.
pub(crate) struct SymbolTable {
    /// Ordered by start, the most telling last among equals.
    symbols: Vec<Symbol>,
    names: Arc<[u8]>,
    cost: u64,
}

impl SymbolTable {
    /// Reads the table in the section of that name (`.symtab`, `.dynsym`).
    pub(crate) fn read(elf: &Elf<'_>, name: &[u8], budget: &mut Budget) -> Option<SymbolTable> {
        let section = elf.section(name)?;
        let strings = elf.sections.get(section.link as usize)?;
        let before = budget.left();
        let names = elf.contents(strings, budget)?;
        let Some(bytes) = elf.contents(section, budget) else {
            budget.give_back(before - budget.left());
            return None;
        };
        let count = bytes.len() / size_of::<Sym64<LittleEndian>>();
        let symbols = slice_from_bytes::<Sym64<LittleEndian>>(&bytes, count).ok()?.0;
        let executable = elf.sections.iter().filter(|section| section.executable);
        let executable: Vec<&Section> = executable.collect();
        let symbols = symbols.iter().filter_map(|symbol| function(symbol, &executable, &names));
        let symbols = with_ends(symbols.collect());
        let cost = before - budget.left();
        (!symbols.is_empty()).then_some(SymbolTable { symbols, names, cost })
    }

    /// What it took from the budget.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// The name of the function that covers `address`.
    pub(crate) fn find(&self, address: u64) -> Option<&[u8]> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= address);
        let before = self.symbols.get(..after)?;
        let found = before
            .iter()
            .rev()
            .take_while(|symbol| symbol.reach > address)
            .filter(|symbol| symbol.end > address)
            // The nearest, unless it is a label inside a function.
            .min_by_key(|symbol| (symbol.rank >= LABEL, std::cmp::Reverse(symbol.start)))?;
        name_at(&self.names, found.name)
    }
}

/// The least rank of what is no function but a bare label.
const LABEL: u8 = 8;

/// The symbol without its end if it names code.
fn function(symbol: &Sym64<LittleEndian>, executable: &[&Section], names: &[u8]) -> Option<Symbol> {
    let kind = symbol.st_type();
    let is_function = kind == STT_FUNC || kind == STT_GNU_IFUNC;
    if symbol.st_shndx.get(LE) == SHN_UNDEF || !is_function && kind != STT_NOTYPE {
        return None;
    }
    let start = symbol.st_value.get(LE);
    // By address: tools that remove sections leave the indices in .dynsym stale.
    let section = executable.iter().find(|section| section.holds(start))?;
    let name = symbol.st_name.get(LE);
    let text = names.get(name as usize..)?;
    // What assemblers leave: mapping symbols of ARM and RISC-V, local labels.
    if text.first().is_none_or(|&first| first == 0)
        || !is_function && (text.starts_with(b"$") || text.starts_with(b".L"))
    {
        return None;
    }
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
    Some(Symbol {
        start,
        end: start.saturating_add(size),
        reach: 0,
        limit: section.end(),
        rank,
        name,
    })
}

/// Orders the symbols and gives every one its end and its reach.
fn with_ends(mut symbols: Vec<Symbol>) -> Vec<Symbol> {
    symbols
        .sort_unstable_by_key(|symbol| (symbol.start, std::cmp::Reverse(symbol.rank), symbol.name));
    symbols.dedup_by(|later, earlier| later.start == earlier.start && later.rank == earlier.rank);
    // From the last to the first: the start of the next one at a later address.
    let mut next = u64::MAX;
    let mut last = u64::MAX;
    for symbol in symbols.iter_mut().rev() {
        if symbol.start != last {
            next = std::mem::replace(&mut last, symbol.start);
        }
        let end = if symbol.end == symbol.start { next } else { symbol.end };
        symbol.end = end.min(symbol.limit);
    }
    let mut reach = 0;
    for symbol in &mut symbols {
        reach = symbol.end.max(reach);
        symbol.reach = reach;
    }
    symbols
}

/// The name that begins at `start`, if it has one.
fn name_at(names: &[u8], start: u32) -> Option<&[u8]> {
    let rest = names.get(start as usize..)?;
    let name = rest.split(|&byte| byte == 0).next()?;
    (!name.is_empty()).then_some(name)
}
