//! Return addresses to source locations.
//!
//! For the writer thread of the plugin, inside the traced process, and for tools. It
//! allocates and reads files, so it must not run on a mutator. It has no `unsafe`,
//! panics on no input, and keeps no more memory than its limit.
//!
//! The plugin also reads ELF elsewhere, for other questions: see
//! `src/runtimes/attach/mod.rs`.
//!
//! | module | job |
//! |---|---|
//! | [`Symbols`] | the modules of a process, found by address |
//! | [`Module`] | one module: DWARF, else its symbol table, else its name and an address |
//! | [`SourceLocation`] | the answer |
//! | `maps` | the mappings in `/proc/PID/maps` |
//! | `mapped_file` | the file behind a mapping |
//! | `source` | the bytes of a module, in a file or in memory; the memory limit |
//! | `elf` | headers and sections of an ELF file |
//! | `debug_file` | the separate file with a stripped module's debug information |
//! | `dwarf` | lines and inlined functions, through `addr2line` |
//! | `symbol_table`, `symbol_names` | functions by address |
//! | [`names`] | mangled names made readable: OCaml, C++, Rust |
//! | [`ocaml_debuginfo`] | the debug information in OCaml's own frame tables |
//!
//! `symbols → module → {dwarf, symbol_table, debug_file} → elf → source`; `names` and
//! `ocaml_debuginfo` depend on none of these.

mod debug_file;
mod dwarf;
mod elf;
mod location;
mod mapped_file;
mod maps;
mod module;
pub mod names;
pub mod ocaml_debuginfo;
mod source;
mod symbol_names;
mod symbol_table;
mod symbols;

pub use location::SourceLocation;
pub use module::Module;
pub use source::{Budget, Process};
pub use symbols::{DEFAULT_LIMIT, Symbols};
