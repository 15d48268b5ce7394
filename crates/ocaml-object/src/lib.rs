//! heaptap as an object file for OCaml programs into which no library can be loaded:
//! fully static ones.
//!
//! The library finds the runtime's functions and variables by name when the program
//! starts. A static program has no names at run time, so this crate brings a table of
//! them, whose addresses the linker fills in. All references are weak: they add
//! nothing to the program, and a symbol that this version of the runtime lacks is 0.
//! Everything else is in the library; if no trace is asked for, nothing happens.
//!
//! `crates/ocaml-object/link` makes one object file of both, whose only global symbols
//! are `heaptap_version` and the functions `heaptap_attached_…`. A note in it (System V ABI,
//! *Note section*) shows `heaptap run` that the program can be traced, stripped or
//! not.

#![allow(unsafe_code, reason = "refers to a table that the linker fills in")]

mod symbols;

use core::arch::global_asm;

use heaptap::linked::{LinkedSymbols, provide};

unsafe extern "C" {
    /// One address for each of [`symbols::NAMES`], which defines both.
    #[link_name = "heaptap_ocaml_symbols"]
    static ADDRESSES: [usize; symbols::NAMES.len()];
}

global_asm!(
    ".pushsection .note.heaptap, \"a\", @note",
    ".balign 4",
    // The lengths of its name and descriptor, its type, its name. `heaptap run` looks
    // for these bytes.
    ".long 8, 0, 1",
    ".asciz \"heaptap\"",
    ".popsection",
);

/// Runs before the library's own constructor, which reads the table.
#[used]
// SAFETY: the C library calls each function of this section, those with lower numbers
// first, with arguments that the C calling convention lets a function ignore.
#[unsafe(link_section = ".init_array.00100")]
static CONSTRUCTOR: extern "C" fn() = at_start;

extern "C" fn at_start() {
    // SAFETY: `global_asm!` in `symbols` defines it, constant and of this length.
    let addresses = unsafe { &ADDRESSES };
    let names = &symbols::NAMES;
    provide(LinkedSymbols { names, addresses, thread_local: symbols::state(addresses) });
}
