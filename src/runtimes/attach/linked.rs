//! The runtime's symbols as the linker knew them.
//!
//! A static program has no names at run time. One that has this library linked
//! into it brings a table of its runtime's symbols (`crates/ocaml-object`), which
//! is provided before the library's constructor runs and never changes.

use std::ffi::CStr;
use std::sync::OnceLock;

use super::thread_pointer::thread_pointer;

/// What the linker knew. Symbols that are not in it do not exist.
pub struct LinkedSymbols {
    /// The names of the symbols.
    pub names: &'static [&'static CStr],
    /// Their addresses, in the same order; 0 for a symbol that the program lacks.
    pub addresses: &'static [usize],
    /// A thread-local variable and its distance from the thread pointer, which is
    /// the same in all threads.
    pub thread_local: Option<(&'static CStr, usize)>,
}

static SYMBOLS: OnceLock<LinkedSymbols> = OnceLock::new();

/// Takes the program's table. Called once, before the library's constructor.
pub fn provide(symbols: LinkedSymbols) {
    let _ = SYMBOLS.set(symbols);
}

/// The program's table, if it brought one.
pub(super) fn provided() -> Option<&'static LinkedSymbols> {
    SYMBOLS.get()
}

impl LinkedSymbols {
    /// The address of a symbol; of a thread-local variable, the calling thread's.
    pub(super) fn lookup(&self, name: &CStr) -> Option<usize> {
        if let Some((variable, offset)) = self.thread_local
            && variable == name
        {
            return Some(thread_pointer().wrapping_add(offset));
        }
        let index = self.names.iter().position(|known| *known == name)?;
        self.addresses.get(index).copied().filter(|&address| address != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_those_of_the_table_only() {
        let table = LinkedSymbols {
            names: &[c"present", c"absent"],
            addresses: &[0x1000, 0],
            thread_local: Some((c"local", 16)),
        };
        assert_eq!(table.lookup(c"present"), Some(0x1000));
        assert_eq!(table.lookup(c"absent"), None);
        assert_eq!(table.lookup(c"getpid"), None);
        assert_eq!(table.lookup(c"local"), Some(thread_pointer() + 16));
    }
}
