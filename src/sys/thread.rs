//! The writer thread.
//!
//! It blocks every signal, so the host's signal handlers never run on it. A write to a
//! closed pipe or beyond a size limit returns an error there: the kernel sends SIGPIPE and
//! SIGXFSZ to the thread that wrote, where they stay pending until the thread ends.
//!
//! A panic ends the thread and is reported by [`Worker::join`]; it never unwinds into the
//! host. A forked child does not have the thread and must [forget](Worker::forget) the
//! worker.
#![allow(unsafe_code, reason = "changes the signal mask and reads the thread's id")]

use super::futex::EventCount;
use super::processor_time::CountedThread;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, Ordering};
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

/// Enough for reading DWARF, which needs the most stack of what the writer does.
const STACK_BYTES: usize = 2 << 20;

/// What the thread and its owner share.
#[derive(Default)]
struct Shared {
    /// The kernel's thread id: 0 before the thread starts, `ENDED` or `PANICKED` at its end.
    id: AtomicI32,
    /// Notified when `id` changes.
    changed: EventCount,
}

const ENDED: i32 = -1;
const PANICKED: i32 = -2;

/// Reports the end of the thread's work when it is dropped, also by a panic.
pub(crate) struct Finish(Arc<Shared>);

impl Finish {
    /// Reports the end of the work and sleeps until the process exits, which is faster than
    /// an orderly end of the thread.
    pub(crate) fn sleep_until_exit(self) -> ! {
        drop(self);
        loop {
            // All signals are blocked, so this does not return.
            // SAFETY: takes no arguments.
            unsafe { libc::pause() };
        }
    }
}

impl Drop for Finish {
    fn drop(&mut self) {
        let state = if std::thread::panicking() { PANICKED } else { ENDED };
        self.0.id.store(state, Ordering::Release);
        self.0.changed.notify();
    }
}

/// A running thread.
pub(crate) struct Worker<T> {
    handle: JoinHandle<T>,
    shared: Arc<Shared>,
}

/// How a thread ended.
pub(crate) enum JoinOutcome<T> {
    /// With this result.
    Done(T),
    /// By a panic, with its message if it has one.
    Panicked(String),
    /// It has not ended in time.
    Running(Worker<T>),
}

/// Starts a thread with all signals blocked. The body drops its argument when its work is
/// done, which [`Worker::join`] waits for.
pub(crate) fn start<T: Send + 'static>(
    name: &str,
    body: impl FnOnce(Finish) -> T + Send + 'static,
) -> io::Result<Worker<T>> {
    let shared = Arc::new(Shared::default());
    let finish = Finish(Arc::clone(&shared));
    let before = block_all()?;
    let spawned = Builder::new().name(name.into()).stack_size(STACK_BYTES).spawn(move || {
        // SAFETY: takes no arguments and cannot fail.
        let id = unsafe { libc::gettid() };
        finish.0.id.store(id, Ordering::Release);
        finish.0.changed.notify();
        let _counted = CountedThread::begin();
        body(finish)
    });
    set_mask(&before)?;
    Ok(Worker { handle: spawned?, shared })
}

impl<T> Worker<T> {
    /// The kernel's thread id; `None` before the thread starts and after its end.
    #[cfg(test)]
    pub(crate) fn id(&self) -> Option<i32> {
        Some(self.shared.id.load(Ordering::Acquire)).filter(|&id| id > 0)
    }

    /// Waits at most `timeout` for the end of the thread.
    pub(crate) fn join(self, timeout: Duration) -> JoinOutcome<T> {
        if self.wait(timeout).is_none() {
            return JoinOutcome::Running(self);
        }
        // The work is done; this only waits for the thread's own clean-up.
        match self.handle.join() {
            Ok(result) => JoinOutcome::Done(result),
            Err(panic) => JoinOutcome::Panicked(message(&*panic)),
        }
    }

    /// `ENDED` or `PANICKED`; `None` if the thread has not ended within `timeout`.
    fn wait(&self, timeout: Duration) -> Option<i32> {
        let start = Instant::now();
        loop {
            let ticket = self.shared.changed.ticket();
            let id = self.shared.id.load(Ordering::Acquire);
            if id < 0 {
                return Some(id);
            }
            let left = timeout.checked_sub(start.elapsed()).filter(|left| !left.is_zero())?;
            self.shared.changed.wait(ticket, left);
        }
    }

    /// Drops the handle in a forked child, where the thread does not exist, without detaching
    /// the thread: that would touch memory which the C library has reused.
    pub(crate) fn forget(self) {
        core::mem::forget(self);
    }
}

impl Worker<()> {
    /// Like [`Worker::join`], at the exit of the process: does not wait for the thread's
    /// clean-up.
    pub(crate) fn join_at_exit(self, timeout: Duration) -> JoinOutcome<()> {
        if self.wait(timeout) == Some(ENDED) {
            JoinOutcome::Done(())
        } else {
            self.join(Duration::ZERO)
        }
    }
}

fn message(panic: &(dyn core::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    text.or(owned).unwrap_or("no message").to_owned()
}

/// Blocks all signals on this thread. Returns the mask before.
fn block_all() -> io::Result<libc::sigset_t> {
    let mut all = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut before = MaybeUninit::uninit();
    // SAFETY: pthread_sigmask reads `all`, initialised above, and writes `before`.
    let failed =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    if failed != 0 {
        return Err(io::Error::from_raw_os_error(failed));
    }
    // SAFETY: pthread_sigmask succeeded, so it has written the old mask.
    Ok(unsafe { before.assume_init() })
}

fn set_mask(mask: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: pthread_sigmask reads `mask`; NULL means that the old mask is not wanted.
    let failed = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, core::ptr::null_mut()) };
    if failed == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(failed)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::testing::{in_a_fork, in_a_process};
    use std::sync::mpsc;

    const LONG: Duration = Duration::from_secs(3600);

    fn status(id: i32, field: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/self/task/{id}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line[field.len()..].trim().to_owned()
    }

    #[test]
    fn it_has_a_name_and_blocks_signals_and_the_caller_keeps_its_mask() {
        // SAFETY: takes no arguments and cannot fail.
        let own = unsafe { libc::gettid() };
        let before = status(own, "SigBlk:");
        let (stop, until) = mpsc::channel::<()>();
        let (started, has_started) = mpsc::channel();
        let worker = start("heaptap-writer", move |_| {
            started.send(()).unwrap();
            until.recv().unwrap_err();
            17
        })
        .unwrap();
        has_started.recv().unwrap();
        let id = worker.id().unwrap();
        assert_eq!(status(id, "Name:"), "heaptap-writer");
        let blocked = u64::from_str_radix(&status(id, "SigBlk:"), 16).unwrap();
        // All but KILL (9), STOP (19) and the two the C library keeps (32, 33).
        let expected = !(1 << 8 | 1 << 18 | 1 << 31 | 1 << 32);
        assert_eq!(blocked & expected, expected, "{blocked:x}");
        assert_eq!(status(own, "SigBlk:"), before);

        let JoinOutcome::Running(worker) = worker.join(Duration::from_millis(1)) else {
            panic!("it still waits")
        };
        drop(stop);
        assert!(matches!(worker.join(LONG), JoinOutcome::Done(17)));
    }

    #[test]
    fn a_panic_is_reported_by_join() {
        for join in [Worker::join, Worker::join_at_exit] {
            let worker: Worker<()> = start("panics", |_| panic!("on purpose: {}", 1 + 1)).unwrap();
            match join(worker, LONG) {
                JoinOutcome::Panicked(message) => assert_eq!(message, "on purpose: 2"),
                _ => panic!("it panicked"),
            }
        }
    }

    #[test]
    fn join_at_exit_waits_for_the_work() {
        let (stop, until) = mpsc::channel::<()>();
        let worker = start("works", move |_| assert!(until.recv().is_err())).unwrap();
        let JoinOutcome::Running(worker) = worker.join_at_exit(Duration::from_millis(1)) else {
            panic!("it still waits")
        };
        drop(stop);
        assert!(matches!(worker.join_at_exit(LONG), JoinOutcome::Done(())));
    }

    #[test]
    fn join_at_exit_does_not_wait_for_a_sleeping_thread() {
        in_a_process(module_path!(), "join_at_exit_does_not_wait_for_a_sleeping_thread", || {
            let worker: Worker<()> = start("rests", |finish| finish.sleep_until_exit()).unwrap();
            assert!(matches!(worker.join_at_exit(LONG), JoinOutcome::Done(())));
        });
    }

    #[test]
    fn a_forked_child_forgets_the_worker_and_starts_its_own() {
        in_a_process(
            module_path!(),
            "a_forked_child_forgets_the_worker_and_starts_its_own",
            || {
                let (stop, until) = mpsc::channel::<()>();
                let worker = start("parents", move |_| until.recv().unwrap_err()).unwrap();
                let mut worker = Some(worker);
                in_a_fork(|| {
                    worker.take().unwrap().forget();
                    let own = start("childs", |_| 5).unwrap();
                    assert!(matches!(own.join(LONG), JoinOutcome::Done(5)));
                });
                drop(stop);
                assert!(matches!(worker.unwrap().join(LONG), JoinOutcome::Done(_)));
            },
        );
    }

    #[test]
    fn a_name_that_is_too_long_does_no_harm() {
        let Ok(worker) = start("a name that is too long for the kernel", |_| 1) else { return };
        assert!(matches!(worker.join(LONG), JoinOutcome::Done(1)));
    }
}
