//! Runtimes that come after `main`: a program written in C loads a library with
//! OCaml in it.
//!
//! The first thing that a runtime does when it starts is to read its settings
//! (`caml_parse_ocamlrunparam`, `runtime/startup_aux.c`), by `secure_getenv` of
//! `OCAMLRUNPARAM`. So where a trace is asked for and there is no runtime yet, we
//! replace that function of the C library. Whoever asks for that name has its
//! runtime looked at, before it has a heap.
//!
//! Loading itself is left alone: what `dlopen` finds depends on who calls it.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::image::File;
use super::patch::replace_in_c_library;
use super::symbols::lookup_in;

/// The library that holds the runtime.
pub(crate) struct Library {
    handle: *mut c_void,
    file: File,
}

// SAFETY: a handle and the loader's tables may be used on any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

/// The library that is being attached to, if it came late.
static LIBRARY: OnceLock<Library> = OnceLock::new();

/// Somebody asked already: there is one runtime that is traced.
static ASKED: AtomicBool = AtomicBool::new(false);

pub(crate) fn library() -> Option<&'static Library> {
    LIBRARY.get()
}

impl Library {
    /// Of the code at an address. Never unloaded from now on.
    fn of(address: usize) -> Option<Library> {
        let file = File::of(address)?;
        // By name: a static program that has us linked into it must not seem to
        // need a loader.
        // SAFETY: a C string, and the search takes no handle.
        let open = unsafe { lookup_in(libc::RTLD_DEFAULT, c"dlopen") }?;
        // SAFETY: the function of that name.
        let open: Open = unsafe { std::mem::transmute(open) };
        let how = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: a path that the loader knows; nothing is loaded.
        let handle = unsafe { open(file.path().as_ptr(), how) };
        (!handle.is_null()).then_some(Library { handle, file })
    }

    /// What the library has, or what it uses of others: a runtime that is a
    /// library of its own has its program's tables elsewhere.
    pub(crate) fn lookup(&self, name: &CStr) -> Option<usize> {
        // SAFETY: a handle of ours.
        unsafe { lookup_in(self.handle, name) }.or_else(|| self.file.imported(name))
    }
}

/// Attaches to the first runtime that starts. Before `main`.
pub(crate) fn wait() {
    // If that cannot be, such a program is not traced.
    replace_in_c_library(&[(c"secure_getenv", asks as *const ())]);
}

/// `char *secure_getenv(const char *)`, and who asks.
#[unsafe(naked)]
unsafe extern "C" fn asks() {
    naked_asm!("mov rsi, [rsp]", "jmp {answer}", answer = sym answer)
}

/// Does what the function does that is replaced (`stdlib/secure-getenv.c`, glibc
/// 2.36). Any thread.
extern "C" fn answer(name: *const c_char, caller: usize) -> *mut c_char {
    // SAFETY: a C string, by the caller's promise.
    if unsafe { CStr::from_ptr(name) } == c"OCAMLRUNPARAM" && !ASKED.load(Ordering::Relaxed) {
        // A defect here must not keep the program from running.
        drop(std::panic::catch_unwind(|| starts(caller)));
    }
    // SAFETY: asks the kernel's table; takes nothing else.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return std::ptr::null_mut();
    }
    // SAFETY: a C string, by the caller's promise.
    unsafe { libc::getenv(name) }
}

/// A runtime starts, if that is one.
fn starts(caller: usize) {
    let Some(library) = Library::of(caller) else { return };
    if library.lookup(c"caml_alloc_shr").is_none() || ASKED.swap(true, Ordering::Relaxed) {
        return;
    }
    if LIBRARY.set(library).is_ok() {
        crate::runtimes::ocaml::attach();
    }
}
