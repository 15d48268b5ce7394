//! The session's end of its writer thread: start it, ask it for things, stop it.
//!
//! On the host's threads, outside of hooks. Only
//! [`flush_signal_safe`](WriterThread::flush_signal_safe) may be called from a
//! signal handler.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use heaptap_trace::SeriesId;

use crate::queue::{BlockId, Channel};
use crate::sys::thread::{self, JoinOutcome, Worker};
use crate::tracer::counting_output::CountingOutput;
use crate::tracer::failure::Failure;
use crate::tracer::message::say;
use crate::tracer::state::State;
use crate::tracer::writer_context::WriterContext;
use crate::writer::{
    DumpOrder, DumpReason, Dumped, IdentifiedBlocks, Mailbox, NewFile, Request, Writer, WriterExit,
};

/// How long stopping may take: longer than the writer needs for all that fits
/// the event buffers, and short enough for a file system that hangs.
const LONGEST_STOP: Duration = Duration::from_secs(20);

/// A running writer thread.
pub(crate) struct WriterThread {
    mailbox: Arc<Mailbox<CountingOutput>>,
    channel: Arc<Channel>,
    /// `None` once it is joined.
    worker: Mutex<Option<Worker<()>>>,
}

/// How the thread is stopped.
#[derive(Clone, Copy)]
pub(crate) enum Stop {
    /// It frees all it has.
    Normally,
    /// The process is exiting: it leaves its memory to the system.
    AtExit,
}

impl WriterThread {
    /// Starts the thread. If it panics the session ends, and no mutator waits for
    /// it.
    pub(crate) fn start(
        writer: Writer<WriterContext, CountingOutput>,
        mailbox: Arc<Mailbox<CountingOutput>>,
        channel: Arc<Channel>,
        state: Arc<State>,
    ) -> std::io::Result<WriterThread> {
        let worker = thread::start("heaptap-writer", move |finish| {
            match catch_unwind(AssertUnwindSafe(|| writer.run())) {
                Ok(WriterExit::Finished) => {}
                Ok(WriterExit::AtProcessExit) => finish.sleep_until_exit(),
                Err(panic) => {
                    if state.end(Failure::Panic) {
                        say(format_args!("a defect in the writer thread; tracing ends here"));
                    }
                    resume_unwind(panic);
                }
            }
        })?;
        Ok(WriterThread { mailbox, channel, worker: Mutex::new(Some(worker)) })
    }

    /// Returns when everything recorded so far is written. False: the thread
    /// ended before that.
    pub(crate) fn flush(&self) -> bool {
        self.ask(Request::Flush).is_some()
    }

    /// Returns when the trace continues in another file. False: the thread ended
    /// before that.
    pub(crate) fn rotate(&self, next: NewFile<CountingOutput>) -> bool {
        self.ask(|done| Request::Rotate(Box::new(next), done)).is_some()
    }

    /// Returns the name of the trace when a series goes on in its next part, at this rate or at the
    /// one before. `None`: the thread ended before that.
    pub(crate) fn next_part(&self, rate: Option<f64>) -> Option<OsString> {
        self.ask(|done| Request::NextPart(rate, done))
    }

    /// Has a place for blocks that are sampled at other rates than the file's, or returns why there is
    /// none. `None`: the thread ended before that.
    pub(crate) fn allow_many_rates(&self, id: SeriesId) -> Option<Result<(), String>> {
        self.ask(|done| Request::ManyRates(id, done))
    }

    /// The ids of blocks in the file, after everything recorded so far is written. `None`: the
    /// thread ended before that.
    pub(crate) fn identify(&self, blocks: Vec<BlockId>) -> Option<IdentifiedBlocks> {
        self.ask(|done| Request::Identify(blocks, done))
    }

    /// What comes of writing what is kept in memory. `None`: the thread ended before that.
    pub(crate) fn dump(&self, order: DumpOrder) -> Option<Result<Dumped, String>> {
        self.ask(|done| Request::Dump(order, done))
    }

    /// A function that does so without locks or memory, for signal handlers. It waits for so long,
    /// and returns false if it was not written in time.
    pub(crate) fn urgent_dumps(
        &self,
    ) -> impl Fn(DumpReason, Duration) -> bool + Send + Sync + use<> {
        let (mailbox, channel) = (Arc::clone(&self.mailbox), Arc::clone(&self.channel));
        move |reason, longest| mailbox.dump_signal_safe(reason, longest, || channel.wake_writer())
    }

    fn ask<A>(&self, request: impl FnOnce(Sender<A>) -> Request<CountingOutput>) -> Option<A> {
        self.mailbox.ask(request, || self.channel.wake_writer())
    }

    /// [`WriterThread::flush`] without locks or memory, for signal handlers.
    /// Waits no longer than `longest`.
    pub(crate) fn flush_signal_safe(&self, longest: Duration) -> bool {
        self.mailbox.flush_signal_safe(longest, || self.channel.wake_writer())
    }

    /// Asks the thread to write everything and end, and does not wait for it.
    pub(crate) fn request_stop(&self, stop: Stop) {
        self.mailbox.post(match stop {
            Stop::Normally => Request::Stop,
            Stop::AtExit => Request::StopAtExit,
        });
        self.channel.wake_writer();
    }

    /// Has everything written and ends the thread. Problems are reported to the
    /// user.
    pub(crate) fn stop(&self, stop: Stop) {
        self.request_stop(stop);
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(worker) = worker else { return };
        let joined = match stop {
            Stop::Normally => worker.join(LONGEST_STOP),
            Stop::AtExit => worker.join_at_exit(LONGEST_STOP),
        };
        match joined {
            JoinOutcome::Done(()) => {}
            JoinOutcome::Panicked(message) => {
                say(format_args!("the defect in the writer thread was: {message}"));
            }
            JoinOutcome::Running(worker) => {
                say(format_args!(
                    "writing took over {} s; the end of the trace is missing",
                    LONGEST_STOP.as_secs()
                ));
                worker.forget();
            }
        }
    }
}
