//! Whether all domains would stop soon for a collection.
//!
//! A collection begins with a stop-the-world section, in which all domains wait for the last.
//! Once begun it cannot be given up. A domain that stays in C code without a blocking section
//! would keep all others standing still, also after the request for a snapshot has failed. So
//! before a collection is asked for, the domains are interrupted for nothing, as signals do, and
//! have to respond: a domain that polls computes its young limit anew (`caml_poll_gc_work`,
//! `runtime/domain.c`, 5.3.0), and for a domain in a blocking section its backup thread takes part.
//!
//! They have to respond twice in a row, so that a domain that is rarely in OCaml code is not met
//! there by chance. A domain that goes into such C code at the very moment at which the collection
//! begins is still waited for, as in every collection of the program's own.
//!
//! On the ordering thread, one at a time; the watcher asks whether it may still collect.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::domains;
use super::variables::Variables;
use crate::sys::race_once::RaceOnce;

/// What `caml_interrupt_all_signal_safe` sets each young limit to.
const INTERRUPTED: usize = usize::MAX;

/// How many times in a row all domains have to respond.
const ROUNDS: u32 = 2;

/// How long a collection may begin after they have.
const PERMIT: Duration = Duration::from_millis(50);

/// How long the first round may last. A busy machine needs longer, so each is given twice the
/// time of the one before.
const FIRST_ROUND: Duration = Duration::from_millis(50);
const LONGEST_ROUND: Duration = Duration::from_secs(2);

/// What is known about the responses of domains to one request.
pub(super) struct Responses {
    /// When this round or the permit began, in microseconds; 0 if none has.
    since: AtomicU64,
    /// How long this round may last, in microseconds.
    length: AtomicU64,
    /// Rounds in a row that all domains have responded to.
    passed: AtomicU32,
    is_permitted: AtomicBool,
}

/// What may be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    /// Nothing: a domain has not responded yet.
    None,
    /// A collection may be asked for.
    New,
    /// It has been asked for.
    Used,
}

impl Responses {
    pub(super) const fn new() -> Responses {
        Responses {
            since: AtomicU64::new(0),
            length: AtomicU64::new(0),
            passed: AtomicU32::new(0),
            is_permitted: AtomicBool::new(false),
        }
    }

    /// Begins anew, for another request.
    pub(super) fn reset(&self) {
        self.is_permitted.store(false, Ordering::Release);
        self.since.store(0, Ordering::Relaxed);
        self.passed.store(0, Ordering::Relaxed);
        self.length.store(FIRST_ROUND.as_micros() as u64, Ordering::Relaxed);
    }

    /// Whether a collection that was permitted may still begin. On any thread.
    pub(super) fn is_permitted(&self) -> bool {
        self.is_permitted.load(Ordering::Acquire)
    }

    /// Looks at the responses, and interrupts the domains for the next round. `interrupt` does that;
    /// `have_responded`: whether all domains have responded to the last.
    pub(super) fn look(
        &self,
        have_responded: impl FnOnce() -> bool,
        interrupt: impl FnOnce(),
    ) -> Permit {
        let now = microseconds();
        let since = self.since.load(Ordering::Relaxed);
        let age = now.saturating_sub(since);
        if self.is_permitted() {
            if age < PERMIT.as_micros() as u64 {
                return Permit::Used;
            }
            self.reset();
        } else if since != 0 {
            let length = self.length.load(Ordering::Relaxed);
            if have_responded() {
                let passed = self.passed.fetch_add(1, Ordering::Relaxed) + 1;
                if passed >= ROUNDS {
                    self.since.store(now, Ordering::Relaxed);
                    self.is_permitted.store(true, Ordering::Release);
                    return Permit::New;
                }
            } else if age < length {
                return Permit::None;
            } else {
                self.passed.store(0, Ordering::Relaxed);
                let longer = (2 * length).min(LONGEST_ROUND.as_micros() as u64);
                self.length.store(longer, Ordering::Relaxed);
            }
        }
        self.since.store(now, Ordering::Relaxed);
        interrupt();
        Permit::None
    }
}

/// Since the first call, from 1.
fn microseconds() -> u64 {
    static START: RaceOnce<Instant> = RaceOnce::new();
    START.get_or_init(Instant::now).elapsed().as_micros() as u64 + 1
}

/// Whether all domains have responded to the last interrupt, or need not. On a thread that does not
/// run OCaml code; afterwards it belongs to another domain.
pub(super) fn all_have_responded(variables: &Variables) -> bool {
    let mut responded = 0;
    for number in 0..domains::most(variables) {
        let state = variables.enter_domain(number);
        if state == 0 {
            break;
        }
        let limit = state + variables.layout.young_limit * size_of::<usize>();
        // SAFETY: `young_limit` of a domain's state, which is never unmapped; the runtime reads
        // and writes it atomically.
        let limit = unsafe { &*(limit as *const AtomicUsize) }.load(Ordering::Acquire);
        responded += usize::from(limit != INTERRUPTED || variables.is_covered());
    }
    // Of domains that have ended, nobody computes the limit.
    responded >= variables.running_domains()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn all_domains_respond_twice_before_a_collection() {
        let responses = Responses::new();
        responses.reset();
        let interrupts = Cell::new(0);
        let look =
            |responded| responses.look(|| responded, || interrupts.set(interrupts.get() + 1));
        assert_eq!((look(true), interrupts.get()), (Permit::None, 1), "nothing was asked yet");
        assert_eq!((look(false), interrupts.get()), (Permit::None, 1));
        assert_eq!((look(true), interrupts.get()), (Permit::None, 2));
        assert!(!responses.is_permitted());
        assert_eq!((look(true), interrupts.get()), (Permit::New, 2));
        assert!(responses.is_permitted());
        assert_eq!((look(false), interrupts.get()), (Permit::Used, 2));
        std::thread::sleep(2 * PERMIT);
        assert_eq!((look(true), interrupts.get()), (Permit::None, 3), "it is asked again");
        assert!(!responses.is_permitted());
    }

    #[test]
    fn a_round_that_lasts_too_long_is_begun_again() {
        let responses = Responses::new();
        responses.reset();
        let look = |responded| responses.look(|| responded, || ());
        assert_eq!([look(false), look(true)], [Permit::None; 2], "one round has passed");
        std::thread::sleep(2 * FIRST_ROUND);
        assert_eq!(look(false), Permit::None, "too late");
        assert_eq!([look(true), look(true)], [Permit::None, Permit::New], "two more are needed");
    }
}
