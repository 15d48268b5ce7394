//! One thread offers, others come to safe points.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;

use super::*;
use crate::sys::testing::in_a_process;

/// Does nothing when poked, or panics.
struct Points {
    panics: bool,
}

impl SafePoints for Points {
    fn poke(&self) {
        assert!(is_wanted());
        assert!(!self.panics, "while it waits");
    }

    fn come_to_safe_point(&self) {}
}

/// Counts how often it is carried out.
struct Counted(AtomicUsize, Needs);

impl Counted {
    fn new(needs: Needs) -> Counted {
        Counted(AtomicUsize::new(0), needs)
    }

    fn times(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Task for Counted {
    fn carry_out(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn needs(&self) -> Needs {
        self.1
    }
}

/// Offers a task while another thread calls `arrive` again and again.
fn offered(needs: Needs, arrive: fn()) -> (Result<(), Unreached>, usize) {
    let task = Counted::new(needs);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                arrive();
                std::thread::yield_now();
            }
        });
        let points = Points { panics: false };
        let wait = Duration::from_millis(200);
        let outcome = offer(&points, &task, wait, &Cancellation::default());
        is_over.store(true, Ordering::Relaxed);
        outcome
    });
    assert!(!is_wanted());
    (outcome, task.times())
}

#[test]
fn a_task_is_carried_out_once_where_it_can_be() {
    in_a_process(module_path!(), "a_task_is_carried_out_once_where_it_can_be", || {
        assert_eq!(offered(Needs::Heap, at_safe_point), (Ok(()), 1));
        assert_eq!(offered(Needs::Lock, at_safe_point), (Ok(()), 1));
        assert_eq!(offered(Needs::Lock, with_lock_held), (Ok(()), 1));
        let late = Err(Unreached::Late(Duration::from_millis(200)));
        assert_eq!(offered(Needs::Heap, with_lock_held), (late, 0));
        assert_eq!(offered(Needs::Lock, || {}), (late, 0));
    });
}

#[test]
fn a_cancelled_task_is_given_up() {
    in_a_process(module_path!(), "a_cancelled_task_is_given_up", || {
        let (task, cancellation) = (Counted::new(Needs::Lock), Cancellation::default());
        cancellation.cancel();
        let points = Points { panics: false };
        let given_up = offer(&points, &task, Duration::from_secs(60), &cancellation);
        assert_eq!(given_up, Err(Unreached::Cancelled));
        at_safe_point();
        assert_eq!(task.times(), 0);
    });
}

#[test]
fn a_task_is_not_offered_any_more_once_its_thread_unwinds() {
    let test = "a_task_is_not_offered_any_more_once_its_thread_unwinds";
    in_a_process(module_path!(), test, || {
        let task = Counted::new(Needs::Heap);
        let points = Points { panics: true };
        let wait = Duration::from_secs(60);
        let offered = catch_unwind(AssertUnwindSafe(|| {
            offer(&points, &task, wait, &Cancellation::default()).is_ok()
        }));
        assert!(offered.is_err());
        assert!(!is_wanted() && OFFER.load(Ordering::Acquire).is_null());
        at_safe_point();
        assert_eq!(task.times(), 0);
    });
}

#[test]
fn one_thread_has_the_turn() {
    in_a_process(module_path!(), "one_thread_has_the_turn", || {
        let turn = Turn::take().unwrap();
        assert!(Turn::take().is_none());
        let short = Duration::from_millis(10);
        assert!(Turn::wait(short, &Cancellation::default()).is_none());
        drop(turn);
        assert!(Turn::wait(short, &Cancellation::default()).is_some());
    });
}
