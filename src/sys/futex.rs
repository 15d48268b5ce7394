//! An event count on a futex: threads sleep on it until another one notifies them.
//!
//! A thread takes a [`Ticket`], looks for work, and waits with that ticket. If there was a
//! notification after the ticket was taken, the wait returns at once, so none is lost
//! between looking and sleeping. A wait may return spuriously; callers look again.
//!
//! The word counts notifications in its upper 31 bits; bit 0 is set while a thread
//! sleeps. To notify is one atomic addition, and a system call only if a thread sleeps.
//!
//! The futex is private to the process and the word is plain memory. A forked child has
//! its own copy, on which nobody sleeps. May run inside hooks; `errno` is preserved.
#![allow(unsafe_code, reason = "makes the futex system call")]

use super::errno::KeepErrno;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

const SLEEPING: u32 = 1;
const ONE_NOTIFICATION: u32 = 2;

/// The number of notifications when the ticket was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket(u32);

/// Counts notifications, for threads that wait for the next.
#[derive(Debug, Default)]
pub(crate) struct EventCount {
    word: AtomicU32,
}

impl EventCount {
    pub(crate) const fn new() -> Self {
        Self { word: AtomicU32::new(0) }
    }

    /// Take a ticket before looking for work.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.word.load(Ordering::Acquire) & !SLEEPING)
    }

    /// Wakes all sleeping threads. Returns whether that took a system call.
    pub(crate) fn notify(&self) -> bool {
        if self.word.fetch_add(ONE_NOTIFICATION, Ordering::AcqRel) & SLEEPING == 0 {
            return false;
        }
        // A thread that set the bit before the addition is woken below. One that sets it
        // after finds another count, or the bit cleared, and does not sleep.
        self.word.fetch_and(!SLEEPING, Ordering::AcqRel);
        let _keep = KeepErrno::new();
        // SAFETY: FUTEX_WAKE takes the address of the word, which `self` keeps alive, and
        // numbers.
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

    /// Sleeps until a notification or until `timeout` has passed. Returns at once if there
    /// was a notification since `ticket`.
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
        // SAFETY: FUTEX_WAIT reads the word, which `self` keeps alive, and the timeout,
        // which is on this stack.
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
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_notification_after_the_ticket_is_not_lost() {
        let event = EventCount::new();
        let ticket = event.ticket();
        assert!(!event.notify(), "nobody sleeps");
        event.wait(ticket, LONG);
    }

    #[test]
    fn a_wait_ends_with_its_timeout() {
        const TIMEOUT: Duration = Duration::from_millis(5);
        let (event, start) = (EventCount::new(), Instant::now());
        event.wait(event.ticket(), TIMEOUT);
        let waited = start.elapsed();
        assert!((TIMEOUT..LONG).contains(&waited), "{waited:?}");
    }

    /// Every turn is answered; a lost notification would hang for an hour.
    #[test]
    fn two_threads_take_turns() {
        const TURNS: usize = 20_000;
        let (there, back) = (EventCount::new(), EventCount::new());
        let turn = AtomicUsize::new(0);
        let wait_until = |event: &EventCount, odd: usize| {
            loop {
                let ticket = event.ticket();
                if turn.load(Ordering::Acquire) % 2 == odd {
                    return;
                }
                event.wait(ticket, LONG);
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
    fn one_notification_wakes_all_sleepers() {
        let event = EventCount::new();
        let open = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let ticket = event.ticket();
                        if open.load(Ordering::Acquire) {
                            return;
                        }
                        event.wait(ticket, LONG);
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(20));
            open.store(true, Ordering::Release);
            event.notify();
        });
    }
}
