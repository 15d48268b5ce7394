//! What is written into the program: the code of `stub.s`, the constants and strings behind it, and
//! the state that it works on.
//!
//! The assembler makes the code a constant of this crate, which is copied and never executed
//! here.

#![allow(unsafe_code, reason = "reads the bytes that the assembler left")]

mod words;

use std::arch::global_asm;
use std::mem::offset_of;
use std::sync::OnceLock;

use words::{Constants, State};
pub(crate) use words::{Header, Loader, Meant, New, Owner, Status, Strings};

/// Offsets of two words of the state that attachers write too.
pub(crate) const STATUS: u64 = offset_of!(State, status) as u64;
pub(crate) const CHAINED: u64 = offset_of!(State, chained) as u64;

/// Where the loaded library's entry runs: as much as a small thread has.
const STACK_SIZE: usize = 1 << 20;

global_asm!(
    include_str!("stub.s"),
    status = const offset_of!(State, status),
    state = const offset_of!(Constants, state),
    hook = const offset_of!(Constants, hook),
    earlier = const offset_of!(Constants, earlier),
    chained = const offset_of!(State, chained),
    pid = const offset_of!(Constants, pid),
    deadline = const offset_of!(Constants, deadline),
    errno_location = const offset_of!(Constants, errno_location),
    dlopen = const offset_of!(Constants, dlopen),
    dlsym = const offset_of!(Constants, dlsym),
    dlerror = const offset_of!(Constants, dlerror),
    library = const offset_of!(Constants, library),
    entry = const offset_of!(Constants, entry),
    argument = const offset_of!(Constants, argument),
    message = const offset_of!(Constants, message),
    message_room = const offset_of!(Constants, message_room),
    result = const offset_of!(State, result),
    armed = const Status::Armed as u64,
    entered = const Status::Entered as u64,
    loading = const Status::Loading as u64,
    calling = const Status::Calling as u64,
    returned = const Status::Returned as u64,
    not_loaded = const Status::NotLoaded as u64,
    no_entry = const Status::NoEntry as u64,
    no_stack = const Status::NoStack as u64,
    abandoned = const Status::Abandoned as u64,
    stack_size = const STACK_SIZE,
    map_flags = const libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
    read_write = const libc::PROT_READ | libc::PROT_WRITE,
    rtld_now = const libc::RTLD_NOW,
    sys_getpid = const libc::SYS_getpid,
    sys_clock_gettime = const libc::SYS_clock_gettime,
    sys_mmap = const libc::SYS_mmap,
    sys_mprotect = const libc::SYS_mprotect,
    sys_munmap = const libc::SYS_munmap,
);

unsafe extern "C" {
    static heaptap_inject_stub: u8;
    static heaptap_inject_stub_end: u8;
}

/// The code, which the constants follow.
pub(crate) fn code() -> &'static [u8] {
    static CODE: OnceLock<&'static [u8]> = OnceLock::new();
    CODE.get_or_init(|| {
        let (start, end) = (&raw const heaptap_inject_stub, &raw const heaptap_inject_stub_end);
        // SAFETY: the two labels enclose the constant bytes that `stub.s` lays down in this
        // program's read-only data, the first below the second.
        unsafe { std::slice::from_raw_parts(start, end as usize - start as usize) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_small() {
        let code = code();
        assert!(code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]), "endbr64");
        // With the strings, what fits behind the text of most programs (`room`).
        assert!(code.len() <= 448, "{} bytes", code.len());
        assert_eq!(code.len() % 8, 0);
    }
}
