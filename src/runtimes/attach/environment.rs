//! The environment variables that the program and its children see.
//!
//! A traced program's children are not traced unless that is asked for
//! ([`FOLLOW`]). An alias that another tool reads is never left behind: a program
//! that links that tool's library would start a second profiler.
//!
//! Runs before `main`, while there is one thread, which may change the environment;
//! or later, when other threads may read it. Then variables are only made empty, in
//! place.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use heaptap_settings::{FILE, FOLLOW, Inheritance, Invalid, JOURNAL, Reader, VARIABLES, Variable};

use super::image::LoadedImage;
use super::symbols;
use crate::sys::process_memory::write_byte;

/// Whether a trace is asked for. Runs in every program that loads this library.
pub(super) fn asks_for_trace() -> bool {
    FILE.find(variable).is_some()
}

/// An error if a variable that is read only here has a value that is not accepted.
/// The others are checked where a session's options are read.
pub(super) fn check() -> Result<(), Invalid> {
    let mut attached = VARIABLES.iter().filter(|variable| variable.reader == Reader::Attached);
    attached.try_for_each(|variable| variable.check(self::variable))
}

/// The same for all variables.
pub(super) fn check_all() -> Result<(), Invalid> {
    VARIABLES.iter().try_for_each(|variable| variable.check(self::variable))
}

/// The journal of the run, if one is asked for.
pub(super) fn journal() -> Option<PathBuf> {
    // SAFETY: `getauxval` reads the process's auxiliary vector and takes any key.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        // A program with more rights than its user must not write a file of the
        // user's choice.
        return None;
    }
    JOURNAL.find(variable).map(|(_, file)| PathBuf::from(file))
}

/// Removes our variables from the environment, or prepares them for children that
/// are traced too. Returns the journal of the run, if one is asked for. `alone`:
/// no other thread can read the environment now.
pub(super) fn adjust(alone: bool) -> Option<PathBuf> {
    let journal = journal();
    // `check` has accepted the value.
    let follow = FOLLOW.is_on(variable).unwrap_or(false);
    match (follow, alone) {
        (true, true) => aliases().for_each(|(alias, name)| rename(alias, name)),
        // A child whose variables are aliases is traced as well.
        (true, false) => {}
        (false, true) => {
            traced_only().for_each(remove);
            remove_from_preload();
        }
        // Without the variables, the entry in `LD_PRELOAD` has no effect.
        (false, false) => traced_only().for_each(empty),
    }
    journal
}

/// Sets or removes a variable that says which process is to be traced.
pub(super) fn set_selection(name: &str, value: Option<OsString>) {
    match value {
        // A library that a thread loads later is no preloaded one, and nothing wraps it.
        _ if !is_only_thread() => {}
        Some(value) => set(name, value),
        None if variable(name).is_some() => remove(name),
        None => {}
    }
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The names of all variables that only traced children see.
fn traced_only() -> impl Iterator<Item = &'static str> {
    let is_traced_only = |variable: &&Variable| variable.children == Inheritance::WithFollow;
    VARIABLES.iter().filter(is_traced_only).flat_map(Variable::names)
}

/// The aliases of variables, each with the variable's own name.
fn aliases() -> impl Iterator<Item = (&'static str, &'static str)> {
    VARIABLES.iter().filter_map(|variable| Some((variable.alias?, variable.name)))
}

/// Whether the process has no other thread.
pub(super) fn is_only_thread() -> bool {
    // `char __libc_single_threaded`: true until the first thread is created (glibc
    // 2.32, `sys/single_threaded.h`).
    let never_had = symbols::of_c_library(c"__libc_single_threaded")
        // SAFETY: the C library's variable of that name, which is one byte.
        .is_some_and(|flag| unsafe { (flag as *const u8).read_volatile() } != 0);
    // Other threads may have ended since.
    never_had || std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Makes a variable empty, which counts as not set. Only one byte is written, so
/// that a thread that reads the value meanwhile finds a string.
///
/// The kernel puts the environment on the initial stack and `setenv` on the heap, but `putenv` may
/// have been given a literal, in memory that cannot be written: such a variable stays as it is, and
/// children are traced too.
fn empty(name: &str) {
    let Ok(name) = CString::new(name) else { return };
    // SAFETY: the name is a C string. A program that changes its environment while
    // another thread reads it breaks `getenv` with or without us (POSIX).
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if !value.is_null() {
        write_byte(value as usize, 0);
    }
}

/// Moves a variable's value to another, unless that one has a value.
fn rename(from: &str, to: &str) {
    let value = |name| variable(name).filter(|value| !value.is_empty());
    if let (Some(value), None) = (value(from), value(to)) {
        set(to, value);
    }
    remove(from);
}

fn set(name: &str, value: OsString) {
    // SAFETY: `adjust` and `set_selection` change it only while there is one thread.
    unsafe { std::env::set_var(name, value) };
}

fn remove(name: &str) {
    // SAFETY: `adjust` and `set_selection` change it only while there is one thread.
    unsafe { std::env::remove_var(name) };
}

/// Removes this library from `LD_PRELOAD`, and keeps the others.
fn remove_from_preload() {
    match preloaded_beside_us() {
        None => {}
        Some(rest) if rest.is_empty() => remove("LD_PRELOAD"),
        Some(rest) => set("LD_PRELOAD", OsString::from_vec(rest)),
    }
}

/// Whether this library was preloaded into a program that does not link it.
pub(super) fn is_preloaded() -> bool {
    preloaded_beside_us().is_some()
}

/// `LD_PRELOAD` without this library; `None` if it is not in it.
fn preloaded_beside_us() -> Option<Vec<u8>> {
    let preload = std::env::var_os("LD_PRELOAD")?;
    let own = PathBuf::from(OsString::from_vec(own_path()?));
    let rest = without(preload.as_bytes(), |entry| names(entry, &own));
    (rest != without(preload.as_bytes(), |_| false)).then_some(rest)
}

/// Whether an entry of `LD_PRELOAD` names the library that was loaded from `own`. The
/// loader looks for an entry without a slash in its directories, and keeps the name
/// (ld.so(8)).
fn names(entry: &[u8], own: &Path) -> bool {
    let entry = Path::new(OsStr::from_bytes(entry));
    if !entry.as_os_str().as_bytes().contains(&b'/') {
        return own.file_name() == Some(entry.as_os_str());
    }
    entry == own || entry.canonicalize().is_ok_and(|path| Some(path) == own.canonicalize().ok())
}

/// A list, separated by colons or spaces, without some of its entries.
fn without(list: &[u8], drop: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let entries = list.split(|byte| matches!(byte, b':' | b' '));
    let kept: Vec<&[u8]> = entries.filter(|entry| !entry.is_empty() && !drop(entry)).collect();
    kept.join(&b':')
}

/// The file that this library was loaded from; empty if it is part of the program.
fn own_path() -> Option<Vec<u8>> {
    LoadedImage::of(own_path as *const () as usize).map(|image| image.path().to_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_without_a_slash_names_the_library_by_its_file_name() {
        let own = Path::new("/usr/lib/libheaptap.so.0");
        assert!(names(b"libheaptap.so.0", own));
        assert!(names(b"/usr/lib/libheaptap.so.0", own));
        assert!(!names(b"libheaptap.so", own));
        assert!(!names(b"/opt/libheaptap.so.0", own));
    }

    #[test]
    fn only_this_library_is_removed() {
        let own = |entry: &[u8]| entry == b"/x/libheaptap.so";
        assert_eq!(without(b"/x/libheaptap.so", own), b"");
        assert_eq!(without(b"/a.so:/x/libheaptap.so /b.so", own), b"/a.so:/b.so");
        assert_eq!(without(b"/a.so", own), b"/a.so");
    }

    #[test]
    fn a_variable_is_emptied_in_place() {
        // SAFETY: no other test of this binary changes the environment or lists it.
        unsafe { std::env::set_var("HEAPTAP_TEST_OF_EMPTYING", "text") };
        empty("HEAPTAP_TEST_OF_EMPTYING");
        empty("HEAPTAP_TEST_OF_NOTHING");
        assert_eq!(std::env::var_os("HEAPTAP_TEST_OF_EMPTYING"), Some(OsString::new()));
    }

    #[test]
    fn a_literal_in_the_environment_stays() {
        let literal = c"HEAPTAP_TEST_OF_LITERALS=text";
        // SAFETY: no other test of this binary changes the environment or lists it.
        unsafe { std::env::set_var("HEAPTAP_TEST_OF_LITERALS", "other") };
        // SAFETY: takes the place of the one above; the text lives as long as the process.
        unsafe { libc::putenv(literal.as_ptr().cast_mut()) };
        empty("HEAPTAP_TEST_OF_LITERALS");
        assert_eq!(std::env::var_os("HEAPTAP_TEST_OF_LITERALS"), Some("text".into()));
    }

    #[test]
    fn children_that_are_not_traced_see_no_request_for_a_trace() {
        let hidden: Vec<_> = traced_only().collect();
        assert!(FILE.names().chain(JOURNAL.names()).all(|name| hidden.contains(&name)));
        assert!(!hidden.contains(&FOLLOW.name));
        let aliases: Vec<_> = aliases().collect();
        assert!(aliases.contains(&(FILE.alias.unwrap(), FILE.name)));
        assert!(
            aliases.iter().all(|(alias, name)| hidden.contains(alias) && hidden.contains(name))
        );
    }

    #[test]
    fn part_of_the_program_has_no_path() {
        assert_eq!(own_path().as_deref(), Some(&b""[..]));
    }
}
