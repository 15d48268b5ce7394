//! Ends of a program that run no exit handlers: `_exit`, and `execve`, by which
//! it goes on as another.
//!
//! Both are replaced in the C library while a trace is taken: what waits for the
//! writer would be lost. A program may call them wherever it is, in a signal
//! handler or in a child that shares its memory. So they take no lock and no
//! memory, wait for a bounded time, and do what the originals do by system calls.

use std::ffi::{CString, c_char, c_int, c_long};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use super::patch::replace_in_c_library;
use crate::tracer;

/// Long enough for what the buffers hold, and for a disk that is busy; short
/// enough for one that hangs.
const LONGEST: Duration = Duration::from_secs(2);

/// The file of `HEAPTAP_REPORT`, and the line for it.
static REPORT: OnceLock<(CString, Vec<u8>)> = OnceLock::new();

/// From now on nothing is lost at such an end. While no other thread runs. If it
/// cannot be, up to a tenth of a second is lost, and no more.
pub(super) fn follow(report: Option<&Path>) {
    if let Some(report) = report.and_then(|path| CString::new(path.as_os_str().as_bytes()).ok()) {
        let line = format!("flushed {}\n", std::process::id()).into_bytes();
        let _ = REPORT.set((report, line));
    }
    replace_in_c_library(&[(c"_exit", exit as *const ()), (c"execve", execve as *const ())]);
}

/// Everything that is recorded is in the file.
fn flush() {
    if !tracer::flush_signal_safe(LONGEST) {
        return;
    }
    let Some((path, line)) = REPORT.get() else { return };
    // SAFETY: a C string.
    let file =
        unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC) };
    if file >= 0 {
        // SAFETY: an open file, and so many bytes.
        unsafe { libc::write(file, line.as_ptr().cast(), line.len()) };
        // SAFETY: ours.
        unsafe { libc::close(file) };
    }
}

/// `_exit` (`sysdeps/unix/sysv/linux/_exit.c`, glibc 2.36).
extern "C" fn exit(status: c_int) -> ! {
    flush();
    loop {
        // SAFETY: ends the process.
        unsafe { libc::syscall(libc::SYS_exit_group, c_long::from(status)) };
    }
}

/// `execve`: comes back if it fails, with `errno` set.
extern "C" fn execve(
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    flush();
    // SAFETY: what the caller gave; the kernel checks it.
    let status = unsafe { libc::syscall(libc::SYS_execve, path, arguments, environment) };
    status as c_int
}
