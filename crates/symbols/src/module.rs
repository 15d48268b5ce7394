//! One module: a program, a shared object, the vdso.
//!
//! Nothing is read before it is first asked about. Then its headers are, its DWARF
//! when a place is asked for, from itself or its separate debug file, and its
//! symbol table when DWARF has no answer or a name alone is asked for. What cannot
//! be read once is not tried again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Place;
use crate::debug_file;
use crate::dwarf::Dwarf;
use crate::elf::{Elf, Segment, linked_address};
use crate::mapped_file;
use crate::maps::Mapped;
use crate::names::readable;
use crate::source::{Budget, Origin, Process};
use crate::symbol_table::SymbolTable;

/// A module and what has been read of it so far.
pub struct Module {
    /// What is shown: the last part of its path.
    name: Vec<u8>,
    /// Its path, to look for a debug file near it.
    path: Option<PathBuf>,
    bytes: Bytes,
    headers: Option<Headers>,
    /// None before it was asked for.
    dwarf: Option<Option<Dwarf>>,
    symbols: Symbols,
}

/// Where a module's bytes are.
enum Bytes {
    At(Origin),
    /// In the file that was mapped, which is looked for at the first question.
    Mapped(Process, Mapped),
}

/// What the first question reads.
#[derive(Default)]
struct Headers {
    origin: Option<Origin>,
    segments: Vec<Segment>,
    /// Where its DWARF is, and its fullest symbol table may be: none if it has
    /// DWARF itself, or nobody has.
    debug_file: Option<Origin>,
}

/// The symbol table, once it was needed.
enum Symbols {
    NotAsked,
    Absent,
    Read(SymbolTable),
}

impl Symbols {
    /// The function that covers `address`, from the fullest table there is.
    fn find(
        &mut self,
        address: u64,
        [module, debug_file]: [Option<&Origin>; 2],
        budget: &mut Budget,
    ) -> Option<Vec<u8>> {
        if let Symbols::NotAsked = self {
            let mut read = |origin: Option<&Origin>, name: &[u8]| {
                let source = origin?.open()?;
                SymbolTable::read(&Elf::open(&*source)?, origin?, name, budget)
            };
            let table = read(module, b".symtab")
                .or_else(|| read(debug_file, b".symtab"))
                .or_else(|| read(module, b".dynsym"));
            *self = table.map_or(Symbols::Absent, Symbols::Read);
        }
        match self {
            Symbols::Read(table) => table.find(address),
            Symbols::NotAsked | Symbols::Absent => None,
        }
    }
}

impl Module {
    /// The module in a file.
    pub fn of_file(path: &Path) -> Module {
        Module::new(path, Bytes::At(Origin::File(path.to_path_buf())))
    }

    /// The module in these bytes, shown under `name`. It has no separate debug
    /// file but one found by build id.
    pub fn of_bytes(name: &str, bytes: Arc<[u8]>) -> Module {
        Module { path: None, ..Module::new(Path::new(name), Bytes::At(Origin::Bytes(bytes))) }
    }

    /// The module that a process has mapped.
    pub(crate) fn of_mapping(process: Process, mapped: Mapped) -> Module {
        Module::new(&mapped.path.clone(), Bytes::Mapped(process, mapped))
    }

    fn new(path: &Path, bytes: Bytes) -> Module {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Module {
            name: name.as_encoded_bytes().to_vec(),
            path: Some(path.to_path_buf()),
            bytes,
            headers: None,
            dwarf: None,
            symbols: Symbols::NotAsked,
        }
    }

    /// The address at which the file's byte `offset` is linked: what
    /// [`Module::locate`] asks for.
    pub fn linked_address(&mut self, offset: u64) -> Option<u64> {
        linked_address(&self.headers().segments, offset)
    }

    /// Emits the places of the call that returns to the linked address `address`,
    /// outermost first: from DWARF, else the function's symbol in the module,
    /// else the module and the address in it.
    pub fn locate(&mut self, address: u64, budget: &mut Budget, emit: &mut dyn FnMut(Place<'_>)) {
        // The call ends where the return address begins, maybe another function's.
        let call = address.wrapping_sub(1);
        self.read_dwarf(budget);
        let Module { name, headers, symbols, dwarf, .. } = self;
        let headers = headers.get_or_insert_default();
        if let Some(Some(dwarf)) = dwarf {
            let symbol = || symbols.find(call, headers.origins(), budget);
            if dwarf.locate(call, name, symbol, emit) {
                return;
            }
        }
        self.name(address, budget, emit);
    }

    /// The same without DWARF, which is not even read: the function's symbol in
    /// the module, else the module and the address in it.
    pub fn name(&mut self, address: u64, budget: &mut Budget, emit: &mut dyn FnMut(Place<'_>)) {
        let call = address.wrapping_sub(1);
        self.headers();
        let Module { name, headers, symbols, .. } = self;
        let headers = headers.get_or_insert_default();
        let place = Place { file: name, line: 0, start_char: 0, end_char: 0, function: b"" };
        match symbols.find(call, headers.origins(), budget) {
            Some(symbol) => emit(Place { function: &readable(&symbol), ..place }),
            None => emit(Place { function: &with_offset(name, address), ..place }),
        }
    }

    /// Emits the module and an address in it, when that is all that is known.
    pub(crate) fn locate_offset(&self, offset: u64, emit: &mut dyn FnMut(Place<'_>)) {
        let function = &with_offset(&self.name, offset);
        emit(Place { file: &self.name, line: 0, start_char: 0, end_char: 0, function });
    }

    /// How much of the budget it holds.
    pub(crate) fn cost(&self) -> u64 {
        let symbols = match &self.symbols {
            Symbols::Read(table) => table.cost(),
            Symbols::NotAsked | Symbols::Absent => 0,
        };
        symbols + self.dwarf.as_ref().and_then(Option::as_ref).map_or(0, Dwarf::cost)
    }

    fn headers(&mut self) -> &Headers {
        let (bytes, path) = (&self.bytes, self.path.as_deref());
        self.headers.get_or_insert_with(|| {
            let origin = match bytes {
                Bytes::At(origin) => Some(origin.clone()),
                Bytes::Mapped(process, mapped) => mapped_file::origin(*process, mapped),
            };
            origin.and_then(|origin| read_headers(origin, path)).unwrap_or_default()
        })
    }

    fn read_dwarf(&mut self, budget: &mut Budget) {
        if self.dwarf.is_none() {
            let [module, debug_file] = self.headers().origins();
            let read = |origin: &Origin| Dwarf::read(&Elf::open(&*origin.open()?)?, budget);
            self.dwarf = Some(debug_file.or(module).and_then(read));
        }
    }
}

impl Headers {
    /// The module's own bytes, and those of its debug file.
    fn origins(&self) -> [Option<&Origin>; 2] {
        [self.origin.as_ref(), self.debug_file.as_ref()]
    }
}

fn read_headers(origin: Origin, path: Option<&Path>) -> Option<Headers> {
    let source = origin.open()?;
    let elf = Elf::open(&*source)?;
    let debug_file = if Dwarf::is_in(&elf) { None } else { debug_file::find(&elf, path) };
    Some(Headers { origin: Some(origin), segments: elf.segments, debug_file })
}

fn with_offset(name: &[u8], offset: u64) -> Vec<u8> {
    let mut text = name.to_vec();
    text.extend_from_slice(format!("+{offset:#x}").as_bytes());
    text
}
