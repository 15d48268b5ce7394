//! A signal that asks for a snapshot.
//!
//! The handler only notes the signal and wakes a thread. It runs with `SA_RESTART`, so that most
//! system calls go on, and on the alternate stack, if the thread has one. A program that
//! sets a handler for the same signal later replaces ours.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use heaptap_settings::TriggerSignal;

use crate::sys::fatal_signals;
use crate::sys::futex::EventCount;

/// A signal has come since the last [`take`].
static RECEIVED: AtomicBool = AtomicBool::new(false);
/// The process that has set the handler. Forked children inherit it.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// Wakes the thread that takes snapshots.
pub(super) static WAKE: EventCount = EventCount::new();

fn number(signal: TriggerSignal) -> c_int {
    match signal {
        TriggerSignal::Hup => libc::SIGHUP,
        TriggerSignal::Usr1 => libc::SIGUSR1,
        TriggerSignal::Usr2 => libc::SIGUSR2,
    }
}

/// Sets the handler of a signal. False if the program has one.
pub(super) fn install(signal: TriggerSignal) -> bool {
    OWNER.store(std::process::id(), Ordering::Relaxed);
    let number = number(signal);
    // SAFETY: all zeros are a valid `sigaction`.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: sigaction writes one struct; NULL changes nothing.
    let failed = unsafe { libc::sigaction(number, std::ptr::null(), &raw mut before) };
    let is_free = [libc::SIG_DFL, libc::SIG_IGN].contains(&before.sa_sigaction)
        || fatal_signals::stands_for_default(before.sa_sigaction);
    if failed != 0 || !is_free {
        return false;
    }
    // SAFETY: all zeros are a valid `sigaction`, with an empty mask.
    let mut own: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int) = on_signal;
    own.sa_sigaction = handler as libc::sighandler_t;
    own.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: sigaction reads one struct; `on_signal` has the type of a handler without
    // `SA_SIGINFO`, and this library is never unloaded once it has started.
    unsafe { libc::sigaction(number, &raw const own, std::ptr::null_mut()) == 0 }
}

/// Async-signal-safe: an atomic store, `getpid` and a futex, which preserves `errno`.
extern "C" fn on_signal(_: c_int) {
    // In a forked child nobody waits.
    if OWNER.load(Ordering::Relaxed) == std::process::id() {
        RECEIVED.store(true, Ordering::Release);
        WAKE.notify();
    }
}

/// Whether a signal has come since the last call.
pub(super) fn take() -> bool {
    RECEIVED.swap(false, Ordering::AcqRel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::testing::in_a_process;

    extern "C" fn of_the_program(_: c_int) {}

    #[test]
    fn a_signal_is_noted_once() {
        in_a_process(module_path!(), "a_signal_is_noted_once", || {
            assert!(install(TriggerSignal::Usr2));
            assert!(!take());
            // SAFETY: takes a number; the signal has a handler.
            unsafe { libc::raise(libc::SIGUSR2) };
            assert!(take() && !take());
        });
    }

    #[test]
    fn a_handler_of_the_program_is_kept() {
        in_a_process(module_path!(), "a_handler_of_the_program_is_kept", || {
            let handler: extern "C" fn(c_int) = of_the_program;
            // SAFETY: sets a handler in the test's own process.
            unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
            assert!(!install(TriggerSignal::Usr1));
            // SAFETY: takes a number; the signal has a handler.
            unsafe { libc::raise(libc::SIGUSR1) };
            assert!(!take());
        });
    }
}
