//! What other threads ask of the writer thread. Never on a hook's path.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use heaptap_trace::TraceInfo;

use crate::sys::futex::EventCount;

/// A file to go on in.
pub(crate) struct NextFile<W> {
    pub(crate) out: W,
    pub(crate) info: TraceInfo,
}

/// Something to do, and whom to tell when it is done.
pub(crate) enum Request<W> {
    /// Everything committed so far belongs in the file.
    Flush(Sender<()>),
    /// The same, and then a new file begins.
    Rotate(Box<NextFile<W>>, Sender<()>),
    /// The same, and then the thread ends.
    Stop,
    /// The same at the end of the process, which gives back all that the thread has.
    Leave,
}

/// Requests that wait for the writer thread.
pub(crate) struct Mailbox<W> {
    letters: Mutex<Letters<W>>,
    /// How often somebody was in a hurry, and how many of these are served.
    hurries: AtomicU64,
    served: AtomicU64,
    /// Who is in a hurry waits here.
    answered: EventCount,
}

struct Letters<W> {
    waiting: Vec<Request<W>>,
    /// Nobody reads any more.
    closed: bool,
}

impl<W> Mailbox<W> {
    pub(crate) fn new() -> Mailbox<W> {
        Mailbox {
            letters: Mutex::new(Letters { waiting: Vec::new(), closed: false }),
            hurries: AtomicU64::new(0),
            served: AtomicU64::new(0),
            answered: EventCount::new(),
        }
    }

    /// Has everything committed so far written, where neither locks nor memory
    /// may be taken, such as in a signal handler. Waits no longer than that.
    pub(crate) fn flush_signal_safe(&self, longest: Duration, wake: impl FnOnce()) -> bool {
        let mine = self.hurries.fetch_add(1, Ordering::AcqRel) + 1;
        wake();
        let begin = Instant::now();
        loop {
            let ticket = self.answered.ticket();
            if self.served.load(Ordering::Acquire) >= mine {
                return true;
            }
            let left = longest.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return false;
            }
            self.answered.wait(ticket, left);
        }
    }

    /// How many were in a hurry up to now, if there are any to be served.
    pub(crate) fn hurried(&self) -> Option<u64> {
        let hurries = self.hurries.load(Ordering::Acquire);
        (hurries > self.served.load(Ordering::Relaxed)).then_some(hurries)
    }

    /// So many are served.
    pub(crate) fn serve(&self, hurries: u64) {
        self.served.fetch_max(hurries, Ordering::AcqRel);
        self.answered.notify();
    }

    /// Leaves a request, wakes the thread and waits for its answer. False: the
    /// thread is gone, or ended before it could do it.
    pub(crate) fn ask(
        &self,
        request: impl FnOnce(Sender<()>) -> Request<W>,
        wake: impl FnOnce(),
    ) -> bool {
        let (done, answer) = channel();
        if !self.leave(request(done)) {
            return false;
        }
        wake();
        answer.recv().is_ok()
    }

    /// Leaves a request; false when nobody will read it.
    pub(crate) fn leave(&self, request: Request<W>) -> bool {
        let mut letters = self.lock();
        if !letters.closed {
            letters.waiting.push(request);
        }
        !letters.closed
    }

    /// What is waiting, in order.
    pub(crate) fn take(&self) -> Vec<Request<W>> {
        std::mem::take(&mut self.lock().waiting)
    }

    /// Refuses all that comes, and lets those who wait know.
    pub(crate) fn close(&self) {
        let mut letters = self.lock();
        letters.closed = true;
        letters.waiting.clear();
        drop(letters);
        self.serve(u64::MAX);
    }

    fn lock(&self) -> MutexGuard<'_, Letters<W>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_a_closed_mailbox_is_told() {
        let mailbox = Mailbox::<()>::new();
        assert!(mailbox.leave(Request::Stop));
        assert_eq!(mailbox.take().len(), 1);
        mailbox.close();
        assert!(!mailbox.leave(Request::Stop));
        assert!(!mailbox.ask(Request::Flush, || panic!("nobody to wake")));
    }

    #[test]
    fn who_is_in_a_hurry_is_served_or_goes_on() {
        let mailbox = Mailbox::<()>::new();
        assert_eq!(mailbox.hurried(), None);
        assert!(!mailbox.flush_signal_safe(Duration::from_millis(1), || ()));
        std::thread::scope(|scope| {
            let waiting =
                scope.spawn(|| mailbox.flush_signal_safe(Duration::from_secs(3600), || ()));
            while mailbox.hurried() != Some(2) {
                std::thread::yield_now();
            }
            mailbox.serve(2);
            assert!(waiting.join().unwrap());
        });
        assert_eq!(mailbox.hurried(), None);
        mailbox.close();
        assert!(mailbox.flush_signal_safe(Duration::from_secs(3600), || ()));
    }

    #[test]
    fn who_waits_is_told_when_it_closes() {
        let mailbox = Mailbox::<()>::new();
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| mailbox.ask(Request::Flush, || ()));
            while mailbox.lock().waiting.is_empty() {
                std::thread::yield_now();
            }
            mailbox.close();
            assert!(!asked.join().unwrap());
        });
    }
}
