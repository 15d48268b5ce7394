//! The writer thread.
//!
//! Every signal is blocked on it, so none of the host's handlers ever runs
//! there, and a write into a closed pipe or beyond a size limit comes back as an
//! error: SIGPIPE and SIGXFSZ are sent to the thread that wrote, stay pending
//! there, and vanish with it.
//!
//! A panic on it ends the thread and is reported by [`Worker::join`]; it never
//! crosses into the host. In a forked child the thread does not exist, so there
//! a worker is to be [forgotten](Worker::forget).
#![allow(unsafe_code, reason = "changes the signal mask and asks for the thread's id")]

use super::futex::EventCount;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, Ordering};
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

/// Enough for the deepest thing the writer does, reading DWARF.
const STACK_BYTES: usize = 2 << 20;

/// What the thread and its owner share.
#[derive(Default)]
struct Shared {
    /// The kernel's number for the thread: 0 before it began, `ENDED` or `PANICKED`
    /// after.
    id: AtomicI32,
    changed: EventCount,
}

const ENDED: i32 = -1;
const PANICKED: i32 = -2;

/// Says that the thread is over, however it ends: when it is dropped.
pub(crate) struct Finish(Arc<Shared>);

impl Finish {
    /// Ends the thread's work at the end of the process: it waits there for the
    /// system to end it, since to end it in order takes longer.
    pub(crate) fn rest(self) -> ! {
        drop(self);
        loop {
            // All signals are blocked, so it does not come back.
            // SAFETY: takes nothing.
            unsafe { libc::pause() };
        }
    }
}

impl Drop for Finish {
    fn drop(&mut self) {
        let how = if std::thread::panicking() { PANICKED } else { ENDED };
        self.0.id.store(how, Ordering::Release);
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
    /// Not yet; here it is back.
    Running(Worker<T>),
}

/// Starts a thread with all signals blocked. Its owner is told of its end when the
/// body drops what it is given.
pub(crate) fn start<T: Send + 'static>(
    name: &str,
    body: impl FnOnce(Finish) -> T + Send + 'static,
) -> io::Result<Worker<T>> {
    let shared = Arc::new(Shared::default());
    let finish = Finish(Arc::clone(&shared));
    let before = block_all()?;
    let spawned = Builder::new().name(name.into()).stack_size(STACK_BYTES).spawn(move || {
        // SAFETY: takes nothing and cannot fail.
        let id = unsafe { libc::gettid() };
        finish.0.id.store(id, Ordering::Release);
        finish.0.changed.notify();
        body(finish)
    });
    set_mask(&before)?;
    Ok(Worker { handle: spawned?, shared })
}

impl<T> Worker<T> {
    /// The kernel's number for the thread; `None` if it has not begun, or ended.
    #[cfg(test)]
    pub(crate) fn id(&self) -> Option<i32> {
        Some(self.shared.id.load(Ordering::Acquire)).filter(|&id| id > 0)
    }

    /// Waits for the end of the thread, at most `timeout`.
    pub(crate) fn join(self, timeout: Duration) -> JoinOutcome<T> {
        if self.wait(timeout).is_none() {
            return JoinOutcome::Running(self);
        }
        // Only the end of the thread's own bookkeeping is waited for here.
        match self.handle.join() {
            Ok(result) => JoinOutcome::Done(result),
            Err(panic) => JoinOutcome::Panicked(message(&*panic)),
        }
    }

    /// How the thread has ended: `ENDED` or `PANICKED`; `None` if that took longer.
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

    /// For a forked child: lets go of a thread that does not exist there. A drop
    /// would detach it, which touches memory that the C library has reused.
    pub(crate) fn forget(self) {
        core::mem::forget(self);
    }
}

impl Worker<()> {
    /// [`Worker::join`] at the end of the process: the thread's bookkeeping ends
    /// with that, and is not waited for.
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

/// Blocks all signals on this thread; the mask before.
fn block_all() -> io::Result<libc::sigset_t> {
    let mut all = MaybeUninit::uninit();
    // SAFETY: fills the set given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut before = MaybeUninit::uninit();
    // SAFETY: reads one set, initialised above, and writes the other.
    let failed =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    if failed != 0 {
        return Err(io::Error::from_raw_os_error(failed));
    }
    // SAFETY: written by the successful call.
    Ok(unsafe { before.assume_init() })
}

fn set_mask(mask: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: reads one set; the old mask is not asked for.
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
    fn it_has_a_name_and_no_signals_and_ours_are_as_before() {
        // SAFETY: takes nothing and cannot fail.
        let own = unsafe { libc::gettid() };
        let before = status(own, "SigBlk:");
        let (stop, until) = mpsc::channel::<()>();
        let (say, said) = mpsc::channel();
        let worker = start("heaptap-writer", move |_| {
            say.send(()).unwrap();
            until.recv().unwrap_err();
            17
        })
        .unwrap();
        said.recv().unwrap();
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
    fn a_panic_is_a_result() {
        for join in [Worker::join, Worker::join_at_exit] {
            let worker: Worker<()> = start("panics", |_| panic!("on purpose: {}", 1 + 1)).unwrap();
            match join(worker, LONG) {
                JoinOutcome::Panicked(message) => assert_eq!(message, "on purpose: 2"),
                _ => panic!("it panicked"),
            }
        }
    }

    #[test]
    fn at_the_end_of_the_process_its_work_is_waited_for() {
        let (stop, until) = mpsc::channel::<()>();
        let worker = start("works", move |_| assert!(until.recv().is_err())).unwrap();
        let JoinOutcome::Running(worker) = worker.join_at_exit(Duration::from_millis(1)) else {
            panic!("it still waits")
        };
        drop(stop);
        assert!(matches!(worker.join_at_exit(LONG), JoinOutcome::Done(())));
    }

    #[test]
    fn who_rests_is_done_at_the_end_of_the_process() {
        in_a_process(module_path!(), "who_rests_is_done_at_the_end_of_the_process", || {
            let worker: Worker<()> = start("rests", |finish| finish.rest()).unwrap();
            assert!(matches!(worker.join_at_exit(LONG), JoinOutcome::Done(())));
        });
    }

    #[test]
    fn a_child_forgets_its_parents_thread_and_starts_its_own() {
        in_a_process(
            module_path!(),
            "a_child_forgets_its_parents_thread_and_starts_its_own",
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
    fn a_name_that_cannot_be_is_an_error_or_a_thread() {
        let Ok(worker) = start("a name that is too long for the kernel", |_| 1) else { return };
        assert!(matches!(worker.join(LONG), JoinOutcome::Done(1)));
    }
}
