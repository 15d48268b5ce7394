//! Processor time: that of this process, and that of our own threads in it.
//!
//! Each of our threads has a place in a table while it runs, which names its clock. What it took is
//! added to a sum when it ends. No locks and no memory: a forked child finds the table in whatever
//! state it was, and the clocks in it, which are of another process, cannot be read.
#![allow(unsafe_code, reason = "reads clocks")]

use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The most of our threads whose time is known while they run. More are rare: clients that wait.
const PLACES: usize = 64;

/// No clock: the number of a real clock is never 0 here, since that is the wall clock.
const FREE: i32 = 0;

static RUNNING: [AtomicI32; PLACES] = [const { AtomicI32::new(FREE) }; PLACES];

/// Nanoseconds of threads that have ended.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// The time that all threads of this process have taken, in nanoseconds.
pub(crate) fn of_process() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// The same of the calling thread.
pub(crate) fn of_this_thread() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// The same of our own threads. It may be too low by what a thread took that just ends.
pub(crate) fn of_our_threads() -> u64 {
    let running = RUNNING.iter().map(|place| place.load(Ordering::Relaxed));
    let running = running.filter(|&clock| clock != FREE).filter_map(read);
    running.fold(ENDED.load(Ordering::Relaxed), u64::saturating_add)
}

/// The calling thread, one of ours, until this is dropped.
pub(super) struct CountedThread {
    place: Option<&'static AtomicI32>,
}

impl CountedThread {
    pub(super) fn begin() -> CountedThread {
        let mut clock = FREE;
        // SAFETY: takes no arguments and cannot fail.
        let thread = unsafe { libc::pthread_self() };
        // SAFETY: the handle is that of the calling thread, which runs; writes one number.
        let failed = unsafe { libc::pthread_getcpuclockid(thread, &raw mut clock) };
        if failed != 0 {
            return CountedThread { place: None };
        }
        // In a forked child, places of the parent's threads are free: their clocks are not here.
        let claimed = |place: &&AtomicI32| {
            let known = place.load(Ordering::Relaxed);
            let is_free = known == FREE || read(known).is_none();
            is_free
                && place
                    .compare_exchange(known, clock, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
        };
        CountedThread { place: RUNNING.iter().find(claimed) }
    }
}

impl Drop for CountedThread {
    fn drop(&mut self) {
        let took = of_this_thread();
        if let Some(place) = self.place {
            place.store(FREE, Ordering::Relaxed);
        }
        ENDED.fetch_add(took, Ordering::Relaxed);
    }
}

/// Nanoseconds; `None` if there is no such clock, as that of a thread which has ended.
fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes `time`.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (failed == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::testing::{in_a_fork, in_a_process};
    use crate::sys::thread::{self, JoinOutcome};
    use std::sync::mpsc;
    use std::time::Duration;

    const WORK: u64 = 20_000_000;

    /// Takes processor time on the calling thread.
    fn work() {
        let start = read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap();
        while read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap() < start + WORK {}
    }

    #[test]
    fn time_counts_while_a_thread_runs_and_after_its_end() {
        let test = "time_counts_while_a_thread_runs_and_after_its_end";
        in_a_process(module_path!(), test, || {
            let before = of_our_threads();
            work();
            assert_eq!(of_our_threads(), before, "this thread is the program's");
            let (worked, has_worked) = mpsc::channel();
            let (end, ended) = mpsc::channel::<()>();
            let worker = thread::start("works", move |_| {
                work();
                worked.send(()).unwrap();
                let _ = ended.recv();
            });
            let worker = worker.unwrap();
            has_worked.recv().unwrap();
            assert!(of_our_threads() >= before + WORK);
            in_a_fork(|| assert!(of_our_threads() < WORK, "the parent's thread is not here"));
            drop(end);
            assert!(matches!(worker.join(Duration::from_secs(60)), JoinOutcome::Done(())));
            assert!((before + WORK..of_process()).contains(&of_our_threads()));
        });
    }

    #[test]
    fn more_threads_than_places_count_at_their_ends() {
        let test = "more_threads_than_places_count_at_their_ends";
        in_a_process(module_path!(), test, || {
            let counted: Vec<_> = (0..PLACES + 3).map(|_| CountedThread::begin()).collect();
            assert!(counted[PLACES].place.is_none() && counted[PLACES - 1].place.is_some());
            drop(counted);
            assert!(CountedThread::begin().place.is_some());
        });
    }
}
