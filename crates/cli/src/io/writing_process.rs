//! Whether the process that writes a trace still runs.

use std::fs;

/// Whether the process with this number has ended, if the machine of this name is this one.
pub(crate) fn has_ended(pid: u64, host: &[u8]) -> bool {
    // No process has a number beyond 32 bits.
    let is_alive_here = u32::try_from(pid).is_ok_and(is_alive);
    !is_alive_here && is_this_machine(host)
}

fn is_this_machine(host: &[u8]) -> bool {
    fs::read("/proc/sys/kernel/hostname").is_ok_and(|name| name.trim_ascii_end() == host)
}

/// Whether a process runs. One that has ended, but whose parent has not asked for its
/// status, does not: state `Z` or `X` in proc(5).
pub(super) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else { return false };
    let after_name = stat.iter().rposition(|&byte| byte == b')').map_or(0, |at| at + 2);
    !matches!(stat.get(after_name), Some(b'Z' | b'X'))
}
