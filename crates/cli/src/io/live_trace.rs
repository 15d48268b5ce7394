//! A trace that is tailed while it is written: a file, a pipe, or the file that a process
//! has open under `/proc/PID/fd`.
//!
//! Only [`LiveTrace::wait`] waits. [`LiveTrace::poll`] passes on what is written so far, notices
//! that another file took the name (a restarted program, a rotation), and finds out whether more
//! can come: the writer marks a finished trace in its first bytes, or is gone
//! ([`WriterWatch`]).

use std::fs::{self, File};
use std::io::stdin;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heaptap_client::{FileIdentity, NamedWriter, Process, WriterSign, WriterWatch};
use heaptap_trace::{
    Completion, Event, EventSource, LocationTable, Losses, Polled, ReadError, Tail, TraceInfo,
    TraceOrigin, TraceReader,
};

use crate::exit_status::Failure;
use crate::io::input::{cannot_open, read_failure};
use crate::io::open_trace::{LiveBytes, OpenTrace, open_without_waiting};
use crate::io::trace_files::shown;

/// How often a trace that grows is looked at. What is written is late by as much in the worst
/// case, on top of the tenth of a second in which the program gathers it.
pub(crate) const PACE: Duration = Duration::from_millis(20);

/// A trace of which nobody knows who writes it has ended when it has not grown for so long: one
/// that is marked as unfinished, or another one.
const QUIET_UNFINISHED: Duration = Duration::from_secs(10);
const QUIET: Duration = Duration::from_secs(2);

/// How long a file may begin with zeros.
const HOLE_PATIENCE: Duration = Duration::from_secs(2);

/// What [`LiveTrace::poll`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiveState {
    /// There is more to read at once.
    More,
    /// Everything written so far was read.
    Waiting,
    /// Another trace is in the place of the one read so far: forget that one.
    Replaced,
    /// The trace grows, though it seemed to have ended: it is read again from its beginning.
    Resumed,
    /// The trace is read to its end, and nothing more will be written.
    Ended,
}

/// A trace that may grow.
pub(crate) struct LiveTrace {
    name: String,
    /// `None` for standard input.
    path: Option<PathBuf>,
    watch: WriterWatch,
    /// What was seen of its writer last.
    sign: WriterSign,
    opened: OpenTrace,
    /// A writer that is gone has written all. Not so if it is in another namespace and holds no
    /// lock: then the trace grows although its writer seems to be gone.
    trusts_sign: bool,
}

impl LiveTrace {
    /// Follows FILE, or standard input if it is `-`. `writer` is the process that writes it,
    /// if that is known.
    pub(crate) fn open(path: &Path, writer: Option<Process>) -> Result<LiveTrace, Failure> {
        let name = shown(path);
        let is_standard_input = path.as_os_str() == "-";
        let file = if is_standard_input {
            stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            open_without_waiting(path)
        };
        let opened = OpenTrace::new(&name, file.map_err(|error| cannot_open(&name, &error))?)?;
        let path = (!is_standard_input).then(|| path.to_owned());
        let (watch, sign) = (WriterWatch::of(writer), WriterSign::Unknown);
        Ok(LiveTrace { name, path, watch, sign, opened, trusts_sign: true })
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where it is; `None` for standard input.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// What the trace says about itself, once that is written.
    pub(crate) fn info(&mut self) -> Result<Option<&TraceInfo>, Failure> {
        if self.opened.is_hole() {
            return Ok(None);
        }
        let (name, tail) = (&self.name, &mut self.opened.tail);
        tail.info().map_err(|error| read_failure(name, error))
    }

    /// The names and locations of the events so far.
    pub(crate) fn locations(&self) -> Option<&LocationTable> {
        self.opened.tail.reader().map(EventSource::locations)
    }

    /// What is missing so far.
    pub(crate) fn losses(&self) -> Option<&Losses> {
        self.opened.tail.reader().map(EventSource::losses)
    }

    /// Microseconds from the start of the trace to the moment until which it covers its program.
    pub(crate) fn covered(&self) -> u64 {
        self.opened.tail.reader().map_or(0, TraceReader::covered)
    }

    /// How many bytes were read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.opened.bytes_read()
    }

    /// The file, if it can be read again.
    pub(crate) fn file(&self) -> Option<&File> {
        self.opened.regular.is_some().then_some(&*self.opened.file)
    }

    /// Whether its writer was seen to run: then its time is that of this machine's clock.
    pub(crate) fn is_being_written(&self) -> bool {
        self.sign.is_there() && !self.opened.ended
    }

    /// Passes what is written so far to `take`, until that breaks off. What the trace says about
    /// itself comes before its first event: a call that finds its begin returns
    /// [`LiveState::More`], and passes no event.
    pub(crate) fn poll(
        &mut self,
        take: &mut dyn FnMut(&Event<'_>, &LocationTable) -> ControlFlow<()>,
    ) -> Result<LiveState, Failure> {
        if let Some(state) = self.change_over()? {
            return Ok(state);
        }
        if self.opened.is_hole() {
            return self.wait_for_begin();
        }
        let has_begun = self.opened.tail.reader().is_some();
        // Looked at before the rest is read: what was written before is then read, too.
        let (is_done, completion) = (self.writer_is_done()?, self.opened.completion());
        let tail = &mut self.opened.tail;
        let polled = if has_begun { tail.poll(take) } else { poll_begin(tail) };
        // It may have been truncated meanwhile.
        if polled.is_err()
            && let Some(state) = self.change_over()?
        {
            return Ok(state);
        }
        let OpenTrace { tail, ended, .. } = &mut self.opened;
        match polled.map_err(|error| read_failure(&self.name, error))? {
            Polled::BrokenOff => Ok(LiveState::More),
            Polled::NothingYet if is_done => {
                tail.stop(completion);
                Ok(LiveState::More)
            }
            Polled::NothingYet => Ok(LiveState::Waiting),
            Polled::Ended => {
                *ended = true;
                Ok(LiveState::Ended)
            }
        }
    }

    /// Nothing more will be written, as its reader knows from elsewhere: it ends after what is there.
    pub(crate) fn end(&mut self) {
        let completion = self.opened.completion();
        self.opened.tail.stop(completion);
    }

    /// Waits for [`PACE`]; for a pipe only until there is more.
    pub(crate) fn wait(&self) {
        self.opened.wait(PACE);
    }

    /// Goes over to the trace that took the place of this one, if there is one.
    fn change_over(&mut self) -> Result<Option<LiveState>, Failure> {
        let Some((state, opened)) = self.replacement()? else { return Ok(None) };
        self.opened = opened;
        self.watch.begin_again();
        Ok(Some(state))
    }

    /// The trace that took the place of this one, from its beginning.
    fn replacement(&mut self) -> Result<Option<(LiveState, OpenTrace)>, Failure> {
        let Some((identity, begin)) = self.opened.regular else { return Ok(None) };
        let Some(path) = &self.path else { return Ok(None) };
        // A file that was removed is tailed as long as it is open.
        let is_other = fs::metadata(path)
            .is_ok_and(|metadata| metadata.is_file() && FileIdentity::of(&metadata) != identity);
        let length = self.opened.file.metadata().map_or(0, |metadata| metadata.len());
        let read = begin + self.opened.bytes_read();
        let goes_on = self.opened.ended && length > read;
        self.trusts_sign &= !goes_on;
        if !is_other && length >= read && !goes_on && self.opened.begins_as_before() {
            return Ok(None);
        }
        let file = open_without_waiting(path).map_err(|error| cannot_open(&self.name, &error))?;
        let opened = OpenTrace::new(&self.name, file)?;
        // A program that was started again may have written more since than the one before.
        let is_same = self.opened.tail.reader().is_some_and(|reader| {
            let TraceInfo { pid, start_time, .. } = *reader.info();
            opened.origin() == Some(TraceOrigin { pid, start_time })
        });
        let state = if goes_on && is_same { LiveState::Resumed } else { LiveState::Replaced };
        Ok(Some((state, opened)))
    }

    /// A file that was truncated in place begins with zeros, until its writer notices and begins it
    /// again. Not every writer does.
    fn wait_for_begin(&self) -> Result<LiveState, Failure> {
        if self.opened.since.elapsed() < HOLE_PATIENCE {
            return Ok(LiveState::Waiting);
        }
        Err(Failure::Trouble(format!(
            "{}: was truncated while it was being written, and has a hole where it should begin: its \
             writer goes on as if nothing had happened; start the program again with another file",
            self.name
        )))
    }

    /// Whether nothing more will be written.
    fn writer_is_done(&mut self) -> Result<bool, Failure> {
        if self.opened.regular.is_none() {
            return Ok(self.opened.is_closed());
        }
        let completion = self.opened.completion();
        self.opened.was_unfinished |= completion == Some(Completion::Unfinished);
        self.sign = self.writer_sign()?;
        Ok(match completion {
            Some(Completion::WriteFailed) => true,
            // One that is about to end may say so, and go on.
            Some(Completion::Complete) if self.opened.was_unfinished => {
                self.sign != WriterSign::Locked
            }
            // Writers that never say so leave the field as it is from the beginning.
            Some(Completion::Complete) => self.seems_gone(QUIET),
            Some(Completion::Unfinished) => self.seems_gone(QUIET_UNFINISHED),
            None => self.sign == WriterSign::Gone,
        })
    }

    /// Whether the writer is gone, or was not heard of for this long.
    fn seems_gone(&self, quiet: Duration) -> bool {
        match self.sign {
            WriterSign::Locked | WriterSign::Running => false,
            WriterSign::Gone if self.trusts_sign => true,
            WriterSign::Gone | WriterSign::Unknown => self.opened.is_quiet(quiet),
        }
    }

    fn writer_sign(&mut self) -> Result<WriterSign, Failure> {
        let (name, opened) = (&self.name, &mut self.opened);
        let info = opened.tail.info().map_err(|error| read_failure(name, error))?;
        let named = info.map(|info| NamedWriter {
            pid: info.pid,
            start_time: info.start_time,
            host: Some(&info.host),
        });
        Ok(self.watch.look(&opened.file, named))
    }
}

/// Reads no further than the first events, for [`LiveTrace::poll`].
fn poll_begin(tail: &mut Tail<'_, LiveBytes>) -> Result<Polled, ReadError> {
    let has_begun = tail.info()?.is_some();
    Ok(if has_begun { Polled::BrokenOff } else { Polled::NothingYet })
}

#[cfg(test)]
#[path = "live_trace_tests.rs"]
mod tests;
