//! Which program this process runs, and since when.
//!
//! That is the executable, unless the executable is an interpreter: a runtime that knows says so
//! before anything is named after the program.

#![allow(unsafe_code, reason = "asks the system how long a tick is")]

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

static INTERPRETED: OnceLock<PathBuf> = OnceLock::new();

/// The executable interprets the program in this file. Before `main`; the first call counts.
pub(crate) fn set_interpreted(program: PathBuf) {
    let _ = INTERPRETED.set(program);
}

/// The file of the program that the executable interprets, if it does.
pub(crate) fn interpreted() -> Option<&'static PathBuf> {
    INTERPRETED.get()
}

/// The file of the program; empty if it is not known. The name of an executable that was deleted
/// ends in ` (deleted)`.
pub(crate) fn path() -> PathBuf {
    match interpreted() {
        Some(program) => program.clone(),
        None => std::env::current_exe().unwrap_or_default(),
    }
}

/// When this process began; `None` if `/proc` does not say.
pub(crate) fn began() -> Option<SystemTime> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // proc(5): the name in parentheses may have any character; the start is field 22.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: u64 = fields.split_ascii_whitespace().nth(19)?.parse().ok()?;
    // SAFETY: sysconf reads no memory of ours.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok()?.max(1);
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    let age = uptime - ticks as f64 / per_second as f64;
    SystemTime::now().checked_sub(Duration::try_from_secs_f64(age.max(0.0)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_began_when_it_was_started() {
        let parent_began = began().unwrap();
        assert!(parent_began <= SystemTime::now());
        let since = |began: SystemTime| began.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let again = since(began().unwrap()).abs_diff(since(parent_began));
        assert!(again < Duration::from_millis(100), "it does not depend on when it is asked for");
    }

    #[test]
    fn an_executable_is_its_own_program() {
        assert_eq!(interpreted(), None);
        assert_eq!(path(), std::env::current_exe().unwrap());
    }
}
