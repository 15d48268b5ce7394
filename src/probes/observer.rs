//! A function of the program that the writer thread calls for a number.
//!
//! Whoever replaces it waits until the old one does not run any more, since the program may then
//! free what it uses. No lock, which a forked child could find locked: the writer announces a call,
//! then looks which function there is; the other replaces it, then looks whether a call is
//! announced. Both in one order of all threads (`SeqCst`), so at least one sees the other. A forked
//! child has neither the call that its parent's thread was in, nor the function.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

/// Returns the number. Called on the writer thread.
pub(crate) type ObserveFn = Box<dyn Fn() -> f64 + Send + Sync>;

struct Observer {
    function: ObserveFn,
    /// The process that has set it.
    pid: u32,
}

/// The function of one probe: the writer thread calls it, any other may replace it.
#[derive(Default)]
pub(crate) struct ObserverCell {
    /// NULL, or owns an observer.
    current: AtomicPtr<Observer>,
    /// The number of calls so far in the lower half, its lowest bit whether one is running, and the
    /// process of that call in the upper half. Only the writer thread changes it.
    calls: AtomicU64,
}

const RUNNING: u64 = 1;

/// Between two looks at a call that runs: it is to return at once.
const PACE: Duration = Duration::from_millis(1);

impl ObserverCell {
    /// Sets the function, or none. Returns when the one before does not run any more. Not inside
    /// such a function.
    pub(crate) fn replace(&self, function: Option<ObserveFn>) {
        let pid = std::process::id();
        let new = function
            .map_or(null_mut(), |function| Box::into_raw(Box::new(Observer { function, pid })));
        let old = self.current.swap(new, Ordering::SeqCst);
        let call = self.calls.load(Ordering::SeqCst);
        if is_running(call, pid) {
            while self.calls.load(Ordering::SeqCst) == call {
                std::thread::sleep(PACE);
            }
        }
        if !old.is_null() {
            // SAFETY: from `Box::into_raw` above. Nobody finds it any more, and a call that may
            // have found it before has ended.
            drop(unsafe { Box::from_raw(old) });
        }
    }

    /// The number, if this process has set a function. Writer thread.
    pub(super) fn call(&self) -> Option<f64> {
        if self.current.load(Ordering::Relaxed).is_null() {
            return None;
        }
        let pid = std::process::id();
        let number = (self.calls.load(Ordering::Relaxed) | RUNNING) as u32;
        let call = u64::from(pid) << 32 | u64::from(number.wrapping_add(2) | RUNNING as u32);
        self.calls.store(call, Ordering::SeqCst);
        // SAFETY: NULL, or an observer that nobody frees while a call is announced.
        let observer = unsafe { self.current.load(Ordering::SeqCst).as_ref() };
        let called = observer.filter(|observer| observer.pid == pid);
        let value = called.map(|observer| (observer.function)());
        self.calls.store(call & !RUNNING, Ordering::SeqCst);
        value
    }
}

fn is_running(call: u64, pid: u32) -> bool {
    call & RUNNING != 0 && (call >> 32) as u32 == pid
}

impl Drop for ObserverCell {
    fn drop(&mut self) {
        self.replace(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_function_that_was_set_last_is_called() {
        let cell = ObserverCell::default();
        assert_eq!(cell.call(), None);
        cell.replace(Some(Box::new(|| 1.0)));
        assert_eq!((cell.call(), cell.call()), (Some(1.0), Some(1.0)));
        cell.replace(Some(Box::new(|| 2.0)));
        assert_eq!(cell.call(), Some(2.0));
        cell.replace(None);
        assert_eq!(cell.call(), None);
    }

    #[test]
    fn what_was_replaced_does_not_run_any_more() {
        let cell = ObserverCell::default();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    cell.call();
                }
            });
            for _ in 0..100 {
                let alive = Arc::new(AtomicBool::new(true));
                let seen = Arc::clone(&alive);
                cell.replace(Some(Box::new(move || {
                    std::thread::sleep(Duration::from_micros(200));
                    assert!(seen.load(Ordering::Relaxed), "it runs after it was replaced");
                    0.0
                })));
                std::thread::sleep(Duration::from_micros(500));
                cell.replace(None);
                alive.store(false, Ordering::Relaxed);
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_call_of_the_parents_thread_does_not_run_in_a_child() {
        let own = std::process::id();
        let call = u64::from(own) << 32 | 6 | RUNNING;
        assert!(is_running(call, own) && !is_running(call, own + 1) && !is_running(call - 1, own));
    }
}
