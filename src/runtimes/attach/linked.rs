//! The runtime's symbols as the linker knew them.
//!
//! A program that has this library linked into it (`crates/ocaml-object`) brings
//! a table of its runtime's symbols. Given before the library's constructor runs,
//! and for good.

use std::ffi::CStr;
use std::sync::OnceLock;

use super::symbols::thread_pointer;

struct Table {
    names: &'static [&'static CStr],
    addresses: &'static [usize],
    state_offset: usize,
}

static TABLE: OnceLock<Table> = OnceLock::new();

/// Takes the table: names and addresses in the same order, 0 for what the program
/// has not. `state_offset` is the distance of `caml_state` from the thread pointer,
/// in runtimes that have it.
pub fn provide(names: &'static [&'static CStr], addresses: &'static [usize], state_offset: usize) {
    let _ = TABLE.set(Table { names, addresses, state_offset });
}

/// Whether the program brought a table: then it says all there is to know.
pub(crate) fn is_provided() -> bool {
    TABLE.get().is_some()
}

/// The address of a symbol.
pub(crate) fn lookup(name: &CStr) -> Option<usize> {
    let table = TABLE.get()?;
    // Only OCaml 5 has both.
    if name == c"caml_state" && lookup(c"caml_memprof_set_trigger").is_some() {
        return Some(thread_pointer().wrapping_add(table.state_offset));
    }
    let index = table.names.iter().position(|known| *known == name)?;
    table.addresses.get(index).copied().filter(|&address| address != 0)
}
