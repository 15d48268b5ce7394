//! Names of the program's modules.

use heaptap_heap::RootOwner;

use super::blocks::BlockWriter;
use super::words::Words;
use crate::runtimes::attach::symbols;
use crate::runtimes::ocaml::unit_name::readable;
use crate::snapshot::WalkError;
use crate::tracer::WORD;

/// A module of native code.
pub(crate) struct OcamlModule {
    /// Its zero-terminated list of blocks with roots: an element of `caml_globals`.
    pub(crate) blocks: usize,
    /// As it is named in sources, such as `Stdlib.Map`; its number if it is unknown.
    pub(crate) name: Vec<u8>,
}

/// The addresses of the fields of all blocks of a list, one after the other.
fn fields(list: usize, words: Words) -> impl Iterator<Item = usize> {
    let blocks = (0..).map(move |index| words.field(list, index)).take_while(|&block| block != 0);
    blocks.flat_map(move |block| {
        (0..words.header(block).size()).map(move |index| block + index * WORD)
    })
}

/// Writes modules and their fields. `value` is what a field holds, by its address.
pub(crate) fn write(
    modules: &[OcamlModule],
    writer: &mut BlockWriter<'_, '_>,
    mut value: impl FnMut(usize) -> Result<usize, WalkError>,
) -> Result<(), WalkError> {
    for (module, OcamlModule { blocks, name }) in (0..).zip(modules) {
        writer.encoder.module(module, name)?;
        for (field, slot) in (0..).zip(fields(*blocks, writer.words)) {
            writer.root(RootOwner::Global { module, field }, value(slot)?)?;
        }
    }
    Ok(())
}

/// The modules of the program, in the order in which they were linked. `globals` is the
/// address of `caml_globals`, a zero-terminated array that never changes.
///
/// Allocates. Not inside hooks.
pub(crate) fn of_program(globals: usize) -> Vec<OcamlModule> {
    let mut modules = Vec::new();
    let mut at = globals as *const usize;
    loop {
        // SAFETY: `value * caml_globals[]` is constant data that the compiler writes when a
        // program is linked, and 0 ends it (`asmcomp/asmlink.ml`).
        let blocks = unsafe { at.read() };
        if blocks == 0 {
            break;
        }
        modules.push(OcamlModule { blocks, name: format!("module {}", modules.len()).into() });
        at = at.wrapping_add(1);
    }
    let mut by_address: Vec<(usize, usize)> =
        modules.iter().enumerate().map(|(index, module)| (module.blocks, index)).collect();
    by_address.sort_unstable();
    symbols::for_each_beside(globals, |symbol, address| {
        let Some(name) = module_name(symbol) else { return };
        let Ok(found) = by_address.binary_search_by_key(&address, |&(blocks, _)| blocks) else {
            return;
        };
        if let Some(module) = by_address.get(found).and_then(|&(_, index)| modules.get_mut(index)) {
            module.name = name;
        }
    });
    modules
}

/// The module whose list of blocks has this symbol: `camlStdlib__Map__gc_roots`
/// (`asmcomp/cmm_helpers.ml`, 4.14.1), or `camlStdlib__Map.gc_roots`.
fn module_name(symbol: &[u8]) -> Option<Vec<u8>> {
    let name = symbol.strip_prefix(b"caml")?;
    let name = name.strip_suffix(b"__gc_roots").or_else(|| name.strip_suffix(b".gc_roots"))?;
    Some(readable(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_named_as_in_sources() {
        let name = |symbol: &str| {
            module_name(symbol.as_bytes()).map(|name| String::from_utf8(name).unwrap())
        };
        assert_eq!(name("camlStdlib__Map__gc_roots").as_deref(), Some("Stdlib.Map"));
        assert_eq!(name("camlMain__gc_roots").as_deref(), Some("Main"));
        assert_eq!(name("camlDune__exe__Main.gc_roots").as_deref(), Some("Dune.exe.Main"));
        assert_eq!(name("camlMain__code_begin"), None);
        assert_eq!(name("printf"), None);
    }
}
