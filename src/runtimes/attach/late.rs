//! Runtimes that appear after `main` has begun, when a program written in C loads
//! a library with a runtime in it.
//!
//! A runtime reads its settings from an environment variable when it starts, by
//! `secure_getenv` ([`Runtime::startup_variable`]). So where a trace is asked for
//! and there is no runtime yet, that function of the C library is replaced.
//! Whoever reads the variable is checked for a runtime, before it has a heap.
//!
//! `dlopen` itself is not replaced: what it finds depends on its caller.

use std::arch::naked_asm;
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::library::LoadedLibrary;
use super::patch::{Original, in_c_library, replace_each};
use super::runtime::{Detected, Runtime, detect};
use super::symbols;
use crate::tracer;

/// What is waited for.
struct Wait {
    known: &'static [&'static dyn Runtime],
    attach: fn(Detected),
}

static WAIT: OnceLock<Wait> = OnceLock::new();

/// A runtime has started. Only the first one is traced.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Calls `attach` for the first of the known runtimes that starts. Before `main`.
///
/// If the C library's function cannot be replaced, such a program is not traced.
pub(super) fn wait(known: &'static [&'static dyn Runtime], attach: fn(Detected)) {
    if WAIT.set(Wait { known, attach }).is_ok() {
        let hook = secure_getenv as *const ();
        let replacement = in_c_library(c"secure_getenv", hook, Some(ORIGINAL.place()));
        replace_each(replacement.as_slice());
    }
}

/// `char *secure_getenv(const char *name)`: adds the caller's return address.
#[unsafe(naked)]
unsafe extern "C" fn secure_getenv() {
    naked_asm!("mov rsi, [rsp]", "jmp {read}", read = sym read_variable)
}

/// The C library's function.
static ORIGINAL: Original<extern "C" fn(*const c_char) -> *mut c_char> = Original::new();

/// Looks at callers that read a runtime's settings, and does what the replaced function does. Any
/// thread.
extern "C" fn read_variable(name: *const c_char, caller: usize) -> *mut c_char {
    // SAFETY: `secure_getenv` requires a C string of its callers.
    let variable = unsafe { CStr::from_ptr(name) };
    if !STARTED.load(Ordering::Relaxed) {
        tracer::guard(|| runtime_starts(variable, caller));
    }
    // SAFETY: `char *secure_getenv(const char *)` (`stdlib.h`).
    let original = unsafe { ORIGINAL.get() };
    // It is there before the jump to this hook is.
    original.map_or(std::ptr::null_mut(), |original| original(name))
}

/// Attaches to the caller's library if it holds one of the runtimes whose settings
/// it reads.
fn runtime_starts(variable: &CStr, caller: usize) {
    let Some(Wait { known, attach }) = WAIT.get() else { return };
    let reads = |runtime: &&dyn Runtime| runtime.startup_variable() == Some(variable);
    let mut readers = known.iter().copied().filter(reads).peekable();
    if readers.peek().is_none() {
        return;
    }
    let Some(library) = LoadedLibrary::of(caller) else { return };
    if let Some(detected) = detect(readers, &|name| library.lookup(name))
        && !STARTED.swap(true, Ordering::Relaxed)
        && symbols::search_in(library)
    {
        attach(detected);
    }
}
