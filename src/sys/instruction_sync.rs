//! After code was changed: has all threads of this process execute the new instructions.
#![allow(unsafe_code, reason = "makes the membarrier system call")]

/// Returns when no processor executes instructions that it fetched before (membarrier(2), Linux
/// 4.16). Without that system call nothing is done: a change of a page's protection has
/// interrupted every processor that runs this process, and a thread that runs later is switched to
/// first, which does the same.
pub(crate) fn synchronise() {
    for command in [
        libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE,
        libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE,
    ] {
        // SAFETY: takes numbers and no addresses.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    }
}
