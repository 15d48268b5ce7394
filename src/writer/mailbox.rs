//! Requests of other threads to the writer thread. Never on a hook's path.
//!
//! There are two ways to ask. A [`Request`] takes a lock and memory. An urgent
//! flush takes neither: it increments a counter and waits on a futex, so a signal
//! handler may ask for it.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use heaptap_trace::SeriesId;

use crate::queue::BlockId;
use crate::sys::futex::EventCount;
use crate::writer::dump::{DumpOrder, DumpReason, Dumped};
use crate::writer::trace_file::{IdentifiedBlocks, NewFile};

/// Something to do, and where to report that it is done.
pub(crate) enum Request<W> {
    /// Write everything committed so far.
    Flush(Sender<()>),
    /// The same, and then begin a new file.
    Rotate(Box<NewFile<W>>, Sender<()>),
    /// The same, and then begin the next part of a series, at this rate or at the one before.
    /// Reports the name of its trace.
    NextPart(Option<f64>, Sender<OsString>),
    /// The same, and then have a place for blocks that are sampled at other rates than the file's: if
    /// it is no part of a series, it becomes one of its own. Reports why there is none.
    ManyRates(SeriesId, Sender<Result<(), String>>),
    /// The same, and then report the ids that the file has for these blocks.
    Identify(Vec<BlockId>, Sender<IdentifiedBlocks>),
    /// The same, and then write what is kept in memory to files.
    Dump(DumpOrder, Sender<Result<Dumped, String>>),
    /// The same, and then end the thread.
    Stop,
    /// The same at the end of the process, which frees all that the thread has.
    StopAtExit,
}

/// Requests that wait for the writer thread.
pub(crate) struct Mailbox<W> {
    requests: Mutex<Requests<W>>,
    /// How many urgent flushes were ever asked for.
    urgent_asked: AtomicU64,
    /// The reason of a dump that goes with the next of them; 0 if there is none.
    last_words: AtomicU32,
    /// How many of those are done; `u64::MAX` once the mailbox is closed.
    urgent_done: AtomicU64,
    /// Rings when `urgent_done` grows.
    urgent_event: EventCount,
}

struct Requests<W> {
    waiting: Vec<Request<W>>,
    /// The thread has ended, and will not read any more requests.
    closed: bool,
}

impl<W> Mailbox<W> {
    pub(crate) fn new() -> Mailbox<W> {
        Mailbox {
            requests: Mutex::new(Requests { waiting: Vec::new(), closed: false }),
            urgent_asked: AtomicU64::new(0),
            last_words: AtomicU32::new(0),
            urgent_done: AtomicU64::new(0),
            urgent_event: EventCount::new(),
        }
    }

    /// Has everything committed so far written, without locks or memory. Waits no
    /// longer than `longest`. False: it was not written in time.
    pub(crate) fn flush_signal_safe(&self, longest: Duration, wake: impl FnOnce()) -> bool {
        let mine = self.urgent_asked.fetch_add(1, Ordering::AcqRel) + 1;
        wake();
        let begin = Instant::now();
        loop {
            let ticket = self.urgent_event.ticket();
            if self.urgent_done.load(Ordering::Acquire) >= mine {
                return true;
            }
            let left = longest.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return false;
            }
            self.urgent_event.wait(ticket, left);
        }
    }

    /// The same, and has what is kept in memory written to files.
    pub(crate) fn dump_signal_safe(
        &self,
        reason: DumpReason,
        longest: Duration,
        wake: impl FnOnce(),
    ) -> bool {
        self.last_words.store(reason.number(), Ordering::Release);
        self.flush_signal_safe(longest, wake)
    }

    /// The reason of a dump that is urgent, once.
    pub(crate) fn take_last_words(&self) -> Option<DumpReason> {
        DumpReason::from_number(self.last_words.swap(0, Ordering::AcqRel))
    }

    /// How many urgent flushes were asked for, if some of them are not done.
    pub(crate) fn urgent_flushes(&self) -> Option<u64> {
        let asked = self.urgent_asked.load(Ordering::Acquire);
        (asked > self.urgent_done.load(Ordering::Relaxed)).then_some(asked)
    }

    /// The first `flushes` urgent flushes are done.
    pub(crate) fn answer_urgent(&self, flushes: u64) {
        self.urgent_done.fetch_max(flushes, Ordering::AcqRel);
        self.urgent_event.notify();
    }

    /// Posts a request, wakes the thread and returns its answer. `None`: the
    /// thread has ended, or ended before it could do it.
    pub(crate) fn ask<A>(
        &self,
        request: impl FnOnce(Sender<A>) -> Request<W>,
        wake: impl FnOnce(),
    ) -> Option<A> {
        let (done, answer) = channel();
        if !self.post(request(done)) {
            return None;
        }
        wake();
        answer.recv().ok()
    }

    /// Posts a request. False: the mailbox is closed.
    pub(crate) fn post(&self, request: Request<W>) -> bool {
        let mut requests = self.lock();
        if !requests.closed {
            requests.waiting.push(request);
        }
        !requests.closed
    }

    /// The waiting requests, in order.
    pub(crate) fn take(&self) -> Vec<Request<W>> {
        std::mem::take(&mut self.lock().waiting)
    }

    /// Refuses all further requests, and wakes those who wait for an answer.
    pub(crate) fn close(&self) {
        let mut requests = self.lock();
        requests.closed = true;
        requests.waiting.clear();
        drop(requests);
        self.answer_urgent(u64::MAX);
    }

    fn lock(&self) -> MutexGuard<'_, Requests<W>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_mailbox_refuses_requests() {
        let mailbox = Mailbox::<()>::new();
        assert!(mailbox.post(Request::Stop));
        assert_eq!(mailbox.take().len(), 1);
        mailbox.close();
        assert!(!mailbox.post(Request::Stop));
        assert!(mailbox.ask(Request::Flush, || panic!("nobody to wake")).is_none());
    }

    #[test]
    fn an_urgent_flush_is_answered_or_times_out() {
        let mailbox = Mailbox::<()>::new();
        assert_eq!(mailbox.urgent_flushes(), None);
        assert!(!mailbox.flush_signal_safe(Duration::from_millis(1), || ()));
        std::thread::scope(|scope| {
            let waiting =
                scope.spawn(|| mailbox.flush_signal_safe(Duration::from_secs(3600), || ()));
            while mailbox.urgent_flushes() != Some(2) {
                std::thread::yield_now();
            }
            mailbox.answer_urgent(2);
            assert!(waiting.join().unwrap());
        });
        assert_eq!(mailbox.urgent_flushes(), None);
        mailbox.close();
        assert!(mailbox.flush_signal_safe(Duration::from_secs(3600), || ()));
    }

    #[test]
    fn closing_wakes_a_waiting_thread() {
        let mailbox = Mailbox::<()>::new();
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| mailbox.ask(Request::Flush, || ()));
            while mailbox.lock().waiting.is_empty() {
                std::thread::yield_now();
            }
            mailbox.close();
            assert!(asked.join().unwrap().is_none());
        });
    }
}
