//! The writer thread: from records to packets.
//!
//! It wakes ten times a second, and whenever many event buffers are full; reads
//! what every lane has committed, encodes it and writes whole packets. So a
//! program that is killed loses at most its last tenth of a second; if it is killed
//! because memory ran short, its last hundredth. Requests of
//! other threads wait in a [`Mailbox`].
//!
//! Only here are locations looked up and outputs written, and memory is
//! allocated freely. An error ends the writing, never the program: the session
//! learns of it through [`Context::write_failed`], and mutators no longer wait.
//!
//! With plain `inline` in place of `inline(always)`, the library takes 0.8 to 1.1 % more
//! instructions in traced programs (trees and JSON of `benches/overhead`, all threads).
//!
//! # From records to events, and other sinks
//!
//! [`drain()`] reads lanes; `trace_file` turns their records into events, in one
//! place ([`TraceFile::apply_all`]), and calls the encoder with them: a
//! [`LiveSink`], which only [`Writer`] knows to be memtrace's. Another
//! destination for packets is a [`TraceOutput`]. Another consumer of *events*,
//! such as a live view, is called beside the encoder in `lane`, where each event
//! has its time, its block id and its whole stack: `Lane::alloc` and
//! `Lane::samples` for allocations, `apply_all` for promotions and collections.

mod block_ids;
mod context;
mod drain;
mod dump;
mod lane;
mod lane_stack;
mod mailbox;
mod output;
mod series;
#[cfg(test)]
mod tests;
mod trace_file;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use heaptap_trace::{Completion, Encoder, LiveSink, SeriesId, TraceFormat, WriteError};

use crate::queue::Consumer;
use crate::writer::drain::{Drained, drain};
use crate::writer::trace_file::TraceFile;

pub(crate) use crate::writer::context::Context;
pub(crate) use crate::writer::dump::{DumpOrder, DumpReason, Dumped};
pub(crate) use crate::writer::mailbox::{Mailbox, Request};
pub(crate) use crate::writer::output::{TraceOutput, open};
pub(crate) use crate::writer::series::{ClaimedPart, RotationLimits, Series, SharedFiles, Store};
pub(crate) use crate::writer::trace_file::{IdentifiedBlocks, NewFile, ReadParams};

/// Everything the writer thread owns.
pub(crate) struct Writer<C, W> {
    consumer: Consumer,
    mailbox: Arc<Mailbox<W>>,
    context: C,
    format: TraceFormat,
    /// The first file, until its trace info is complete.
    first: Option<NewFile<W>>,
    /// `None` while there is a `first`.
    file: Option<TraceFile<Encoder<W>>>,
    /// The output of the file, for messages.
    output_name: OsString,
    last_flush: Instant,
    /// What the file says about itself.
    completion: Completion,
    /// Of a series.
    parts: Option<SeriesParts<W>>,
}

/// Makes the trace of a part of a series: of its output, its rate and when it begins.
pub(crate) type MakePart<W> = Box<dyn FnMut(Box<dyn TraceOutput>, f64, u64) -> NewFile<W> + Send>;

/// How a series goes on.
pub(crate) struct SeriesParts<W> {
    /// With the files of the first part, until that begins.
    pub(crate) first: Option<(Box<Series>, ClaimedPart)>,
    /// `None`: it is one file.
    pub(crate) make: Option<MakePart<W>>,
}

/// No event waits longer than this to be written.
const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

/// The same while the process may end at any moment.
const URGENT_INTERVAL: Duration = Duration::from_millis(10);

/// How long the writer reads before it writes what is in memory to files: a program that allocates
/// faster than it reads would have it read for ever.
const LONGEST_DRAIN: Duration = Duration::from_secs(1);

/// How often an incomplete trace info is looked at: a program that is killed before it is
/// complete leaves an empty file.
const INFO_INTERVAL: Duration = Duration::from_millis(5);

impl<C: Context, W: TraceOutput> Writer<C, W> {
    /// Begins the first file, so that an output that cannot be written fails
    /// here, unless its trace info is not complete yet.
    pub(crate) fn new(
        consumer: Consumer,
        mailbox: Arc<Mailbox<W>>,
        context: C,
        format: TraceFormat,
        first: NewFile<W>,
        parts: Option<SeriesParts<W>>,
    ) -> Result<Self, WriteError> {
        let output_name = first.out.name().to_owned();
        let (first, last_flush) = (Some(first), Instant::now());
        let mut writer = Writer {
            consumer,
            mailbox,
            context,
            format,
            first,
            file: None,
            output_name,
            last_flush,
            completion: Completion::Complete,
            parts,
        };
        writer.begin(Begin::WhenComplete)?;
        Ok(writer)
    }

    /// Begins the first file if its trace info is complete, or if it has to be now.
    fn begin(&mut self, when: Begin) -> Result<(), WriteError> {
        if let Some(mut first) = self.first.take() {
            if first.complete_info() || when == Begin::Now {
                let series = self.begin_series(&first)?;
                self.file = Some(TraceFile::new(self.format, first, series)?);
                self.set_completion(Completion::Unfinished);
            } else {
                self.first = Some(first);
            }
        }
        Ok(())
    }

    /// Begins the series of which the first file is a part.
    fn begin_series(&mut self, first: &NewFile<W>) -> Result<Option<Box<Series>>, WriteError> {
        let Some(parts) = &mut self.parts else { return Ok(None) };
        let Some((mut series, files)) = parts.first.take() else { return Ok(None) };
        let (rate, start_time) = (first.info.sample_rate, first.info.start_time);
        series.begin_part(files, rate, start_time, 0, &mut self.context)?;
        Ok(Some(series))
    }

    /// The thread's main loop: returns when it was asked to stop, or failed.
    pub(crate) fn run(mut self) -> WriterExit {
        let last = loop {
            let ticket = self.consumer.ticket();
            let requests = self.mailbox.take();
            let urgent = self.mailbox.urgent_flushes();
            match self.round(requests, urgent) {
                Ok(Next::Continue) => {}
                Ok(Next::Again) => continue,
                Ok(last @ (Next::Stop | Next::StopAtExit)) => break last,
                Err(error) => {
                    self.fail(&error);
                    self.mailbox.close();
                    return WriterExit::Finished;
                }
            }
            let due = match self.first {
                Some(_) => INFO_INTERVAL,
                None => self.flush_interval().saturating_sub(self.last_flush.elapsed()),
            };
            self.consumer.wait(ticket, due);
        };
        self.mailbox.close();
        let now = self.context.now();
        match self.file.as_mut().map_or(Ok(()), |file| file.end(now, &mut self.context)) {
            Ok(()) => {
                self.set_completion(Completion::Complete);
                if let Some(file) = &self.file {
                    self.context.ended(&self.output_name, file.start_time());
                }
            }
            Err(error) => self.fail(&error),
        }
        match last {
            Next::StopAtExit => {
                // The system frees all of it at once.
                std::mem::forget(self);
                WriterExit::AtProcessExit
            }
            Next::Continue | Next::Again | Next::Stop => WriterExit::Finished,
        }
    }

    /// Writing has failed, and is over.
    fn fail(&mut self, error: &WriteError) {
        self.set_completion(Completion::WriteFailed);
        self.context.write_failed(&self.output_name, error);
    }

    /// Has the file say whether it is complete.
    fn set_completion(&mut self, completion: Completion) {
        if let Some(file) = &mut self.file
            && self.completion != completion
        {
            file.set_completion(completion);
            self.completion = completion;
        }
    }

    /// Reads everything, then serves the requests. What was committed before a
    /// request was posted is written when the request is answered.
    fn round(
        &mut self,
        requests: Vec<Request<W>>,
        urgent: Option<u64>,
    ) -> Result<Next, WriteError> {
        self.context.observe_time();
        let last_words = urgent.and_then(|_| self.mailbox.take_last_words());
        let asked = !requests.is_empty() || urgent.is_some();
        let overdue = self.last_flush.elapsed() >= FLUSH_INTERVAL;
        self.begin(if asked || overdue { Begin::Now } else { Begin::WhenComplete })?;
        self.restart_if_truncated()?;
        self.next_part_if_due()?;
        self.keep_budget();
        let (dumps, requests): (Vec<_>, Vec<_>) =
            requests.into_iter().partition(|request| matches!(request, Request::Dump(..)));
        if last_words.is_some() || !dumps.is_empty() {
            self.drain_for(LONGEST_DRAIN)?;
        }
        if let Some(reason) = last_words {
            _ = self.dump(&DumpOrder { reason, directory: None })?;
        }
        for request in dumps {
            if let Request::Dump(order, done) = request {
                let dumped = self.dump(&order)?;
                _ = done.send(dumped);
            }
        }
        let mut drained = Drained::Nothing;
        if last_words.is_none() {
            // What was committed before a request is read before it is served. Else there may be one
            // by now.
            let is_free = requests.is_empty() && urgent.is_none();
            drained = self.drain_for(if is_free { FLUSH_INTERVAL } else { Duration::MAX })?;
        }
        if let Some(urgent) = urgent {
            self.flush()?;
            // The process may be about to end. If it does not, `drain` takes this back.
            self.set_completion(Completion::Complete);
            self.mailbox.answer_urgent(urgent);
        }
        let mut next = match drained {
            Drained::Nothing => Next::Continue,
            Drained::Something => Next::Again,
        };
        for request in requests {
            self.flush()?;
            match request {
                // It does not matter if the asking thread no longer waits.
                Request::Flush(done) => _ = done.send(()),
                Request::Rotate(file, done) => {
                    self.rotate(*file)?;
                    _ = done.send(());
                }
                Request::NextPart(rate, done) => {
                    self.next_part(rate)?;
                    _ = done.send(self.output_name.clone());
                }
                Request::ManyRates(series, done) => _ = done.send(self.allow_many_rates(series)?),
                Request::Identify(blocks, done) => {
                    // Until the first file begins, none has any block.
                    if let Some(file) = &self.file {
                        _ = done.send(file.identify(&blocks));
                    }
                }
                // Served before.
                Request::Dump(..) => {}
                Request::Stop => next = Next::Stop,
                Request::StopAtExit => next = Next::StopAtExit,
            }
        }
        self.flush_if_due()?;
        if let Some(reason) = self.context.due_dump() {
            _ = self.dump(&DumpOrder { reason, directory: None })?;
        }
        Ok(next)
    }

    /// Changes the rate if a budget needs it. The sidecar has each rate that comes into force, also if
    /// nothing is sampled at it: the errors of estimates depend on it.
    fn keep_budget(&mut self) {
        self.context.keep_budget();
        let series = self.file.as_mut().and_then(|file| file.series.as_mut());
        if let (Some(series), Some(rate)) = (series, self.context.rate()) {
            series.know_rate(rate);
        }
    }

    /// Reads until there is nothing more, but no longer than this.
    fn drain_for(&mut self, longest: Duration) -> Result<Drained, WriteError> {
        let begin = Instant::now();
        while self.drain()? == Drained::Something {
            self.keep_budget();
            self.flush_if_due()?;
            self.next_part_if_due()?;
            if begin.elapsed() >= longest {
                return Ok(Drained::Something);
            }
        }
        Ok(Drained::Nothing)
    }

    /// Writes what is kept in memory to files. An error of theirs ends nothing.
    fn dump(&mut self, order: &DumpOrder) -> Result<Result<Dumped, String>, WriteError> {
        self.context.before_dump(order);
        self.flush()?;
        // What comes next takes it back.
        self.set_completion(Completion::Complete);
        Ok(self.context.dump(order))
    }

    fn rotate(&mut self, mut new: NewFile<W>) -> Result<(), WriteError> {
        if let Some(file) = &self.file {
            self.context.ended(&self.output_name, file.start_time());
        }
        // By the session's clock, even if the wall clock was set since.
        new.info.start_time = self.context.now();
        let new_name = new.out.name().to_owned();
        let last_name = std::mem::replace(&mut self.output_name, new_name);
        new.complete_info();
        let series = self.file.as_mut().and_then(|file| file.series.take());
        let (rate, start_time) = (new.info.sample_rate, new.info.start_time);
        self.go_on_in(new, last_name)?;
        let Some(mut before) = series else { return Ok(()) };
        before.end_part(start_time)?;
        let begun = self.series_beside(before.next_id(), Some(&before), rate, start_time)?;
        if let (Ok(series), Some(file)) = (begun, &mut self.file) {
            file.begin_series(series);
        }
        Ok(())
    }

    /// Makes the file a series of one part, unless it is a part already.
    fn allow_many_rates(&mut self, id: SeriesId) -> Result<Result<(), String>, WriteError> {
        let Some(file) = &mut self.file else { return Ok(Err("the trace has ended".into())) };
        if file.series.is_some() {
            return Ok(Ok(()));
        }
        if !file.is_file() {
            let name = self.output_name.display();
            return Ok(Err(format!("{name} is no file: it has one rate")));
        }
        let (rate, start_time) = (file.rate(), file.start_time());
        let begun = self.series_beside(id, None, rate, start_time)?;
        Ok(begun.map(|series| {
            if let Some(file) = &mut self.file {
                file.begin_series(series);
            }
        }))
    }

    /// Begins a series of one part beside the file, whose lanes are at the rates that they have in the
    /// one before. The inner error: its sidecar cannot be made.
    fn series_beside(
        &mut self,
        id: SeriesId,
        before: Option<&Series>,
        rate: f64,
        start_time: u64,
    ) -> Result<Result<Box<Series>, String>, WriteError> {
        let (mut series, files) = match Series::beside(Path::new(&self.output_name), id) {
            Ok(made) => made,
            Err(error) if before.is_none() => return Ok(Err(error.to_string())),
            Err(error) => return Err(io::Error::other(error).into()),
        };
        if let Some(before) = before {
            series.take_rates_of(before);
        }
        series.begin_part(files, rate, start_time, 0, &mut self.context)?;
        Ok(Ok(Box::new(series)))
    }

    /// Goes on in another file, and ends the one before, which has this name.
    fn go_on_in(&mut self, new: NewFile<W>, last_name: OsString) -> Result<(), WriteError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut last = file.rotate(new)?;
        file.set_completion(Completion::Unfinished);
        self.completion = Completion::Unfinished;
        if let Err(error) = LiveSink::end(&mut last, file.start_time(), &mut self.context) {
            last.output_mut().set_completion(Completion::WriteFailed);
            self.output_name = last_name;
            return Err(error);
        }
        last.output_mut().set_completion(Completion::Complete);
        self.context.flushed(&self.output_name, file.start_time());
        Ok(())
    }

    fn next_part_if_due(&mut self) -> Result<(), WriteError> {
        let series = self.file.as_ref().and_then(|file| file.series.as_ref());
        if series.is_some_and(|series| series.is_due()) { self.next_part(None) } else { Ok(()) }
    }

    /// Begins the next part of a series, at this rate or at that of the part before.
    fn next_part(&mut self, rate: Option<f64>) -> Result<(), WriteError> {
        self.flush()?;
        let Writer { file: Some(file), parts: Some(parts), context, .. } = self else {
            return Ok(());
        };
        let Some(make) = &mut parts.make else { return Ok(()) };
        context.ended(&self.output_name, file.start_time());
        let rate = rate.or(context.rate()).unwrap_or(file.rate());
        let (start_time, used_ids) = (context.now(), file.free_id());
        let Some(series) = &mut file.series else { return Ok(()) };
        let files = series.claim().map_err(io::Error::other)?;
        let (trace, before) = series.begin_part(files, rate, start_time, used_ids, context)?;
        let out = series.open(&trace).map_err(io::Error::other)?;
        let mut new = make(Box::new(out), rate, start_time);
        new.complete_info();
        let name = OsStr::to_owned(new.out.name());
        let last_name = std::mem::replace(&mut self.output_name, name);
        self.go_on_in(new, last_name)?;
        let file = self.file.as_mut();
        if let Some(series) = file.and_then(|file| file.series.as_mut()) {
            series.end_before(before, start_time)?;
        }
        Ok(())
    }

    /// Begins another trace in a file that was truncated in place. What was recorded but not
    /// written is gone with the rest: it refers to it.
    fn restart_if_truncated(&mut self) -> Result<(), WriteError> {
        let Some(file) = self.file.as_mut() else { return Ok(()) };
        if file.was_truncated() {
            file.restart(self.context.now())?;
            file.set_completion(Completion::Unfinished);
            self.completion = Completion::Unfinished;
            self.context.truncated(&self.output_name);
        }
        Ok(())
    }

    fn flush_if_due(&mut self) -> Result<(), WriteError> {
        if self.last_flush.elapsed() < self.flush_interval() { Ok(()) } else { self.flush() }
    }

    fn flush_interval(&self) -> Duration {
        if self.context.is_urgent() { URGENT_INTERVAL } else { FLUSH_INTERVAL }
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.last_flush = Instant::now();
        self.context.observe_time();
        self.restart_if_truncated()?;
        let Some(file) = &mut self.file else { return Ok(()) };
        file.flush(&mut self.context)?;
        self.context.flushed(&self.output_name, file.start_time());
        Ok(())
    }

    fn drain(&mut self) -> Result<Drained, WriteError> {
        let Some(file) = &mut self.file else { return Ok(Drained::Nothing) };
        let drained = drain(&mut self.consumer, file, &mut self.context)?;
        if drained == Drained::Something {
            self.set_completion(Completion::Unfinished);
        }
        Ok(drained)
    }
}

/// When the first file begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    WhenComplete,
    Now,
}

/// How the writer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriterExit {
    /// Everything it had is freed.
    Finished,
    /// Its memory and its output are left to the end of the process.
    AtProcessExit,
}

/// What comes after a round.
enum Next {
    /// Wait until there is something to do.
    Continue,
    /// There is something to do.
    Again,
    Stop,
    /// Stop, and leave memory and output to the system.
    StopAtExit,
}
