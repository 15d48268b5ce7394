//! The runtime's functions and variables, by name.
//!
//! Everything is found and measured before anything is used: a function that is
//! too small for a jump refuses the whole runtime.

use std::ffi::CStr;
use std::sync::OnceLock;

use super::image::LoadedImage;
use super::library::{LoadedLibrary, lookup_in};
use super::refusal::Refusal;
use super::{linked, unwinding};

pub(crate) use super::image::Symbol;

/// The library that holds the runtime, if it was loaded after `main` had begun.
static LATE_LIBRARY: OnceLock<LoadedLibrary> = OnceLock::new();

/// Searches the runtime in this library from now on. False if there is another.
pub(super) fn search_in(library: LoadedLibrary) -> bool {
    LATE_LIBRARY.set(library).is_ok()
}

/// Whether the runtime is in a library that was loaded after `main` had begun.
pub(crate) fn is_late() -> bool {
    LATE_LIBRARY.get().is_some()
}

/// The functions of these names, all of one image: a function of another runtime
/// in the same process would be wrong, and has no size here. Those of `also` may
/// be absent, and are measured too.
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

/// The address of a symbol that the runtime must have.
pub(crate) fn needed(name: &'static CStr) -> Result<usize, Refusal> {
    lookup(name).ok_or(Refusal::Symbol(name))
}

/// A function that the runtime must have.
///
/// # Safety
/// `F` is the type of a pointer to the function of this name.
pub(crate) unsafe fn function<F: Copy>(name: &'static CStr) -> Result<F, Refusal> {
    // SAFETY: the address of this function, whose type the caller vouches for.
    needed(name).map(|address| unsafe { function_at(address) })
}

/// The function at an address.
///
/// # Safety
/// There is a function, to which `F` is a pointer, and it is never unloaded.
pub(crate) unsafe fn function_at<F: Copy>(address: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<usize>(), "not a function pointer") };
    // SAFETY: of the same size, and by the contract a pointer to such a function.
    unsafe { std::mem::transmute_copy::<usize, F>(&address) }
}

/// The first bytes of a function's code, `most` of them or all.
pub(crate) fn code_of(function: Symbol, most: usize) -> &'static [u8] {
    let length = function.size.min(most);
    // SAFETY: the code of a function, which has this size by the symbol or unwind table of its
    // image, and is never unmapped.
    unsafe { std::slice::from_raw_parts(function.address as *const u8, length) }
}

/// The address of a symbol of the runtime: in the linker's table, if the program
/// brought one; else in the library that was loaded late; else as the loader finds
/// it.
pub(crate) fn lookup(name: &CStr) -> Option<usize> {
    if let Some(linked) = linked::provided() {
        return linked.lookup(name);
    }
    if let Some(library) = LATE_LIBRARY.get() {
        return library.lookup(name);
    }
    // The loader searches the program first, too, but takes long for each of the
    // dozens of names.
    if let Some(address) = program().and_then(|program| program.defined(name)) {
        return Some(address);
    }
    // SAFETY: `RTLD_DEFAULT` is always a valid handle.
    unsafe { lookup_in(libc::RTLD_DEFAULT, name) }
}

/// The program's own image, if it has dynamic symbols.
pub(crate) fn program() -> Option<&'static LoadedImage> {
    static PROGRAM: OnceLock<Option<LoadedImage>> = OnceLock::new();
    PROGRAM.get_or_init(LoadedImage::of_program).as_ref()
}

/// Calls `found` with the name and the address of each symbol of the image that holds the
/// runtime. Not inside hooks.
pub(crate) fn for_each_beside(address: usize, found: impl FnMut(&[u8], usize)) {
    if let Some(image) = LoadedImage::of(address) {
        image.for_each_symbol(found);
    }
}

/// A function of the C library, even if the program defines one of the same name.
/// `None` if its size is not known.
pub(crate) fn c_function(name: &CStr) -> Option<Symbol> {
    let address = of_c_library(name)?;
    let mut symbol = [Symbol { address, size: 0 }];
    measure(&mut symbol, &[name]);
    let [symbol] = symbol;
    (symbol.size > 0).then_some(symbol)
}

/// The address of a symbol of the C library.
pub(crate) fn of_c_library(name: &CStr) -> Option<usize> {
    if let Some(linked) = linked::provided() {
        return linked.lookup(name);
    }
    // SAFETY: `RTLD_NEXT` is always a valid handle: the libraries behind this one.
    unsafe { lookup_in(libc::RTLD_NEXT, name) }
}

/// Fills in the sizes of functions of one image; 0 if they are not known.
fn measure(symbols: &mut [Symbol], names: &[&CStr]) {
    let is_unknown = |symbols: &[Symbol]| symbols.first().is_some_and(|first| first.size == 0);
    if let Some(program) = program() {
        program.measure(symbols, names);
    }
    if is_unknown(symbols)
        && let Some(image) = symbols.first().and_then(|first| LoadedImage::of(first.address))
    {
        image.measure(symbols, names);
    }
    if is_unknown(symbols) {
        // The image names none of them.
        unwinding::measure(symbols);
    }
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
