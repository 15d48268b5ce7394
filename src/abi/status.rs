//! How a call went.

use std::ffi::c_char;

use crate::tracer::Failure;

/// How a call went: 0 is fine. See `heaptap_status_str`.
pub type heaptap_status = i32;

/// Done.
pub const HEAPTAP_STATUS_OK: heaptap_status = 0;
/// A pointer that must not be is NULL or misaligned.
pub const HEAPTAP_STATUS_NULL: heaptap_status = 1;
/// A struct's `size` is not that of any version of it.
pub const HEAPTAP_STATUS_SIZE: heaptap_status = 2;
/// Reserved bytes are not zero: this library is older than the host.
pub const HEAPTAP_STATUS_RESERVED: heaptap_status = 3;
/// The rate is not from 1e-7 to 1.
pub const HEAPTAP_STATUS_RATE: heaptap_status = 4;
/// Another option or argument is out of its range.
pub const HEAPTAP_STATUS_OPTION: heaptap_status = 5;
/// The file cannot be made or written; standard error says why.
pub const HEAPTAP_STATUS_FILE: heaptap_status = 6;
/// There is not enough memory.
pub const HEAPTAP_STATUS_MEMORY: heaptap_status = 7;
/// The writer thread cannot be started.
pub const HEAPTAP_STATUS_THREAD: heaptap_status = 8;
/// This process is being traced already.
pub const HEAPTAP_STATUS_ALREADY: heaptap_status = 9;
/// Not tracing: stopped, or turned off after a failure.
pub const HEAPTAP_STATUS_OFF: heaptap_status = 10;
/// More mutators than `max_mutators`, or than 65,535.
pub const HEAPTAP_STATUS_MUTATORS: heaptap_status = 11;
/// Not a handle of heaptap's, or one that has ended.
pub const HEAPTAP_STATUS_HANDLE: heaptap_status = 12;
/// The frame table makes no sense; nothing of it was added.
pub const HEAPTAP_STATUS_FRAMES: heaptap_status = 13;
/// The environment asks for no trace.
pub const HEAPTAP_STATUS_NOT_ASKED: heaptap_status = 14;
/// Called at a moment when it may not be: from inside a hook, or by two
/// threads at once, or with another way of following blocks chosen.
pub const HEAPTAP_STATUS_ORDER: heaptap_status = 15;
/// A defect in heaptap; tracing has turned itself off.
pub const HEAPTAP_STATUS_PANIC: heaptap_status = 16;
/// A sampled block was not recorded, and is counted as dropped.
pub const HEAPTAP_STATUS_LOST: heaptap_status = 17;

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Refused {
        Refused(failure as heaptap_status)
    }
}

/// A status that is not OK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) heaptap_status);

/// Explains a status in English. Never NULL; valid for ever. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_status_str(status: heaptap_status) -> *const c_char {
    let text = match status {
        HEAPTAP_STATUS_OK => c"fine",
        HEAPTAP_STATUS_NULL => c"a pointer is NULL or misaligned",
        HEAPTAP_STATUS_SIZE => c"a struct's size is unknown: set it to sizeof the struct",
        HEAPTAP_STATUS_RESERVED => c"reserved bytes are not zero",
        HEAPTAP_STATUS_RATE => c"the sampling rate must be from 1e-7 to 1",
        HEAPTAP_STATUS_OPTION => c"an option or argument is out of its range",
        HEAPTAP_STATUS_FILE => c"the trace file cannot be made or written",
        HEAPTAP_STATUS_MEMORY => c"not enough memory",
        HEAPTAP_STATUS_THREAD => c"the writer thread cannot be started",
        HEAPTAP_STATUS_ALREADY => c"this process is being traced already",
        HEAPTAP_STATUS_OFF => c"not tracing: stopped, or turned off after a failure",
        HEAPTAP_STATUS_MUTATORS => c"too many mutators",
        HEAPTAP_STATUS_HANDLE => c"not a handle, or one that has ended",
        HEAPTAP_STATUS_FRAMES => c"the frame table makes no sense",
        HEAPTAP_STATUS_NOT_ASKED => c"the environment asks for no trace",
        HEAPTAP_STATUS_ORDER => c"called at a moment when it may not be",
        HEAPTAP_STATUS_PANIC => c"a defect in heaptap; tracing is off",
        HEAPTAP_STATUS_LOST => c"a sampled block was not recorded",
        _ => c"no status of this version",
    };
    text.as_ptr()
}

/// The library's version, as `HEAPTAP_VERSION` was when it was built.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
