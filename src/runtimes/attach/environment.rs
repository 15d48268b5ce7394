//! What the program and its children see of us in the environment.
//!
//! A traced program's children are not traced unless that was asked for
//! (`HEAPTAP_FOLLOW=1`). And whatever it was that asked for the trace, `MEMTRACE`
//! is not left behind: a program that links the original library would start a
//! second profiler.
//!
//! Before `main`, while there is one thread; or later, when others may read the
//! environment: then variables are emptied where they are.

use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::image::LoadedImage;
use super::symbols;

/// Whether somebody asks for a trace. Cheap, since it runs in every program that
/// loads this library.
pub(super) fn asks_for_trace() -> bool {
    let is_set = |name: &CStr| {
        // SAFETY: a C string. Nobody changes the environment before `main`.
        let value = unsafe { libc::getenv(name.as_ptr()) };
        // SAFETY: if not NULL, a C string.
        !value.is_null() && unsafe { value.read() } != 0
    };
    is_set(c"HEAPTAP") || is_set(c"MEMTRACE")
}

/// Takes our variables out of the environment, or makes them fit for children.
/// Returns where the program that started us wants to read how it went. `alone`:
/// no other thread can read the environment now.
pub(super) fn adjust(alone: bool) -> Option<PathBuf> {
    let report = std::env::var_os("HEAPTAP_REPORT").map(PathBuf::from);
    let follow = std::env::var_os("HEAPTAP_FOLLOW").is_some_and(|value| value == "1");
    let remove = if alone { remove } else { empty };
    if !follow {
        for name in ["HEAPTAP", "HEAPTAP_RATE", "HEAPTAP_SEED", "HEAPTAP_REPORT", "HEAPTAP_FRAMES"]
        {
            remove(name);
        }
    }
    if alone && follow {
        rename("MEMTRACE", "HEAPTAP");
        rename("MEMTRACE_RATE", "HEAPTAP_RATE");
    } else if alone {
        // An entry that stays does nothing without the variables.
        remove_from_preload();
    }
    if alone || !follow {
        remove("MEMTRACE");
        remove("MEMTRACE_RATE");
    }
    report
}

/// Whether the process has no other thread.
pub(super) fn is_only_thread() -> bool {
    // `char __libc_single_threaded`: true until the first thread is made (glibc
    // 2.32, `sys/single_threaded.h`).
    let never_had = symbols::of_c_library(c"__libc_single_threaded")
        // SAFETY: a variable of the C library.
        .is_some_and(|flag| unsafe { (flag as *const u8).read_volatile() } != 0);
    // Having had one, it may still have none now.
    never_had || std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Makes a variable empty, which asks for nothing: one byte of its text, so that
/// a thread that reads it meanwhile finds a text.
fn empty(name: &str) {
    let Ok(name) = CString::new(name) else { return };
    // SAFETY: a C string.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if !value.is_null() {
        // SAFETY: a text of the environment, which is writable.
        unsafe { value.write_volatile(0) };
    }
}

/// Gives a variable's value to another that has none.
fn rename(from: &str, to: &str) {
    let has = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let (Some(value), None) = (has(from), has(to)) {
        set(to, value);
    }
}

fn set(name: &str, value: OsString) {
    // SAFETY: before `main`, with one thread.
    unsafe { std::env::set_var(name, value) };
}

fn remove(name: &str) {
    // SAFETY: before `main`, with one thread.
    unsafe { std::env::remove_var(name) };
}

/// Takes this library out of `LD_PRELOAD`, and leaves the others in.
fn remove_from_preload() {
    match preloaded_beside_us() {
        None => {}
        Some(rest) if rest.is_empty() => remove("LD_PRELOAD"),
        Some(rest) => set("LD_PRELOAD", OsString::from_vec(rest)),
    }
}

/// Whether somebody had this library loaded into a program that does not know it.
pub(super) fn is_preloaded() -> bool {
    preloaded_beside_us().is_some()
}

/// `LD_PRELOAD` without this library; `None` if it is not in it.
fn preloaded_beside_us() -> Option<Vec<u8>> {
    let preload = std::env::var_os("LD_PRELOAD")?;
    let own = PathBuf::from(OsString::from_vec(own_path()?));
    let is_own = |entry: &[u8]| {
        let entry = PathBuf::from(OsString::from_vec(entry.to_vec()));
        entry == own || entry.canonicalize().is_ok_and(|path| Some(path) == own.canonicalize().ok())
    };
    let rest = without(preload.as_bytes(), is_own);
    (rest != without(preload.as_bytes(), |_| false)).then_some(rest)
}

/// A list without some of its entries, which colons or spaces divide.
fn without(list: &[u8], drop: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let entries = list.split(|byte| matches!(byte, b':' | b' '));
    let kept: Vec<&[u8]> = entries.filter(|entry| !entry.is_empty() && !drop(entry)).collect();
    kept.join(&b':')
}

/// The file this library was loaded from; empty if that is the program.
fn own_path() -> Option<Vec<u8>> {
    LoadedImage::of(own_path as *const () as usize).map(|image| image.path().to_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_library_is_taken_out() {
        let own = |entry: &[u8]| entry == b"/x/libheaptap.so";
        assert_eq!(without(b"/x/libheaptap.so", own), b"");
        assert_eq!(without(b"/a.so:/x/libheaptap.so /b.so", own), b"/a.so:/b.so");
        assert_eq!(without(b"/a.so", own), b"/a.so");
    }

    #[test]
    fn a_variable_is_emptied_where_it_is() {
        // SAFETY: no other test of this program reads the environment's list.
        unsafe { std::env::set_var("HEAPTAP_TEST_OF_EMPTYING", "text") };
        empty("HEAPTAP_TEST_OF_EMPTYING");
        empty("HEAPTAP_TEST_OF_NOTHING");
        assert_eq!(std::env::var_os("HEAPTAP_TEST_OF_EMPTYING"), Some(OsString::new()));
    }

    #[test]
    fn it_knows_where_it_was_loaded_from() {
        assert_eq!(own_path().as_deref(), Some(&b""[..]));
    }
}
