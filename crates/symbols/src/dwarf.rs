//! Source lines and inlined functions from DWARF, through `addr2line`.
//!
//! Only the sections that a lookup needs are read. They are shared slices (`Arc`), so
//! that the context owns the bytes that it refers to, without `unsafe`. `addr2line`
//! parses a unit at the first lookup of an address in it and keeps the result: memory
//! is bounded by a multiple of the sections' size.
//!
//! Not guarded against: a malicious file in which thousands of inlined calls are nested
//! in each other, over which `addr2line` recurses. Whoever can put such a file among a
//! process's modules already runs code in it.

use std::sync::Arc;

use addr2line::{Context, Frame};
use gimli::{EndianArcSlice, LittleEndian, SectionId};

use crate::elf::Elf;
use crate::location::SourceLocation;
use crate::names::readable;
use crate::source::Budget;

type Reader = EndianArcSlice<LittleEndian>;

/// A trace stores at most this many locations for one code.
const MAX_FRAMES: usize = 255;

/// The sections that lines and inlined functions need.
const NEEDED: [SectionId; 10] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// The debug information of one module.
pub(crate) struct Dwarf {
    context: Context<Reader>,
    cost: u64,
}

impl Dwarf {
    /// Whether a file has debug information.
    pub(crate) fn is_in(elf: &Elf<'_>) -> bool {
        elf.section(SectionId::DebugInfo.name().as_bytes()).is_some()
    }

    /// Reads it, if the file has it and the budget suffices for all of it.
    pub(crate) fn read(elf: &Elf<'_>, budget: &mut Budget) -> Option<Dwarf> {
        if !Dwarf::is_in(elf) {
            return None;
        }
        let sections = NEEDED.iter().filter_map(|id| elf.section(id.name().as_bytes()));
        let size = sections.fold(0_u64, |sum, section| sum.saturating_add(section.size));
        let before = budget.left();
        // Checked before the first byte is read; compressed sections may turn out larger.
        if size > before {
            return None;
        }
        let sections = gimli::Dwarf::load(|id| section(elf, id, budget).ok_or(()));
        let context = sections.ok().and_then(|sections| Context::from_dwarf(sections).ok());
        let cost = before - budget.left();
        if context.is_none() {
            budget.give_back(cost);
        }
        context.map(|context| Dwarf { context, cost })
    }

    /// The bytes that it took from the budget.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Emits the locations of the instruction at `address`, outermost first. A
    /// function without a name gets `name()`, from the symbol table.
    pub(crate) fn locate(
        &self,
        address: u64,
        module: &[u8],
        name: impl FnOnce() -> Option<Vec<u8>>,
        emit: &mut dyn FnMut(SourceLocation<'_>),
    ) -> bool {
        let frames = self.frames(address);
        let mut name = Some(name);
        for frame in frames.iter().rev() {
            let raw = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            // Only the outermost function has a symbol, which is looked up at most once.
            let symbol = name.take().filter(|_| raw.is_none()).and_then(|name| name());
            let raw =
                raw.as_ref().map(|name| name.as_bytes()).or(symbol.as_deref()).unwrap_or(b"??");
            let location = frame.location.as_ref();
            let column = location.and_then(|location| location.column).unwrap_or(0);
            emit(SourceLocation {
                file: location.and_then(|l| l.file).map_or(module, str::as_bytes),
                line: location.and_then(|location| location.line).unwrap_or(0),
                start_char: column,
                end_char: column,
                function: &readable(raw),
            });
        }
        !frames.is_empty()
    }

    /// The frames of an instruction, innermost first; none if the information about
    /// them is damaged.
    fn frames(&self, address: u64) -> Vec<Frame<'_, Reader>> {
        let mut frames = Vec::new();
        // addr2line 0.27 adds 1 to the address. No instruction is there.
        if address == u64::MAX {
            return frames;
        }
        let Ok(mut found) = self.context.find_frames(address).skip_all_loads() else {
            return frames;
        };
        while frames.len() < MAX_FRAMES {
            match found.next() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return frames,
                Err(_) => break,
            }
        }
        Vec::new()
    }
}

/// A section's reader: empty if the file lacks the section, `None` if it cannot be
/// read.
fn section(elf: &Elf<'_>, id: SectionId, budget: &mut Budget) -> Option<Reader> {
    let found = NEEDED.contains(&id).then(|| elf.section(id.name().as_bytes())).flatten();
    let bytes = match found {
        Some(section) => elf.contents(section, budget)?,
        None => Arc::default(),
    };
    Some(Reader::new(bytes, LittleEndian))
}
