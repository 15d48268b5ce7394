//! heaptap as an object that is linked into an OCaml program, for programs into
//! which no library can be loaded: fully static ones.
//!
//! The library finds the runtime's functions and variables by name when the
//! program starts. In a static program nobody knows names any more. So here is a
//! table of them that the linker fills in. All references are weak: they bring
//! nothing into the program that is not there, and what another version of the
//! runtime has not stays 0.
//!
//! Everything else is the library's: with no trace asked for, nothing happens.
//!
//! `crates/ocaml-object/link` makes one object file of it that shows none of its
//! symbols but `heaptap_version` and those for labels. A note in it (System V ABI, *Note section*) tells
//! `heaptap run` that the program can be traced, stripped or not.

#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#![allow(unsafe_code, reason = "hands over a table that the linker has made")]

mod symbols;

use core::arch::global_asm;

use heaptap::linked::{LinkedSymbols, provide};

unsafe extern "C" {
    /// As many as there are names: made in [`symbols`].
    #[link_name = "heaptap_ocaml_symbols"]
    static ADDRESSES: [usize; symbols::NAMES.len()];
}

global_asm!(
    ".pushsection .note.heaptap, \"a\", @note",
    ".balign 4",
    // The lengths of name and content, the kind, the name, no content.
    ".long 8, 0, 1",
    ".asciz \"heaptap\"",
    ".popsection",
);

/// Runs before the library's own constructor, which looks at the table.
#[used]
// SAFETY: the C library calls what this section holds, the lowest number first.
#[unsafe(link_section = ".init_array.00100")]
static CONSTRUCTOR: extern "C" fn() = at_start;

extern "C" fn at_start() {
    // SAFETY: `global_asm!` in `symbols` defines it, constant and of this length.
    let addresses = unsafe { &ADDRESSES };
    let names = &symbols::NAMES;
    provide(LinkedSymbols { names, addresses, thread_local: symbols::state(addresses) });
}
