//! The variables of a bytecode program.
//!
//! In native code modules are static data, and their fields are roots. In bytecode the table of
//! globals and the blocks of the units in it lie in the heap. A snapshot has them like native
//! code: the fields of a unit's block are roots, and the block itself has no pointers, so that a
//! variable holds what its field leads to, whoever else refers to the module. The table holds the
//! units' blocks and the constants of the program.

use heaptap_heap::RootOwner;

use super::blocks::BlockWriter;
use super::global_blocks::GlobalBlocks;
use crate::runtimes::ocaml::bytecode::GlobalUnits;
use crate::snapshot::WalkError;

/// Writes the roots. After the blocks.
pub(crate) fn write(
    blocks: &GlobalBlocks,
    known: Option<&GlobalUnits>,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    let words = writer.words;
    let mut module = 0;
    for unit in known.map_or(&[][..], |known| &known.units) {
        if let Some(block) = blocks.block_of(words, unit) {
            writer.encoder.module(module, &unit.name)?;
            write_fields(module, block, 0..words.header(block).size(), writer)?;
            module += 1;
        }
    }
    writer.encoder.module(module, b"constants")?;
    writer.root(RootOwner::Global { module, field: 0 }, blocks.table)?;
    let loaded = blocks.linked..words.header(blocks.table).size();
    if !loaded.is_empty() {
        // Of code that was loaded later, or all if no names are known.
        let name: &[u8] = if known.is_some() { b"plugins" } else { b"globals" };
        writer.encoder.module(module + 1, name)?;
        write_fields(module + 1, blocks.table, loaded, writer)?;
    }
    Ok(())
}

/// Fields of a block, as variables of a module.
fn write_fields(
    module: u32,
    block: usize,
    fields: std::ops::Range<usize>,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    let first = fields.start;
    for index in fields {
        let owner = RootOwner::Global { module, field: (index - first) as u32 };
        writer.root(owner, writer.words.field(block, index))?;
    }
    Ok(())
}
