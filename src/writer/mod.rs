//! The writer thread: from records to a file.
//!
//! It wakes ten times a second, and when a good part of the event buffers is
//! full; reads what every lane has committed, encodes it and writes whole
//! packets. So a program that is killed has in its file all but its last tenth
//! of a second. Requests from other threads wait in a [`Mailbox`].
//!
//! Here, and only here, locations are looked up, files written and memory
//! allocated. An error ends the writing, never the program: the host is told
//! through [`Host::failed`], and mutators are not waited for any more.

mod block_ids;
mod drain;
mod lane_stack;
mod mailbox;
mod trace_file;

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use heaptap_trace::{Format, Locate, TraceInfo, WriteError};

use crate::queue::{Consumer, Part};
use crate::writer::drain::{Drained, drain};
use crate::writer::trace_file::TraceFile;

pub(crate) use crate::writer::mailbox::{Mailbox, NextFile, Request};

/// What the writer needs of the session it writes for.
pub(crate) trait Host: Locate {
    /// Looks at the clock, so that the following times are right.
    fn observe_time(&mut self);

    /// Microseconds since the epoch, of so many ticks since the session's start.
    fn micros(&mut self, ticks: u64) -> u64;

    /// Microseconds since the epoch, now.
    fn now(&mut self) -> u64;

    /// The code of a frame that allocates a part of several: the same for parts
    /// with the same place.
    fn part_code(&mut self, return_address: u64, part: Part) -> u64;

    /// Writing has failed and is over.
    fn failed(&mut self, error: &WriteError);
}

/// Everything the writer thread owns.
pub(crate) struct Writer<H, W> {
    consumer: Consumer,
    mailbox: Arc<Mailbox<W>>,
    host: H,
    file: TraceFile<W>,
    format: Format,
    last_flush: Instant,
}

/// No event waits longer than this for the file.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

impl<H: Host, W: Write> Writer<H, W> {
    /// Begins the file: an output that cannot be written shows here.
    pub(crate) fn new(
        (consumer, mailbox): (Consumer, Arc<Mailbox<W>>),
        host: H,
        (out, format): (W, Format),
        info: &TraceInfo,
    ) -> Result<Self, WriteError> {
        let file = TraceFile::new(out, format, info)?;
        Ok(Writer { consumer, mailbox, host, file, format, last_flush: Instant::now() })
    }

    /// The thread's life: returns when it was asked to stop, or failed.
    pub(crate) fn run(mut self) -> Ended {
        let last = loop {
            let ticket = self.consumer.ticket();
            let requests = self.mailbox.take();
            let hurries = self.mailbox.hurried();
            match self.round(requests, hurries) {
                Ok(Next::GoOn) => {}
                Ok(last @ (Next::Stop | Next::Leave)) => break last,
                Err(error) => {
                    self.host.failed(&error);
                    self.mailbox.close();
                    return Ended::InOrder;
                }
            }
            let due = FLUSH_INTERVAL.saturating_sub(self.last_flush.elapsed());
            self.consumer.wait(ticket, due);
        };
        self.mailbox.close();
        if let Err(error) = self.file.end(&mut self.host) {
            self.host.failed(&error);
        }
        match last {
            Next::Leave => {
                // The system gives all of it back at once.
                std::mem::forget(self);
                Ended::WithTheProcess
            }
            Next::GoOn | Next::Stop => Ended::InOrder,
        }
    }

    /// Reads everything, then does what was asked. What had been committed when
    /// a request was made is in the file when it is answered.
    fn round(
        &mut self,
        requests: Vec<Request<W>>,
        hurries: Option<u64>,
    ) -> Result<Next, WriteError> {
        self.host.observe_time();
        while drain(&mut self.consumer, &mut self.file, &mut self.host)? == Drained::Something {
            self.flush_if_due()?;
        }
        if let Some(hurries) = hurries {
            self.flush()?;
            self.mailbox.serve(hurries);
        }
        let mut next = Next::GoOn;
        for request in requests {
            self.flush()?;
            match request {
                // Who does not wait any more is not told.
                Request::Flush(done) => _ = done.send(()),
                Request::Rotate(file, done) => {
                    self.rotate(*file)?;
                    _ = done.send(());
                }
                Request::Stop => next = Next::Stop,
                Request::Leave => next = Next::Leave,
            }
        }
        self.flush_if_due()?;
        Ok(next)
    }

    fn rotate(&mut self, mut next: NextFile<W>) -> Result<(), WriteError> {
        // By the session's clock, whatever the wall clock did since.
        next.info.start_time = self.host.now();
        let out = (next.out, self.format);
        self.file.rotate(out, &next.info, &mut self.host).map(drop)
    }

    fn flush_if_due(&mut self) -> Result<(), WriteError> {
        if self.last_flush.elapsed() < FLUSH_INTERVAL { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.last_flush = Instant::now();
        self.host.observe_time();
        self.file.flush(&mut self.host)
    }
}

/// How the writer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All it had is given back.
    InOrder,
    /// That is left to the end of the process.
    WithTheProcess,
}

/// What comes after a round.
enum Next {
    GoOn,
    Stop,
    /// Stop, and leave memory and file to the system.
    Leave,
}
