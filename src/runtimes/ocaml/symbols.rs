//! The runtime's functions and variables, by their names.
//!
//! Everything is found and measured before anything is used: a symbol's size in
//! the program's symbol table tells a function that can take a jump from one
//! that cannot, and a variable of ours to read from something else of that name.

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use super::Refusal;

/// A function or variable of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol {
    pub(super) address: usize,
    /// In bytes; 0 where the symbol table does not say.
    pub(super) size: usize,
    /// Where the file it is in was loaded.
    pub(super) base: usize,
}

/// All that is used of a runtime.
pub(super) struct Runtime {
    /// Those to be replaced, as in [`FUNCTIONS`].
    pub(super) functions: [Symbol; FUNCTIONS.len()],
    /// `Caml_state`: points to the state.
    pub(super) state: usize,
    /// `caml_memprof_young_trigger`.
    pub(super) young_trigger: usize,
    /// `caml_something_to_do`, an int.
    pub(super) something_to_do: usize,
    /// `caml_memprof_main_ctx`.
    pub(super) main_context: usize,
    pub(super) update_young_limit: usize,
    pub(super) invert_root: usize,
    pub(super) failwith: usize,
    /// Native code's entry to C; none in bytecode.
    pub(super) c_call: Option<Symbol>,
    /// `caml_frametable`; none in bytecode.
    pub(super) frame_tables: Option<usize>,
    /// `caml_natdynlink_hook`; none where nothing is loaded dynamically.
    pub(super) plugin_hook: Option<usize>,
}

/// The profiler's functions (`runtime/caml/memprof.h`), all of which are
/// replaced.
pub(super) const FUNCTIONS: [(&CStr, &str); 18] = [
    (c"caml_memprof_track_young", "caml_memprof_track_young"),
    (c"caml_memprof_track_alloc_shr", "caml_memprof_track_alloc_shr"),
    (c"caml_memprof_track_custom", "caml_memprof_track_custom"),
    (c"caml_memprof_track_interned", "caml_memprof_track_interned"),
    (c"caml_memprof_renew_minor_sample", "caml_memprof_renew_minor_sample"),
    (c"caml_memprof_minor_update", "caml_memprof_minor_update"),
    (c"caml_memprof_update_clean_phase", "caml_memprof_update_clean_phase"),
    (c"caml_memprof_invert_tracked", "caml_memprof_invert_tracked"),
    (c"caml_memprof_oldify_young_roots", "caml_memprof_oldify_young_roots"),
    (c"caml_memprof_do_roots", "caml_memprof_do_roots"),
    (c"caml_memprof_handle_postponed_exn", "caml_memprof_handle_postponed_exn"),
    (c"caml_memprof_set_suspended", "caml_memprof_set_suspended"),
    (c"caml_memprof_new_th_ctx", "caml_memprof_new_th_ctx"),
    (c"caml_memprof_enter_thread", "caml_memprof_enter_thread"),
    (c"caml_memprof_leave_thread", "caml_memprof_leave_thread"),
    (c"caml_memprof_delete_th_ctx", "caml_memprof_delete_th_ctx"),
    (c"caml_memprof_start", "caml_memprof_start"),
    (c"caml_memprof_stop", "caml_memprof_stop"),
];

/// The runtime in this program; `None` if there is none.
pub(super) fn find() -> Result<Option<Runtime>, Refusal> {
    if lookup(c"caml_alloc_shr").is_none() {
        return Ok(None);
    }
    check_version()?;
    let variable = |name: &'static str, c_name: &CStr, size: usize| {
        let symbol = lookup(c_name).ok_or(Refusal::Symbol(name))?;
        if symbol.size != 0 && symbol.size < size {
            return Err(Refusal::Symbol(name));
        }
        Ok(symbol.address)
    };
    let function = |name: &'static str, c_name: &CStr| {
        lookup(c_name).map(|symbol| symbol.address).ok_or(Refusal::Symbol(name))
    };
    let mut functions = [Symbol { address: 0, size: 0, base: 0 }; FUNCTIONS.len()];
    for (place, (c_name, name)) in functions.iter_mut().zip(FUNCTIONS) {
        *place = lookup(c_name).filter(|found| found.size != 0).ok_or(Refusal::Symbol(name))?;
    }
    // Those of another runtime in the same process would not do.
    let base = functions.first().map(|first| first.base);
    if functions.iter().any(|function| Some(function.base) != base) {
        return Err(Refusal::Layout("its profiler is spread over several files"));
    }
    Ok(Some(Runtime {
        functions,
        state: variable("Caml_state", c"Caml_state", 8)?,
        young_trigger: variable("caml_memprof_young_trigger", c"caml_memprof_young_trigger", 8)?,
        something_to_do: variable("caml_something_to_do", c"caml_something_to_do", 4)?,
        main_context: variable("caml_memprof_main_ctx", c"caml_memprof_main_ctx", 4)?,
        update_young_limit: function("caml_update_young_limit", c"caml_update_young_limit")?,
        invert_root: function("caml_invert_root", c"caml_invert_root")?,
        failwith: function("caml_failwith", c"caml_failwith")?,
        c_call: lookup(c"caml_c_call"),
        frame_tables: lookup(c"caml_frametable").map(|symbol| symbol.address),
        plugin_hook: lookup(c"caml_natdynlink_hook").map(|symbol| symbol.address),
    }))
}

/// Which runtime it is, by what it has.
fn check_version() -> Result<(), Refusal> {
    let has = |name: &CStr| lookup(name).is_some();
    if has(c"Caml_state") && has(c"caml_memprof_main_ctx") {
        return Ok(());
    }
    Err(Refusal::Version(if has(c"caml_memprof_set_trigger") {
        "OCaml 5.3 or later, which heaptap cannot trace yet"
    } else if has(c"caml_domain_spawn") {
        "OCaml 5.0 to 5.2, which cannot sample: use OCaml 4.14 or 5.3"
    } else if has(c"caml_memprof_track_young") {
        "OCaml 4.10 or 4.11: use 4.12 to 4.14"
    } else {
        "older than OCaml 4.12: use 4.12 to 4.14"
    }))
}

/// `RTLD_DL_SYMENT` (`dlfcn.h`, glibc).
const WITH_SYMBOL: libc::c_int = 1;

/// A symbol that the program or one of its libraries exports.
pub(super) fn lookup(name: &CStr) -> Option<Symbol> {
    // SAFETY: a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    measure(address)
}

/// A symbol of a library that was loaded by hand.
///
/// # Safety
/// `library` is a handle from `dlopen`.
pub(super) unsafe fn lookup_in(library: *mut c_void, name: &CStr) -> Option<Symbol> {
    // SAFETY: the caller's promise, and a C string.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    measure(address)
}

fn measure(address: *mut c_void) -> Option<Symbol> {
    if address.is_null() {
        return None;
    }
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let mut entry: *mut c_void = ptr::null_mut();
    // SAFETY: room for both answers.
    let found = unsafe { libc::dladdr1(address, info.as_mut_ptr(), &raw mut entry, WITH_SYMBOL) };
    // SAFETY: zeroed, and pointers may be NULL.
    let info = unsafe { info.assume_init() };
    let mut size = 0;
    if found != 0 && info.dli_saddr == address && !entry.is_null() {
        // SAFETY: the symbol's entry in the table of its file, which stays.
        let entry = unsafe { entry.cast::<libc::Elf64_Sym>().read() };
        size = entry.st_size as usize;
    }
    Some(Symbol { address: address as usize, size, base: info.dli_fbase as usize })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_ocaml_has_no_runtime() {
        assert!(matches!(find(), Ok(None)));
    }

    #[test]
    fn symbols_are_measured() {
        let getpid = lookup(c"getpid").unwrap();
        assert!(getpid.size > 0 && getpid.base != 0);
        assert!(lookup(c"heaptap_has_no_such_thing").is_none());
    }

    #[test]
    fn names_are_the_same_twice() {
        for (c_name, name) in FUNCTIONS {
            assert_eq!(c_name.to_str(), Ok(name));
        }
    }
}
