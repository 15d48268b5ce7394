//! Snapshots that are taken by themselves: after a time, a signal, a number of major
//! collections, or when memory runs short. On the thread `heaptap-trigger`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use heaptap_settings::Trigger;

use super::process::Process;
use super::signal::{self, WAKE};
use crate::snapshot::Reason;
use crate::sys::memory_pressure::MemoryWatch;
use crate::sys::thread;
use crate::tracer::say;

/// The number of major collections that is waited for; the highest number if none is.
static NEXT_MAJOR: AtomicU64 = AtomicU64::new(u64::MAX);
/// The number that was reached; 0 if none was.
static REACHED: AtomicU64 = AtomicU64::new(0);

/// Notes how many major collections have ended. Inside hooks; costs one load, and a
/// system call when the number that is waited for is reached.
#[inline]
pub(crate) fn note_major_collections(count: u64) {
    if count >= NEXT_MAJOR.load(Ordering::Relaxed) {
        reached(count);
    }
}

#[cold]
fn reached(count: u64) {
    NEXT_MAJOR.store(u64::MAX, Ordering::Relaxed);
    REACHED.store(count, Ordering::Release);
    WAKE.notify();
}

/// Sets the handlers and starts the thread, if any trigger needs it. Failures are reported to the user.
pub(super) fn start(process: &'static Process) {
    let mut is_needed = false;
    for trigger in &process.triggers {
        match trigger {
            Trigger::Exit => {}
            Trigger::Signal(signal) if !signal::install(*signal) => say(format_args!(
                "no snapshots are taken at SIG{name}: the program handles it itself",
                name = signal.name()
            )),
            Trigger::Major(_) | Trigger::Every(_) | Trigger::Signal(_) | Trigger::Pressure => {
                is_needed = true;
            }
        }
    }
    if !is_needed {
        return;
    }
    let schedule = Schedule::new(&process.triggers, Instant::now());
    if let Err(error) = thread::start("heaptap-trigger", move |_| run(process, schedule)) {
        say(format_args!("no snapshots are taken: cannot start a thread: {error}"));
    }
}

fn run(process: &'static Process, mut schedule: Schedule) {
    loop {
        let ticket = WAKE.ticket();
        match schedule.due(Instant::now()) {
            Some(reason) => {
                let Some(_in_progress) = process.begin() else { return };
                process.take_automatically(reason);
            }
            None => {
                WAKE.wait(ticket, schedule.until_next(Instant::now()));
            }
        }
    }
}

/// What is waited for.
struct Schedule {
    timers: Vec<Timer>,
    /// The numbers of collections that were not reached yet, ascending.
    majors: Vec<u64>,
    memory: Option<MemoryWatch>,
}

struct Timer {
    period: Duration,
    next: Instant,
}

impl Schedule {
    fn new(triggers: &[Trigger], now: Instant) -> Schedule {
        let timers = triggers.iter().filter_map(|trigger| match trigger {
            Trigger::Every(period) => Some(Timer { period: *period, next: now + *period }),
            _ => None,
        });
        let majors = triggers.iter().filter_map(|trigger| match trigger {
            Trigger::Major(number) => Some(*number),
            _ => None,
        });
        let memory = triggers.contains(&Trigger::Pressure).then(|| MemoryWatch::new(now));
        let mut schedule = Schedule { timers: timers.collect(), majors: majors.collect(), memory };
        schedule.majors.sort_unstable();
        schedule.wait_for_major();
        schedule
    }

    fn wait_for_major(&self) {
        NEXT_MAJOR.store(self.majors.first().copied().unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Why a snapshot is due, if one is. Several reasons at a time are one snapshot each.
    fn due(&mut self, now: Instant) -> Option<Reason> {
        let reached = REACHED.swap(0, Ordering::Acquire);
        if reached > 0 {
            self.majors.retain(|number| *number > reached);
            self.wait_for_major();
            return Some(Reason::Major);
        }
        if signal::take() {
            return Some(Reason::Signal);
        }
        if self.memory.as_mut().is_some_and(|memory| memory.is_short(now)) {
            return Some(Reason::Pressure);
        }
        let timer = self.timers.iter_mut().find(|timer| timer.next <= now)?;
        // A snapshot that takes longer than the period leaves out those that it has missed.
        while timer.next <= now {
            timer.next += timer.period;
        }
        Some(Reason::Timer)
    }

    fn until_next(&self, now: Instant) -> Duration {
        const LONG: Duration = Duration::from_secs(3600);
        let timers = self.timers.iter().map(|timer| timer.next);
        let next = timers.chain(self.memory.as_ref().map(|memory| memory.next)).min();
        next.map_or(LONG, |next| next.saturating_duration_since(now).min(LONG))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::testing::in_a_process;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn timers_are_due_once_in_a_period_and_missed_ones_are_left_out() {
        in_a_process(
            module_path!(),
            "timers_are_due_once_in_a_period_and_missed_ones_are_left_out",
            || {
                let start = Instant::now();
                let mut schedule = Schedule::new(&[Trigger::Every(10 * SECOND)], start);
                assert_eq!(schedule.due(start), None);
                assert_eq!(schedule.until_next(start + 4 * SECOND), 6 * SECOND);
                assert_eq!(schedule.due(start + 10 * SECOND), Some(Reason::Timer));
                assert_eq!(schedule.due(start + 10 * SECOND), None);
                assert_eq!(schedule.due(start + 45 * SECOND), Some(Reason::Timer));
                assert_eq!(schedule.due(start + 45 * SECOND), None);
                assert_eq!(schedule.until_next(start + 45 * SECOND), 5 * SECOND);
                assert_eq!(schedule.until_next(start + 60 * SECOND), Duration::ZERO);
            },
        );
    }

    #[test]
    fn each_number_of_collections_is_reached_once() {
        in_a_process(module_path!(), "each_number_of_collections_is_reached_once", || {
            let now = Instant::now();
            let majors = [3, 10, 5].map(Trigger::Major);
            let mut schedule = Schedule::new(&majors, now);
            note_major_collections(2);
            assert_eq!(schedule.due(now), None);
            note_major_collections(3);
            note_major_collections(4);
            assert_eq!(schedule.due(now), Some(Reason::Major));
            assert_eq!(schedule.due(now), None);
            // Collections that ended unseen are one snapshot.
            note_major_collections(12);
            note_major_collections(13);
            assert_eq!(schedule.due(now), Some(Reason::Major));
            assert!(schedule.majors.is_empty());
            note_major_collections(u64::MAX - 1);
            assert_eq!(schedule.due(now), None);
        });
    }
}
