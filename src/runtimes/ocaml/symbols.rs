//! The runtime's functions and variables, by their names.
//!
//! Everything is found and measured before anything is used: a function's size
//! in the program's symbol table tells one that can take a jump from one that
//! cannot.

use std::ffi::{CStr, c_void};

use super::Refusal;
use super::sizes::File;

/// A function of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol {
    pub(super) address: usize,
    /// In bytes; 0 where the symbol table does not say.
    pub(super) size: usize,
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
    let needed = |name: &'static str, c_name: &CStr| lookup(c_name).ok_or(Refusal::Symbol(name));
    let c_call = lookup(c"caml_c_call");
    // All of one file: those of another runtime in the same process would not do,
    // and have no size here.
    let mut addresses = [0; FUNCTIONS.len() + 1];
    for (address, (c_name, name)) in addresses.iter_mut().zip(FUNCTIONS) {
        *address = needed(name, c_name)?;
    }
    addresses[FUNCTIONS.len()] = c_call.unwrap_or(0);
    let file = File::of(addresses[0]).ok_or(Refusal::Symbol(FUNCTIONS[0].1))?;
    let sizes = file.sizes(addresses);
    let symbol = |index: usize| Symbol { address: addresses[index], size: sizes[index] };
    if let Some(missing) = (0..FUNCTIONS.len()).find(|&index| sizes[index] == 0) {
        return Err(Refusal::Symbol(FUNCTIONS[missing].1));
    }
    Ok(Some(Runtime {
        functions: std::array::from_fn(symbol),
        state: needed("Caml_state", c"Caml_state")?,
        young_trigger: needed("caml_memprof_young_trigger", c"caml_memprof_young_trigger")?,
        something_to_do: needed("caml_something_to_do", c"caml_something_to_do")?,
        main_context: needed("caml_memprof_main_ctx", c"caml_memprof_main_ctx")?,
        update_young_limit: needed("caml_update_young_limit", c"caml_update_young_limit")?,
        invert_root: needed("caml_invert_root", c"caml_invert_root")?,
        failwith: needed("caml_failwith", c"caml_failwith")?,
        c_call: c_call.map(|_| symbol(FUNCTIONS.len())),
        frame_tables: lookup(c"caml_frametable"),
        plugin_hook: lookup(c"caml_natdynlink_hook"),
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

/// The address of what the program or one of its libraries exports.
pub(super) fn lookup(name: &CStr) -> Option<usize> {
    // SAFETY: a C string, and the search takes no handle.
    unsafe { lookup_in(libc::RTLD_DEFAULT, name) }
}

/// The same of a library that was loaded by hand.
///
/// # Safety
/// `library` is a handle from `dlopen`.
pub(super) unsafe fn lookup_in(library: *mut c_void, name: &CStr) -> Option<usize> {
    // SAFETY: the caller's promise, and a C string.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) } as usize;
    (address != 0).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_ocaml_has_no_runtime() {
        assert!(matches!(find(), Ok(None)));
    }

    #[test]
    fn symbols_are_found() {
        assert!(lookup(c"getpid").is_some());
        assert!(lookup(c"heaptap_has_no_such_thing").is_none());
    }

    #[test]
    fn names_are_the_same_twice() {
        for (c_name, name) in FUNCTIONS {
            assert_eq!(c_name.to_str(), Ok(name));
        }
    }
}
