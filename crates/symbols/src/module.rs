//! One module: a program, a shared object, the vdso.
//!
//! Everything is read on demand: its headers at the first lookup; its DWARF, or that of
//! its separate debug file, at the first lookup of a location; its symbol table if DWARF
//! has no answer, or at the first lookup of a name. A read that fails is not repeated.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::debug_file;
use crate::dwarf::Dwarf;
use crate::elf::{Elf, Segment, linked_address};
use crate::location::SourceLocation;
use crate::mapped_file;
use crate::maps::Mapped;
use crate::names::readable;
use crate::source::{Budget, Origin, Process};
use crate::symbol_table::SymbolTable;

/// A module, and the parts that have been read.
pub struct Module {
    /// The last part of its path, for locations.
    name: Vec<u8>,
    /// Its path, to look for a debug file near it.
    path: Option<PathBuf>,
    bytes: Bytes,
    headers: Option<Headers>,
    /// `None` before it was read; `Some(None)` if it has none.
    dwarf: Option<Option<Dwarf>>,
    symbols: LazySymbols,
}

/// The origin of a module's bytes.
enum Bytes {
    At(Origin),
    /// In the file that was mapped, which is found at the first lookup.
    Mapped(Process, Mapped),
}

/// What the first lookup reads.
#[derive(Default)]
struct Headers {
    origin: Option<Origin>,
    segments: Vec<Segment>,
    /// Its separate debug file, if it has no DWARF itself and there is one.
    debug_file: Option<Origin>,
}

/// The symbol table, read when it is first needed; `None` if there is none.
#[derive(Default)]
struct LazySymbols(OnceCell<Option<SymbolTable>>);

impl LazySymbols {
    /// The function that covers `address`, from the most complete table.
    fn find(
        &self,
        address: u64,
        [module, debug_file]: [Option<&Origin>; 2],
        budget: &mut Budget,
    ) -> Option<Vec<u8>> {
        let table = self.0.get_or_init(|| {
            let mut read = |origin: Option<&Origin>, name: &[u8]| {
                let source = origin?.open()?;
                SymbolTable::read(&Elf::open(&*source)?, origin?, name, budget)
            };
            read(module, b".symtab")
                .or_else(|| read(debug_file, b".symtab"))
                .or_else(|| read(module, b".dynsym"))
        });
        table.as_ref()?.find(address)
    }
}

impl Module {
    /// The module in a file.
    pub fn of_file(path: &Path) -> Module {
        Module::new(path, Bytes::At(Origin::File(path.to_path_buf())))
    }

    /// The module in these bytes, called `name`. A separate debug file is only found by
    /// build id.
    pub fn of_bytes(name: &str, bytes: Arc<[u8]>) -> Module {
        Module { path: None, ..Module::new(Path::new(name), Bytes::At(Origin::Bytes(bytes))) }
    }

    /// A module that a process has mapped.
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
            symbols: LazySymbols::default(),
        }
    }

    /// The linked address of the byte at `offset` in the file, for [`Module::locate`].
    pub fn linked_address(&mut self, offset: u64) -> Option<u64> {
        linked_address(&self.headers().segments, offset)
    }

    /// Emits the locations of the call that returns to the linked address `address`,
    /// outermost first: from DWARF, else the function's symbol and the module, else the
    /// module and the address in it.
    pub fn locate(
        &mut self,
        address: u64,
        budget: &mut Budget,
        emit: &mut dyn FnMut(SourceLocation<'_>),
    ) {
        // The return address may already belong to the next function.
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

    /// Like [`Module::locate`], but does not read DWARF.
    pub fn name(
        &mut self,
        address: u64,
        budget: &mut Budget,
        emit: &mut dyn FnMut(SourceLocation<'_>),
    ) {
        let call = address.wrapping_sub(1);
        self.headers();
        let Module { name, headers, symbols, .. } = self;
        let headers = headers.get_or_insert_default();
        let location =
            SourceLocation { file: name, line: 0, start_char: 0, end_char: 0, function: b"" };
        match symbols.find(call, headers.origins(), budget) {
            Some(symbol) => emit(SourceLocation { function: &readable(&symbol), ..location }),
            None => emit(SourceLocation { function: &with_offset(name, address), ..location }),
        }
    }

    /// Emits the module and an address in it.
    pub(crate) fn locate_offset(&self, offset: u64, emit: &mut dyn FnMut(SourceLocation<'_>)) {
        let function = &with_offset(&self.name, offset);
        emit(SourceLocation { file: &self.name, line: 0, start_char: 0, end_char: 0, function });
    }

    /// The bytes that it took from the budget.
    pub(crate) fn cost(&self) -> u64 {
        let symbols = self.symbols.0.get().and_then(Option::as_ref);
        let dwarf = self.dwarf.as_ref().and_then(Option::as_ref);
        symbols.map_or(0, SymbolTable::cost) + dwarf.map_or(0, Dwarf::cost)
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
