//! The runtime's functions and variables, by their names.
//!
//! Everything is found and measured before anything is used: a function's size
//! in the program's symbol table tells one that can take a jump from one that
//! cannot.

use std::arch::asm;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use super::image::File;
use super::refusal::Refusal;
use super::{late, linked, unwinding};

/// A function of the program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Symbol {
    pub(crate) address: usize,
    /// In bytes; 0 where the symbol table does not say.
    pub(crate) size: usize,
}

/// The functions of these names, all of one file: those of another runtime in
/// the same process would not do, and have no size here. `also` are measured too,
/// those there are.
pub(crate) fn functions<const N: usize, const M: usize>(
    names: [&'static CStr; N],
    also: [&'static CStr; M],
) -> Result<([Symbol; N], [Option<Symbol>; M]), Refusal> {
    let mut all = Vec::with_capacity(N + M);
    for name in names {
        all.push(Symbol { address: needed(name)?, size: 0 });
    }
    all.extend(also.map(|name| Symbol { address: lookup(name).unwrap_or(0), size: 0 }));
    measure(&mut all, &[&names[..], &also[..]].concat());
    if let Some((_, name)) = all.iter().zip(names).find(|(symbol, _)| symbol.size == 0) {
        return Err(Refusal::Symbol(name));
    }
    let at = |index: usize| all.get(index).copied().unwrap_or_default();
    let found = std::array::from_fn(at);
    let also = std::array::from_fn(|index| Some(at(N + index)).filter(|also| also.address != 0));
    Ok((found, also))
}

/// The address of what a runtime must have.
pub(crate) fn needed(name: &'static CStr) -> Result<usize, Refusal> {
    lookup(name).ok_or(Refusal::Symbol(name))
}

/// The address of what the runtime has: as the linker knew it, or in the library
/// that was loaded last of all, or whatever the program or one of its libraries
/// exports.
pub(crate) fn lookup(name: &CStr) -> Option<usize> {
    if linked::is_provided() {
        return linked::lookup(name);
    }
    if let Some(library) = late::library() {
        return library.lookup(name);
    }
    // The loader would look there first, too.
    if let Some(address) = program().and_then(|program| program.defined(name)) {
        return Some(address);
    }
    // SAFETY: a C string, and the search takes no handle.
    unsafe { lookup_in(libc::RTLD_DEFAULT, name) }
}

/// The program itself. The loader takes some time for each name that is asked of
/// it, and there are dozens.
pub(crate) fn program() -> Option<&'static File> {
    static PROGRAM: OnceLock<Option<File>> = OnceLock::new();
    PROGRAM.get_or_init(File::of_program).as_ref()
}

/// A function of the C library, and not what the program may have in its place;
/// `None` if its size is not known.
pub(crate) fn c_function(name: &CStr) -> Option<Symbol> {
    let address = of_c_library(name)?;
    let mut symbol = [Symbol { address, size: 0 }];
    measure(&mut symbol, &[name]);
    let [symbol] = symbol;
    (symbol.size > 0).then_some(symbol)
}

/// The address of what the C library has.
pub(crate) fn of_c_library(name: &CStr) -> Option<usize> {
    if linked::is_provided() {
        return linked::lookup(name);
    }
    // SAFETY: a C string; the search takes no handle, and begins behind this
    // library.
    unsafe { lookup_in(libc::RTLD_NEXT, name) }
}

/// Fills in the sizes of functions of one file; 0 if they are not known.
fn measure(symbols: &mut [Symbol], names: &[&CStr]) {
    let is_unknown = |symbols: &[Symbol]| symbols.first().is_some_and(|first| first.size == 0);
    if let Some(program) = program() {
        program.measure(symbols, names);
    }
    if is_unknown(symbols)
        && let Some(file) = symbols.first().and_then(|first| File::of(first.address))
    {
        file.measure(symbols, names);
    }
    if is_unknown(symbols) {
        // The file names none of them.
        unwinding::measure(symbols);
    }
}

/// The address of what a library exports that was loaded by hand.
///
/// # Safety
/// `library` is a handle from `dlopen`.
pub(crate) unsafe fn lookup_in(library: *mut c_void, name: &CStr) -> Option<usize> {
    // SAFETY: the caller's promise, and a C string.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) } as usize;
    (address != 0).then_some(address)
}

/// Where the calling thread's variables are counted from.
#[inline]
pub(crate) fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the first word at the thread pointer is its own address (System V
    // ABI, *Thread-local storage*).
    unsafe { asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags)) };
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_found() {
        let getpid = lookup(c"getpid");
        assert!(getpid.is_some());
        assert_eq!(lookup(c"caml_no_such_function"), None);
        let also = [c"caml_no_such_function", c"execve"];
        let (both, [none, also]) = functions([c"getpid", c"malloc"], also).unwrap();
        assert_eq!(Some(both[0].address), getpid);
        assert_eq!(also.map(|symbol| symbol.address), lookup(c"execve"));
        assert!(both[1].size > 0 && also.is_some_and(|symbol| symbol.size > 0));
        assert!(none.is_none());
        let missing = functions([c"getpid", c"caml_no_such_function"], []);
        assert_eq!(missing.unwrap_err(), Refusal::Symbol(c"caml_no_such_function"));
    }
}
