//! A event count: one thread sleeps on it, another wakes it.
//!
//! The word counts rings in its upper 31 bits; bit 0 says that somebody sleeps.
//! A sleeper first takes a [`Ticket`], then looks for work, then waits with that
//! ticket: if the bell rang after the ticket was taken, the wait returns at
//! once, so no ring is lost between looking and sleeping. Ringing is one atomic
//! addition, and a system call only when somebody sleeps. A wait may return
//! early for no reason; callers look again.
//!
//! The futex is private to the process, and a bell is plain memory, so a forked
//! child has its own copy on which nobody sleeps. May run inside hooks; `errno`
//! is kept.
#![allow(unsafe_code, reason = "makes the futex system call")]

use super::errno::KeepErrno;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

const SLEEPING: u32 = 1;
const RING: u32 = 2;

/// The state of a bell before its holder looked for work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket(u32);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct EventCount {
    word: AtomicU32,
}

impl EventCount {
    /// A bell that never rang.
    pub(crate) const fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }

    /// Take it before looking for work.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.word.load(Ordering::Acquire) & !SLEEPING)
    }

    /// Wakes all who sleep; true if that took a system call.
    pub(crate) fn notify(&self) -> bool {
        if self.word.fetch_add(RING, Ordering::AcqRel) & SLEEPING == 0 {
            return false;
        }
        // Who set the bit after our addition finds it gone, or the count
        // changed, and does not sleep; who set it before is woken.
        self.word.fetch_and(!SLEEPING, Ordering::AcqRel);
        let _keep = KeepErrno::new();
        // SAFETY: the word lives; waking reads nothing else.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                i32::MAX,
            )
        };
        true
    }

    /// Sleeps until the bell rings, or rang since `ticket`, or `timeout` is over.
    pub(crate) fn wait(&self, ticket: Ticket, timeout: Duration) {
        let asleep = ticket.0 | SLEEPING;
        let mut word = self.word.load(Ordering::Acquire);
        while word != asleep {
            if word != ticket.0 {
                return;
            }
            match self.word.compare_exchange(word, asleep, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let _keep = KeepErrno::new();
        // SAFETY: the word and the timeout live over the call.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                asleep,
                &raw const timeout,
            )
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_ring_after_the_ticket_is_not_lost() {
        let bell = EventCount::new();
        let ticket = bell.ticket();
        assert!(!bell.notify(), "nobody sleeps");
        bell.wait(ticket, LONG);
    }

    #[test]
    fn a_wait_ends_with_its_timeout() {
        let bell = EventCount::new();
        bell.wait(bell.ticket(), Duration::from_millis(1));
    }

    /// Every hand-over is answered; a lost ring would hang for an hour.
    #[test]
    fn two_threads_take_turns() {
        const TURNS: usize = 20_000;
        let (there, back) = (EventCount::new(), EventCount::new());
        let turn = AtomicUsize::new(0);
        let wait_until = |bell: &EventCount, odd: usize| {
            loop {
                let ticket = bell.ticket();
                if turn.load(Ordering::Acquire) % 2 == odd {
                    return;
                }
                bell.wait(ticket, LONG);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..TURNS {
                    wait_until(&there, 1);
                    turn.fetch_add(1, Ordering::Release);
                    back.notify();
                }
            });
            for _ in 0..TURNS {
                wait_until(&back, 0);
                turn.fetch_add(1, Ordering::Release);
                there.notify();
            }
        });
        assert_eq!(turn.load(Ordering::Acquire), 2 * TURNS);
    }

    #[test]
    fn one_ring_wakes_all_sleepers() {
        let bell = EventCount::new();
        let open = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let ticket = bell.ticket();
                        if open.load(Ordering::Acquire) {
                            return;
                        }
                        bell.wait(ticket, LONG);
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(20));
            open.store(true, Ordering::Release);
            bell.notify();
        });
    }
}
