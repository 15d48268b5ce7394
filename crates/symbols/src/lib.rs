//! Return addresses to source locations.
//!
//! For the writer thread of the plugin, inside the traced process, and for the
//! tools. It allocates and reads files, so never on a mutator. No `unsafe`, no
//! panic on any file, memory bounded by a stated limit.
//!
//! | module | job |
//! |---|---|
//! | [`Symbols`] | the modules of a process, found by address |
//! | [`Module`] | one module: DWARF, else its symbol table, else its name and an address |
//! | `maps` | `/proc/PID/maps` |
//! | `mapped_file` | the file that a mapping is of |
//! | `source` | bytes of a module: a file, memory, or at hand; the memory limit |
//! | `elf` | headers and sections of an ELF file |
//! | `debug_file` | the separate file with a stripped module's debug information |
//! | `dwarf` | lines and inlined functions, through `addr2line` |
//! | `symbol_table`, `symbol_names` | functions by address |
//! | [`names`] | mangled names made readable: OCaml, C++, Rust |
//! | [`ocaml_debuginfo`] | the debug information in OCaml's own frame tables |
//!
//! `symbols → module → {dwarf, symbol_table, debug_file} → elf → source`; `names`
//! and `ocaml_debuginfo` stand alone.

mod debug_file;
mod dwarf;
mod elf;
mod mapped_file;
mod maps;
mod module;
pub mod names;
pub mod ocaml_debuginfo;
mod source;
mod symbol_names;
mod symbol_table;
mod symbols;

pub use module::Module;
pub use source::{Budget, Process};
pub use symbols::{DEFAULT_LIMIT, Symbols};

/// A place in a program's source, as a trace has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The file's name as the compiler had it; the module's when that is unknown.
    pub file: &'a [u8],
    /// The line, from 1; 0 when it is unknown.
    pub line: u32,
    /// Where in the line it begins. OCaml counts from 0; DWARF from 1, with 0
    /// for unknown.
    pub start_char: u32,
    /// Where it ends, counted from the beginning of the first line. DWARF knows
    /// only the beginning.
    pub end_char: u32,
    /// The function's name, readable.
    pub function: &'a [u8],
}
