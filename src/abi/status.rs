//! Status codes: what a call returns.
//!
//! The constants are literals because cbindgen, which writes the header, does not
//! expand macros. Everything else follows from the table below: the text of each
//! status and the status of each [`Failure`]. A failure without a status, or a table
//! that skips a number, does not compile. `tests/header.rs` checks that the header
//! describes each status by its text.

use std::ffi::{CStr, c_char};

use crate::tracer::Failure;

/// The result of a call: 0 for success. `heaptap_status_str` explains the others.
pub type heaptap_status = i32;

/// Success.
pub const HEAPTAP_STATUS_OK: heaptap_status = 0;
/// A pointer is NULL or misaligned.
pub const HEAPTAP_STATUS_NULL: heaptap_status = 1;
/// A struct's size is not that of any version: set it to sizeof the struct.
pub const HEAPTAP_STATUS_SIZE: heaptap_status = 2;
/// Reserved bytes are not zero, or the host uses fields that this library does
/// not know.
pub const HEAPTAP_STATUS_RESERVED: heaptap_status = 3;
/// The sampling rate is not between 1e-7 and 1.
pub const HEAPTAP_STATUS_RATE: heaptap_status = 4;
/// An option or argument is out of range.
pub const HEAPTAP_STATUS_OPTION: heaptap_status = 5;
/// The file cannot be created or written. Of a trace, standard error has the reason.
pub const HEAPTAP_STATUS_FILE: heaptap_status = 6;
/// Not enough memory.
pub const HEAPTAP_STATUS_MEMORY: heaptap_status = 7;
/// The writer thread cannot be started.
pub const HEAPTAP_STATUS_THREAD: heaptap_status = 8;
/// This process is already being traced.
pub const HEAPTAP_STATUS_ALREADY: heaptap_status = 9;
/// Tracing is off: it was stopped, or ended after a failure.
pub const HEAPTAP_STATUS_OFF: heaptap_status = 10;
/// Too many mutators. More than `max_mutators`, or more than 65,535.
pub const HEAPTAP_STATUS_MUTATORS: heaptap_status = 11;
/// Not a handle, or one that has ended.
pub const HEAPTAP_STATUS_HANDLE: heaptap_status = 12;
/// The frame table is malformed. Nothing of it was added.
pub const HEAPTAP_STATUS_FRAMES: heaptap_status = 13;
/// The environment does not ask for a trace.
pub const HEAPTAP_STATUS_NOT_ASKED: heaptap_status = 14;
/// The call is not allowed at this point. It came from inside a hook or from two
/// threads at once, or it does not fit the option `follow`.
pub const HEAPTAP_STATUS_ORDER: heaptap_status = 15;
/// An internal error in heaptap: tracing is off.
pub const HEAPTAP_STATUS_PANIC: heaptap_status = 16;
/// A sampled block was not recorded. It is counted as dropped.
pub const HEAPTAP_STATUS_LOST: heaptap_status = 17;
/// No snapshot of the heap was taken. The call that returns it has the reason.
pub const HEAPTAP_STATUS_SNAPSHOT: heaptap_status = 18;
/// A command was not carried out. The call that returns it has the reason.
pub const HEAPTAP_STATUS_COMMAND: heaptap_status = 19;

/// A status other than `HEAPTAP_STATUS_OK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) heaptap_status);

macro_rules! statuses {
    ($($status:ident $(is Failure::$failure:ident)?, $text:literal;)*) => {
        /// Every status with its text, in the order of their numbers.
        const TEXTS: &[(heaptap_status, &CStr)] = &[$(($status, $text)),*];

        impl From<Failure> for Refused {
            fn from(failure: Failure) -> Refused {
                match failure {
                    $($(Failure::$failure => Refused($status),)?)*
                }
            }
        }
    };
}

statuses! {
    HEAPTAP_STATUS_OK, c"success";
    HEAPTAP_STATUS_NULL, c"a pointer is NULL or misaligned";
    HEAPTAP_STATUS_SIZE, c"a struct's size is not that of any version: set it to sizeof the struct";
    HEAPTAP_STATUS_RESERVED, c"reserved bytes are not zero, or the host uses fields that this library does not know";
    HEAPTAP_STATUS_RATE is Failure::Rate, c"the sampling rate is not between 1e-7 and 1";
    HEAPTAP_STATUS_OPTION is Failure::Option, c"an option or argument is out of range";
    HEAPTAP_STATUS_FILE is Failure::File, c"the file cannot be created or written";
    HEAPTAP_STATUS_MEMORY is Failure::Memory, c"not enough memory";
    HEAPTAP_STATUS_THREAD is Failure::Thread, c"the writer thread cannot be started";
    HEAPTAP_STATUS_ALREADY is Failure::Already, c"this process is already being traced";
    HEAPTAP_STATUS_OFF is Failure::Off, c"tracing is off: it was stopped, or ended after a failure";
    HEAPTAP_STATUS_MUTATORS is Failure::Mutators, c"too many mutators";
    HEAPTAP_STATUS_HANDLE, c"not a handle, or one that has ended";
    HEAPTAP_STATUS_FRAMES is Failure::Frames, c"the frame table is malformed";
    HEAPTAP_STATUS_NOT_ASKED is Failure::NotAsked, c"the environment does not ask for a trace";
    HEAPTAP_STATUS_ORDER is Failure::Order, c"the call is not allowed at this point";
    HEAPTAP_STATUS_PANIC is Failure::Panic, c"an internal error in heaptap: tracing is off";
    HEAPTAP_STATUS_LOST is Failure::Lost, c"a sampled block was not recorded";
    HEAPTAP_STATUS_SNAPSHOT, c"no snapshot of the heap was taken";
    HEAPTAP_STATUS_COMMAND, c"a command was not carried out";
}

const _: () = {
    let mut number = 0;
    while number < TEXTS.len() {
        assert!(TEXTS[number].0 == number as heaptap_status, "a number is missing or doubled");
        number += 1;
    }
};

/// Returns the meaning of a status, in English. Never NULL; the string is static.
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_status_str(status: heaptap_status) -> *const c_char {
    let known = usize::try_from(status).ok().and_then(|number| TEXTS.get(number));
    known.map_or(c"unknown status", |&(_, text)| text).as_ptr()
}

/// Returns the version of the library that is loaded. `HEAPTAP_VERSION` is the
/// version of this header.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
