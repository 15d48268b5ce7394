//! Ends of a program that run no exit handlers: `_exit`, and `execve`, which
//! replaces it by another.
//!
//! Both functions of the C library are replaced while a trace is taken, since
//! events that the writer has not written yet would be lost. A program may call
//! them anywhere: in a signal handler, or in a child that shares its memory
//! (`vfork`). So the replacements take no lock, allocate nothing, wait for a bounded
//! time, and make the system calls of the originals.

use std::ffi::{CString, c_char, c_int, c_long};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use super::patch::replace_in_c_library;
use crate::sys::write_signals::without_write_signals;
use crate::tracer;

/// The longest wait: enough to write full buffers to a busy disk, and short
/// enough for a disk that hangs.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// What is reported after a flush. Made in advance, since nothing may be allocated
/// later.
struct FlushReport {
    /// The file to append to.
    path: CString,
    line: Vec<u8>,
}

static REPORT: OnceLock<FlushReport> = OnceLock::new();

/// Replaces `_exit` and `execve`. If they cannot be replaced, such an end loses up
/// to a tenth of a second.
///
/// No other thread may be running.
pub(super) fn follow(report: Option<&Path>) {
    if let Some(path) = report.and_then(|path| CString::new(path.as_os_str().as_bytes()).ok()) {
        let line = format!("flushed {}\n", std::process::id()).into_bytes();
        let _ = REPORT.set(FlushReport { path, line });
    }
    replace_in_c_library(&[(c"_exit", exit as *const ()), (c"execve", execve as *const ())]);
}

/// Has everything that is recorded written, and reports that.
fn flush() {
    if !tracer::flush_signal_safe(LONGEST_WAIT) {
        return;
    }
    let Some(FlushReport { path, line }) = REPORT.get() else { return };
    // SAFETY: the path is a C string that lives as long as the process.
    let file =
        unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC) };
    if file >= 0 {
        without_write_signals(|| {
            // SAFETY: `line` has `line.len()` readable bytes.
            unsafe { libc::write(file, line.as_ptr().cast(), line.len()) }
        });
        // SAFETY: `open` has just returned this descriptor.
        unsafe { libc::close(file) };
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
