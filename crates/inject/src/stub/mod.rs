//! What is written into the program: the code of `stub.s`, and the state that it works on.
//!
//! The assembler makes the code a constant of this crate, which is copied and never executed
//! here.

#![allow(unsafe_code, reason = "reads the bytes that the assembler left")]

mod state;

use std::arch::global_asm;
use std::mem::offset_of;
use std::sync::OnceLock;

use state::Words;
pub(crate) use state::{Header, Loader, NewState, Owner, Status, Strings};

/// Offsets of two words of the state that attachers write too.
pub(crate) const STATUS: u64 = offset_of!(Words, status) as u64;
pub(crate) const CHAINED: u64 = offset_of!(Words, chained) as u64;

/// Where the loaded library's entry runs: as much as a small thread has.
const STACK_SIZE: usize = 1 << 20;

global_asm!(
    include_str!("stub.s"),
    status = const offset_of!(Words, status),
    hook = const offset_of!(Words, hook),
    earlier = const offset_of!(Words, earlier),
    chained = const offset_of!(Words, chained),
    pid = const offset_of!(Words, pid),
    deadline = const offset_of!(Words, deadline),
    now = const offset_of!(Words, now),
    errno_location = const offset_of!(Words, errno_location),
    dlopen = const offset_of!(Words, dlopen),
    dlsym = const offset_of!(Words, dlsym),
    dlerror = const offset_of!(Words, dlerror),
    library = const offset_of!(Words, library),
    entry = const offset_of!(Words, entry),
    argument = const offset_of!(Words, argument),
    message = const offset_of!(Words, message),
    message_room = const offset_of!(Words, message_room),
    result = const offset_of!(Words, result),
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

/// The code, for a state that is not known yet.
fn template() -> &'static [u8] {
    static TEMPLATE: OnceLock<&'static [u8]> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let (start, end) = (&raw const heaptap_inject_stub, &raw const heaptap_inject_stub_end);
        // SAFETY: the two labels enclose the constant bytes that `stub.s` lays down in this
        // program's read-only data, the first below the second.
        unsafe { std::slice::from_raw_parts(start, end as usize - start as usize) }
    })
}

/// How many bytes the code has.
pub(crate) fn code_size() -> usize {
    template().len()
}

/// The code, for a state at this address.
pub(crate) fn code(state: u64) -> Vec<u8> {
    let mut code = template().to_vec();
    let literal = code.len() - size_of::<u64>();
    code[literal..].copy_from_slice(&state.to_le_bytes());
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_small_and_ends_with_the_address_of_its_state() {
        let code = code(0x1122_3344_5566_7788);
        assert!(code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]), "endbr64");
        assert!(code.ends_with(&[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]));
        // What fits behind the text of most programs (`room`).
        assert!(code.len() <= 448, "{} bytes", code.len());
        assert_eq!(code.len() % 8, 0);
    }
}
