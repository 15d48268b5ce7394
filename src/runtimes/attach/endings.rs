//! Ends of a program that run no exit handlers: `_exit`, and `execve`, which
//! replaces it by another.
//!
//! Both functions of the C library are replaced while a trace is taken, since
//! events that the writer has not written yet would be lost. A program may call
//! them anywhere: in a signal handler, or in a child that shares its memory
//! (`vfork`). So the replacements take no lock, allocate nothing, wait for a bounded
//! time, and make the system calls of the originals.

use std::ffi::{c_char, c_int, c_long};
use std::time::Duration;

use super::journal;
use super::patch::{in_c_library, replace_each};
use crate::tracer;

/// The longest wait: enough to write full buffers to a busy disk, and short
/// enough for a disk that hangs.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Replaces `_exit` and `execve`. If they cannot be replaced, such an end loses up
/// to a tenth of a second.
///
/// No other thread may be running.
pub(super) fn hook() {
    let functions = [(c"_exit", exit as *const ()), (c"execve", execve as *const ())];
    let found = functions.into_iter().filter_map(|(name, hook)| in_c_library(name, hook, None));
    replace_each(&found.collect::<Vec<_>>());
}

/// Has everything that is recorded written, and says so in the journal.
fn flush() {
    if tracer::flush_signal_safe(LONGEST_WAIT) {
        journal::flushed();
    }
}

/// `_exit` (`sysdeps/unix/sysv/linux/_exit.c`, glibc 2.36).
extern "C" fn exit(status: c_int) -> ! {
    flush();
    loop {
        // SAFETY: `exit_group` takes one integer, and ends the process.
        unsafe { libc::syscall(libc::SYS_exit_group, c_long::from(status)) };
    }
}

/// `execve`: returns only if it fails, with `errno` set.
extern "C" fn execve(
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    flush();
    // SAFETY: the caller's arguments, passed on; the kernel checks the pointers.
    let status = unsafe { libc::syscall(libc::SYS_execve, path, arguments, environment) };
    status as c_int
}
