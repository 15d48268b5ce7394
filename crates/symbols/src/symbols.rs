//! The modules of a process, found by address.

use std::fs::File;
use std::io::Read;

use crate::location::SourceLocation;
use crate::maps::{self, Mapped, Mapping};
use crate::module::Module;
use crate::source::{Budget, Process};

/// The default limit on the bytes of symbols and debug information in memory.
pub const DEFAULT_LIMIT: u64 = 256 << 20;

/// The most that is read of `/proc/PID/maps`. A process has some 65,530 mappings at most
/// (`vm.max_map_count`), whose lines have about a hundred bytes.
const MAX_MAPS: u64 = 64 << 20;

/// Finds source locations for return addresses in a process.
///
/// For the writer thread: it allocates, reads files, and may take milliseconds for the
/// first lookup in a module. It holds no file open between lookups.
pub struct Symbols {
    process: Process,
    /// Executable mappings, in order of address.
    mappings: Vec<ModuleMapping>,
    modules: Vec<(Mapped, Module)>,
    budget: Budget,
}

/// A mapping and the index of its module.
struct ModuleMapping {
    start: u64,
    end: u64,
    offset: u64,
    module: Option<usize>,
}

impl Symbols {
    /// The modules of this process. Nothing is read yet.
    pub fn of_self() -> Symbols {
        Symbols::of_process(Process::This, DEFAULT_LIMIT)
    }

    /// The modules of a process. At most `limit` bytes of symbols and debug information
    /// are kept as they are in the files. What is parsed from them takes a multiple of
    /// the part that lookups needed. A module whose information does not fit is located
    /// by the next simpler kind of information.
    pub fn of_process(process: Process, limit: u64) -> Symbols {
        Symbols { process, mappings: Vec::new(), modules: Vec::new(), budget: Budget::new(limit) }
    }

    /// Emits the locations of the call that returns to `return_address`, outermost
    /// function first if calls were inlined. Emits nothing and returns false for an
    /// address in no file: garbage, or code generated at run time.
    ///
    /// The list of modules is read again if the address is in none of them (`dlopen`).
    /// A module that replaces another at the same addresses is not noticed: see
    /// [`Symbols::refresh`].
    pub fn locate(
        &mut self,
        return_address: u64,
        emit: &mut dyn FnMut(SourceLocation<'_>),
    ) -> bool {
        self.lookup(return_address, Module::locate, emit)
    }

    /// Like [`Symbols::locate`], but from symbols alone: for code that is known to have
    /// no DWARF, since reading a module's DWARF takes much longer than its symbols.
    pub fn name(&mut self, return_address: u64, emit: &mut dyn FnMut(SourceLocation<'_>)) -> bool {
        self.lookup(return_address, Module::name, emit)
    }

    fn lookup(
        &mut self,
        return_address: u64,
        query: impl FnOnce(&mut Module, u64, &mut Budget, &mut dyn FnMut(SourceLocation<'_>)),
        emit: &mut dyn FnMut(SourceLocation<'_>),
    ) -> bool {
        // The address of the call: a call at the end of a mapping returns beyond it.
        let call = return_address.wrapping_sub(1);
        let mut found = self.find(call);
        if found.is_none() {
            self.refresh();
            found = self.find(call);
        }
        let Some((module, offset)) = found.and_then(|known| {
            let offset = (call - known.start).wrapping_add(known.offset);
            Some((known.module?, offset))
        }) else {
            return false;
        };
        let Some((_, module)) = self.modules.get_mut(module) else {
            return false;
        };
        match module.linked_address(offset) {
            Some(linked) => query(module, linked.wrapping_add(1), &mut self.budget, emit),
            None => module.locate_offset(offset.wrapping_add(1), emit),
        }
        true
    }

    /// Reads the list of modules again. Keeps the information about modules that are
    /// still loaded, and drops that about others.
    pub fn refresh(&mut self) {
        let mut bytes = Vec::new();
        let maps = File::open(self.process.path("maps"));
        if maps.and_then(|maps| maps.take(MAX_MAPS).read_to_end(&mut bytes)).is_err() {
            return;
        }
        let mut old = std::mem::take(&mut self.modules);
        self.mappings.clear();
        for Mapping { start, end, offset, mapped } in maps::executable(self.process, &bytes) {
            let module = mapped.map(|mapped| self.module(mapped, &mut old));
            self.mappings.push(ModuleMapping { start, end, offset, module });
        }
        for (_, module) in old {
            self.budget.give_back(module.cost());
        }
    }

    /// The index of a module: listed already, moved from `old`, or new.
    fn module(&mut self, mapped: Mapped, old: &mut Vec<(Mapped, Module)>) -> usize {
        let listed = self.modules.iter().position(|(known, _)| *known == mapped);
        listed.unwrap_or_else(|| {
            let kept = old.iter().position(|(known, _)| *known == mapped);
            let entry = match kept {
                Some(index) => old.swap_remove(index),
                None => {
                    let module = Module::of_mapping(self.process, mapped.clone());
                    (mapped, module)
                }
            };
            self.modules.push(entry);
            self.modules.len() - 1
        })
    }

    fn find(&self, address: u64) -> Option<&ModuleMapping> {
        let after = self.mappings.partition_point(|known| known.start <= address);
        let known = self.mappings.get(after.checked_sub(1)?)?;
        (address < known.end).then_some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unloaded_module_returns_its_budget() {
        let program = std::env::current_exe().unwrap();
        let mut symbols = Symbols::of_self();
        let mut module = Module::of_file(&program);
        let mut locations = 0;
        module.locate(1, &mut symbols.budget, &mut |_| locations += 1);
        assert_eq!(locations, 1);
        let cost = module.cost();
        assert!(cost > 0);
        assert_eq!(symbols.budget.left(), DEFAULT_LIMIT - cost);

        let gone = Mapped { path: program, inode: 0, image: None };
        symbols.modules.push((gone, module));
        symbols.refresh();
        assert_eq!(symbols.budget.left(), DEFAULT_LIMIT);
        assert!(!symbols.modules.is_empty());
    }

    #[test]
    fn symbols_are_send() {
        fn is_send<T: Send>() {}
        is_send::<Symbols>();
    }
}
