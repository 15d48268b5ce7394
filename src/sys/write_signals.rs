//! Writing on the host's threads without the signals that a write can raise.
//!
//! A write to a pipe without a reader raises SIGPIPE, one beyond the size limit of files
//! SIGXFSZ. Both end the process by default. The writer thread blocks all signals (see
//! [`thread`](super::thread)); a few writes are made on threads of the host: the first
//! packet, messages, and the report to `heaptap run`. The host must not see a signal
//! because of them.
//!
//! Makes system calls only, so it may be used in a signal handler.
#![allow(unsafe_code, reason = "changes the signal mask")]

use core::mem::MaybeUninit;

const RAISED_BY_WRITES: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Runs `write` with SIGPIPE and SIGXFSZ blocked on this thread, and removes those that it
/// raised. Signals that were pending before, and the mask, stay as they were.
pub(crate) fn without_write_signals<T>(write: impl FnOnce() -> T) -> T {
    let _blocked = Blocked::new();
    write()
}

/// Restores the mask when dropped, also by a panic.
struct Blocked {
    /// `None` if the signals could not be blocked.
    mask_before: Option<libc::sigset_t>,
    pending_before: libc::sigset_t,
}

impl Blocked {
    fn new() -> Self {
        let pending_before = pending();
        let mut before = MaybeUninit::uninit();
        let set = set_of(&RAISED_BY_WRITES);
        // SAFETY: pthread_sigmask reads `set` and writes `before`.
        let failed =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, before.as_mut_ptr()) };
        // SAFETY: if it succeeded, pthread_sigmask has written the old mask.
        let mask_before = (failed == 0).then(|| unsafe { before.assume_init() });
        Self { mask_before, pending_before }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let Some(mask) = &self.mask_before else { return };
        let pending = pending();
        for signal in RAISED_BY_WRITES {
            if has(&pending, signal) && !has(&self.pending_before, signal) {
                let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
                let set = set_of(&[signal]);
                // SAFETY: sigtimedwait reads the set and the time; NULL means that details
                // of the signal are not wanted.
                unsafe {
                    libc::sigtimedwait(&raw const set, core::ptr::null_mut(), &raw const now)
                };
            }
        }
        // SAFETY: pthread_sigmask reads `mask`; NULL means that the old mask is not wanted.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, core::ptr::null_mut()) };
    }
}

fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised by sigemptyset, which cannot fail for a valid pointer.
    let mut set = unsafe { set.assume_init() };
    for &signal in signals {
        // SAFETY: sigaddset changes the set, which is initialised.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

/// The signals that wait for this thread or the process.
fn pending() -> libc::sigset_t {
    let mut set = set_of(&[]);
    // SAFETY: sigpending writes one set.
    unsafe { libc::sigpending(&raw mut set) };
    set
}

fn has(set: &libc::sigset_t, signal: libc::c_int) -> bool {
    // SAFETY: sigismember reads the set, which is initialised.
    unsafe { libc::sigismember(set, signal) == 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::testing::in_a_process;
    use std::io::Write;

    /// SIGPIPE as a C program has it: Rust's runtime ignores it.
    fn default_action(signal: libc::c_int) {
        // SAFETY: sets the default action of a signal in the test's own process.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }

    #[test]
    fn a_pipe_without_reader_is_an_error_and_no_signal() {
        in_a_process(module_path!(), "a_pipe_without_reader_is_an_error_and_no_signal", || {
            default_action(libc::SIGPIPE);
            let (reader, mut writer) = std::io::pipe().unwrap();
            drop(reader);
            let error = without_write_signals(|| writer.write(b"x")).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EPIPE));
            assert!(!has(&pending(), libc::SIGPIPE), "it waits for the thread");
        });
    }

    #[test]
    fn a_signal_of_the_host_is_kept() {
        in_a_process(module_path!(), "a_signal_of_the_host_is_kept", || {
            default_action(libc::SIGPIPE);
            let set = set_of(&[libc::SIGPIPE]);
            // SAFETY: reads the set; the old mask is not wanted.
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, core::ptr::null_mut()) };
            // SAFETY: takes a number; the signal is blocked.
            unsafe { libc::raise(libc::SIGPIPE) };
            let (reader, mut writer) = std::io::pipe().unwrap();
            drop(reader);
            without_write_signals(|| writer.write(b"x")).unwrap_err();
            assert!(has(&pending(), libc::SIGPIPE));
        });
    }

    /// The signals that this thread blocks, as the kernel writes them.
    fn mask() -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        status.lines().find(|line| line.starts_with("SigBlk")).unwrap().to_owned()
    }

    #[test]
    fn the_mask_is_restored() {
        in_a_process(module_path!(), "the_mask_is_restored", || {
            let before = mask();
            assert_ne!(without_write_signals(mask), before);
            assert_eq!(mask(), before);
        });
    }
}
