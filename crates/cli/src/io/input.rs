//! Input: a trace from a file, or from standard input for `-`.
//!
//! An [`Input`] opens sources of events, whatever the trace's format. Any input can be read once in the order of the file.
//! The order of time takes an input that can be read again, so the contents of a pipe or of a compressed file are
//! first copied into an unnamed temporary file.
//!
//! Of several traces, no file stays open, so that there can be more of them than a process may
//! have open files.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, stdin};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::rc::Rc;

use heaptap_client::FileIdentity;
use heaptap_heap::Defect as SnapshotDefect;
use heaptap_probes::{SIDECAR_START, is_sidecar};
use heaptap_report::figures::units::count;
use heaptap_trace::{
    Event, EventSource, FileKind, Limits, LocationTable, Mode, ReadError, Stream, TraceReader,
    open, open_in_time_order,
};

use crate::exit_status::{Failure, Verdict};
use crate::io::decompressed::Compression;
use crate::io::lifecycle::{Lives, Offence, ReadTrace};
use crate::io::notices;
use crate::io::output::unnamed_file;
use crate::io::progress::Progress;
use crate::io::trace_bytes::{FileAccess, FileBytes, NamedFile, PeekedStart, TraceBytes};
use crate::text::escape;

/// A trace to read.
pub(crate) struct Input {
    name: String,
    file: FileAccess,
    /// The offset of the trace in a file that can be read again.
    begin: Option<u64>,
    /// How the file is compressed, once that is known.
    compression: OnceCell<Option<Compression>>,
    /// The contents of a pipe or of a compressed file, once they are needed again.
    copy: OnceCell<Rc<File>>,
    /// What was read of a pipe to find out its kind.
    peeked: Rc<PeekedStart>,
    progress: Rc<Progress>,
}

/// Refuses the sidecar of a trace in place of the trace.
pub(crate) fn refuse_sidecar(name: &str, file: &File, begin: u64) -> Result<(), Failure> {
    let mut start = [0; SIDECAR_START];
    if file.read_exact_at(&mut start, begin).is_ok() && is_sidecar(&start) {
        return Err(Failure::Trouble(format!(
            "{name}: is the sidecar of a trace: `heaptap probes FILE` shows what is in it"
        )));
    }
    Ok(())
}

impl Input {
    /// Opens FILE, or standard input if it is `-`.
    pub(crate) fn open(path: &Path) -> Result<Input, Failure> {
        Input::open_as(path, "trace file")
    }

    /// The same for a verb that takes heap snapshots only.
    pub(crate) fn open_snapshot(path: &Path) -> Result<Input, Failure> {
        Input::open_as(path, "snapshot")
    }

    /// `wanted`: what the file should be.
    fn open_as(path: &Path, wanted: &str) -> Result<Input, Failure> {
        if path.as_os_str() == "-" {
            let file = stdin().as_fd().try_clone_to_owned().map(File::from);
            return Input::new("standard input".into(), file, wanted);
        }
        Input::new(escape::path(path).to_string(), File::open(path), wanted)
    }

    /// Reads a file that is open.
    pub(crate) fn of_file(name: &str, file: &File) -> Result<Input, Failure> {
        Input::new(name.to_owned(), file.try_clone(), "trace file")
    }

    fn new(name: String, file: io::Result<File>, wanted: &str) -> Result<Input, Failure> {
        let opened = file.and_then(|file| file.metadata().map(|metadata| (file, metadata)));
        let (mut file, metadata) = opened.map_err(|error| cannot_open(&name, &error))?;
        if metadata.is_dir() {
            let message = format!("{name}: is a directory; name a {wanted} in it");
            return Err(Failure::Trouble(message));
        }
        let begin = if metadata.is_file() { file.stream_position().ok() } else { None };
        if let Some(begin) = begin {
            refuse_sidecar(&name, &file, begin)?;
        }
        let total = begin.map(|begin| metadata.len().saturating_sub(begin));
        let progress = Rc::new(Progress::new(total));
        let file = FileAccess::Held(Rc::new(file));
        let (compression, copy, peeked) = (OnceCell::new(), OnceCell::new(), Rc::default());
        Ok(Input { name, file, begin, compression, copy, peeked, progress })
    }

    /// Opens one of several traces, which does not stay open unless it is a pipe. A pipe
    /// is read and copied at once.
    pub(crate) fn open_on_demand(path: &Path, progress: &Rc<Progress>) -> Result<Input, Failure> {
        let mut input = Input::open(path)?;
        input.progress = Rc::clone(progress);
        input.make_repeatable()?;
        if let FileAccess::Held(file) = &input.file
            && path.as_os_str() != "-"
            && let Ok(metadata) = file.metadata()
            && metadata.is_file()
        {
            let (identity, length) = (FileIdentity::of(&metadata), metadata.len());
            let file = NamedFile { path: path.to_owned(), identity, length };
            input.file = FileAccess::OnDemand(Rc::new(file));
        }
        Ok(input)
    }

    /// Which file it is, if it is not held open.
    pub(crate) fn identity(&self) -> Option<FileIdentity> {
        match &self.file {
            FileAccess::Held(_) => None,
            FileAccess::OnDemand(file) => Some(file.identity),
        }
    }

    /// The same without a progress bar.
    pub(crate) fn quietly(mut self) -> Self {
        self.progress = Rc::new(Progress::silent());
        self
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Reads events in the order of the file. A pipe can be read only once.
    pub(crate) fn in_file_order(&self) -> Result<Box<dyn EventSource>, Failure> {
        self.source(Order::File).map_err(|error| self.failure(error))
    }

    /// Reads events in this order.
    pub(crate) fn source(&self, order: Order) -> Result<Box<dyn EventSource>, ReadError> {
        let (mode, limits) = (Mode::Lenient, Limits::default());
        match order {
            Order::File => Ok(open(self.stream(), mode, limits)?),
            Order::Time => open_in_time_order(|| Ok(self.stream()), mode, limits),
        }
    }

    /// Reads events in the order of the file, for a verb that is about the file, too.
    pub(crate) fn reader(&self, mode: Mode) -> Result<Box<dyn TraceReader>, Failure> {
        open(self.stream(), mode, Limits::default()).map_err(|error| self.failure(error))
    }

    /// Whether the input can be read again, and by several at the same time.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.copy.get().is_some() || (self.begin.is_some() && self.compression().is_none())
    }

    /// Whether its contents are compressed, and are decompressed as they are read.
    pub(crate) fn is_compressed(&self) -> bool {
        self.compression().is_some()
    }

    /// How the file is compressed.
    fn compression(&self) -> Option<Compression> {
        *self.compression.get_or_init(|| {
            let FileAccess::Held(file) = &self.file else { return None };
            let Some(begin) = self.begin else {
                return Compression::of(FileKind::of(self.peeked.peek(file)));
            };
            let mut start = [0; FileKind::LONGEST_MAGIC];
            let read = file.read_at(&mut start, begin).unwrap_or(0);
            Compression::of(FileKind::of(&start[..read]))
        })
    }

    /// Makes sure that the input can be read any number of times.
    pub(crate) fn make_repeatable(&self) -> Result<(), Failure> {
        if self.is_repeatable() {
            return Ok(());
        }
        let copied = unnamed_file().and_then(|mut copy| {
            io::copy(&mut self.bytes_again(), &mut copy)?;
            Ok(copy)
        });
        match copied {
            Ok(copy) => {
                self.copy.get_or_init(|| Rc::new(copy));
                Ok(())
            }
            // What cannot be decompressed cannot be read even once.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(self.failure(ReadError::Io(error)))
            }
            Err(error) => Err(Failure::Trouble(format!(
                "{}: cannot be kept for a second reading: {error}; \
                 save it to a file first, or set TMPDIR to a directory with more room",
                self.name
            ))),
        }
    }

    /// Reads the events of all domains in the order of time.
    pub(crate) fn in_time_order(&self) -> Result<Box<dyn EventSource>, Failure> {
        self.make_repeatable()?;
        self.source(Order::Time).map_err(|error| self.failure(error))
    }

    /// The kind of the file; `None` if it is unknown. Of a pipe, before anything else is read.
    pub(crate) fn kind(&self) -> Option<FileKind> {
        if let FileAccess::Held(file) = &self.file
            && !self.is_repeatable()
            && self.begin.is_none()
        {
            if self.compression().is_none() {
                return FileKind::of(self.peeked.peek(file));
            }
            self.make_repeatable().ok()?;
        }
        let mut start = Vec::new();
        let limit = FileKind::LONGEST_MAGIC as u64;
        self.bytes_again().take(limit).read_to_end(&mut start).ok()?;
        FileKind::of(&start)
    }

    /// The bytes of a heap snapshot. A pipe can be read only once, unless it was
    /// [made repeatable](Input::make_repeatable).
    pub(crate) fn snapshot_bytes(&self) -> BufReader<TraceBytes> {
        /// Most chunks are shorter.
        const CAPACITY: usize = 256 << 10;
        // So that it is known if this turns out not to be one.
        self.kind();
        BufReader::with_capacity(CAPACITY, self.bytes_again())
    }

    /// The failure of a verb that could not read a heap snapshot.
    pub(crate) fn snapshot_failure(&self, error: &heaptap_heap::ReadError) -> Failure {
        let name = &self.name;
        match (&error.defect, self.kind()) {
            (SnapshotDefect::NotASnapshot, Some(kind)) if kind.is_trace() => {
                Failure::Trouble(format!(
                    "{name}: not a heap snapshot but a trace: `heaptap check FILE` checks it, \
                 `heaptap report FILE` shows what is in it"
                ))
            }
            (SnapshotDefect::NotASnapshot, _) => Failure::Trouble(format!(
                "{name}: not a heap snapshot; `heaptap snapshot PID` takes one"
            )),
            (
                SnapshotDefect::HeaderCutShort
                | SnapshotDefect::Version(_)
                | SnapshotDefect::Memory(_)
                | SnapshotDefect::Io(_),
                _,
            ) => Failure::Trouble(format!("{name}: {error}")),
            _ => Failure::Defective(format!("{name}: {error}")),
        }
    }

    /// The trace from its beginning, or the rest of a pipe that was not copied.
    fn stream(&self) -> Stream<TraceBytes> {
        Stream::new(self.bytes_again())
    }

    /// The bytes of an input that can be read again, from its beginning.
    pub(crate) fn bytes_again(&self) -> TraceBytes {
        match self.copy.get() {
            Some(copy) => self.bytes(FileAccess::Held(Rc::clone(copy)), Some(0), None),
            None => self.bytes(self.file.clone(), self.begin, self.compression()),
        }
    }

    fn bytes(
        &self,
        file: FileAccess,
        begin: Option<u64>,
        compression: Option<Compression>,
    ) -> TraceBytes {
        let (peeked, progress) = (Rc::clone(&self.peeked), Rc::clone(&self.progress));
        TraceBytes::new(FileBytes { file, begin, peeked, read: 0, progress }, compression)
    }

    /// The failure of a verb that could not read the trace.
    pub(crate) fn failure(&self, error: ReadError) -> Failure {
        read_failure(&self.name, error)
    }

    /// Passes the events to `take`, until one fails.
    pub(crate) fn each_event(
        &self,
        source: &mut (impl EventSource + ?Sized),
        mut take: impl FnMut(&Event<'_>, &LocationTable) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut failed = Ok(());
        let read = source.for_each(&mut |event, table| goes_on(take(event, table), &mut failed));
        _ = read.map_err(|error| self.failure(error))?;
        failed
    }

    /// Says that a copy leaves out events of such objects, if it does.
    pub(crate) fn say_left_out(&self, events: u64, objects: &str) {
        if events > 0 {
            let events = count(events, "event", "events");
            notices::say(&format!("{}: {events} of {objects} left out", self.name));
        }
    }

    /// After the last event of a trace whose events were used: reports on standard error
    /// what is missing, and which events had to be ignored.
    pub(crate) fn report(&self, trace: &dyn EventSource, lives: &mut Lives) -> Verdict {
        self.report_with(trace, lives, &outcome_in_reports)
    }

    /// What [`Input::report`] would print: lines, each with the name of the trace.
    pub(crate) fn findings(
        &self,
        trace: &dyn EventSource,
        lives: &mut Lives,
        outcome: &dyn Fn(Offence) -> Option<&'static str>,
    ) -> (Vec<String>, Verdict) {
        let (mut lines, losses) = notices::of_losses(trace.losses());
        let read = ReadTrace { losses: trace.losses(), start: trace.info().start_time };
        let (of_lives, verdict) = lives.findings(&read, outcome);
        lines.extend(of_lives);
        for line in &mut lines {
            *line = format!("{}: {line}", self.name);
        }
        (lines, losses.max(verdict))
    }

    /// The same where something else became of events that cannot be.
    pub(crate) fn report_with(
        &self,
        trace: &dyn EventSource,
        lives: &mut Lives,
        outcome: &dyn Fn(Offence) -> Option<&'static str>,
    ) -> Verdict {
        self.end_progress();
        let (lines, verdict) = self.findings(trace, lives, outcome);
        lines.iter().for_each(|line| notices::say(line));
        verdict
    }

    /// After the last event: removes the progress bar.
    pub(crate) fn end_progress(&self) {
        self.progress.clear();
    }
}

/// Whether a reading goes on after this event; if not, `failed` says why.
pub(crate) fn goes_on(
    taken: Result<(), Failure>,
    failed: &mut Result<(), Failure>,
) -> ControlFlow<()> {
    if taken.is_ok() {
        return ControlFlow::Continue(());
    }
    *failed = taken;
    ControlFlow::Break(())
}

/// What becomes, in a report, of an event that cannot be.
pub(crate) fn outcome_in_reports(offence: Offence) -> Option<&'static str> {
    (!offence.is_harmless()).then_some("ignored; `heaptap recode` leaves these events out")
}

/// The failure of a verb that could not read the trace of this name.
pub(crate) fn read_failure(name: &str, error: ReadError) -> Failure {
    match error {
        ReadError::Io(error) => Failure::Trouble(format!("{name}: {error}")),
        ReadError::Defect(located) => {
            let message = format!("{name}: {}", notices::with_remedy(&located));
            match notices::is_no_trace(&located) {
                true => Failure::Trouble(message),
                false => Failure::Defective(message),
            }
        }
    }
}

pub(crate) fn cannot_open(name: &str, error: &io::Error) -> Failure {
    Failure::Trouble(match error.kind() {
        io::ErrorKind::NotFound => format!("{name}: no such file; check the path"),
        io::ErrorKind::PermissionDenied => {
            format!("{name}: permission denied; traces are readable by their owner only")
        }
        _ => format!("{name}: cannot be opened: {error}"),
    })
}

/// The order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The order of the file: each domain by itself is in the order of time.
    File,
    Time,
}
