//! The modules of a process, found by address.

use std::fs::File;
use std::io::Read;

use crate::Place;
use crate::maps::{self, Mapped, Mapping};
use crate::module::Module;
use crate::source::{Budget, Process};

/// How many bytes of symbols and debug information are kept in memory at most,
/// unless said otherwise.
pub const DEFAULT_LIMIT: u64 = 256 << 20;

/// A process has some 65,530 mappings at most (`vm.max_map_count`), of a hundred
/// bytes each; what is longer than this is not all read.
const MAX_MAPS: u64 = 64 << 20;

/// Finds source locations for return addresses in a process.
///
/// For the writer thread: it allocates, reads files, and may take milliseconds
/// when a module is first asked about. It holds no file open between questions.
pub struct Symbols {
    process: Process,
    /// Executable mappings, in order of address.
    mappings: Vec<Known>,
    modules: Vec<(Mapped, Module)>,
    budget: Budget,
}

/// A mapping, and which module it is of.
struct Known {
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

    /// The modules of a process, keeping at most `limit` bytes of symbols and debug information
    /// as they are in the files. What is parsed from them takes a multiple of
    /// the part that was asked about. A module for which there is no room shows
    /// what the next poorer kind of information has.
    pub fn of_process(process: Process, limit: u64) -> Symbols {
        Symbols { process, mappings: Vec::new(), modules: Vec::new(), budget: Budget::new(limit) }
    }

    /// Emits the places of the call that returns to `return_address`, outermost
    /// function first when calls were inlined. False, and nothing is emitted, for
    /// an address in no file: garbage, or code made while running.
    ///
    /// The list of modules is read again when the address is in none of them
    /// (`dlopen`). A module that was unloaded and replaced at the same addresses
    /// is not noticed: see [`Symbols::refresh`].
    pub fn locate(&mut self, return_address: u64, emit: &mut dyn FnMut(Place<'_>)) -> bool {
        self.ask(return_address, Module::locate, emit)
    }

    /// The same from symbols alone: for code that is known to have no DWARF,
    /// since reading a module's takes much longer than reading its symbols.
    pub fn name(&mut self, return_address: u64, emit: &mut dyn FnMut(Place<'_>)) -> bool {
        self.ask(return_address, Module::name, emit)
    }

    fn ask(
        &mut self,
        return_address: u64,
        question: impl FnOnce(&mut Module, u64, &mut Budget, &mut dyn FnMut(Place<'_>)),
        emit: &mut dyn FnMut(Place<'_>),
    ) -> bool {
        // Of the call: the last one may end where the mapping does.
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
            Some(linked) => question(module, linked.wrapping_add(1), &mut self.budget, emit),
            None => module.locate_offset(offset.wrapping_add(1), emit),
        }
        true
    }

    /// Reads again which modules are loaded where. What was read of those that
    /// are still there is kept, what was read of others is given up.
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
            self.mappings.push(Known { start, end, offset, module });
        }
        for (_, module) in old {
            self.budget.give_back(module.cost());
        }
    }

    /// The index of a module: already listed, or moved from `old`, or new.
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

    fn find(&self, address: u64) -> Option<&Known> {
        let after = self.mappings.partition_point(|known| known.start <= address);
        let known = self.mappings.get(after.checked_sub(1)?)?;
        (address < known.end).then_some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_is_gone_gives_its_room_back() {
        let program = std::env::current_exe().unwrap();
        let mut symbols = Symbols::of_self();
        let mut module = Module::of_file(&program);
        let mut places = 0;
        module.locate(1, &mut symbols.budget, &mut |_| places += 1);
        assert_eq!(places, 1);
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
    fn it_can_be_made_on_one_thread_and_used_on_another() {
        fn is_send<T: Send>() {}
        is_send::<Symbols>();
    }
}
