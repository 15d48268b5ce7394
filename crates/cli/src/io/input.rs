//! Input: a trace from a file, or from standard input for `-`.
//!
//! An [`Input`] opens sources of events, whatever the trace's format. Any input can be read once in the order of the file.
//! The order of time takes an input that can be read again, so a pipe is first
//! copied into an unnamed temporary file.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Read, Seek, stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::rc::Rc;

use heaptap_trace::{
    EventSource, Limits, Mode, ReadError, Reader, Stream, open, open_in_time_order,
};

use crate::exit_status::{Failure, Verdict};
use crate::io::lifecycle::{Lives, Offence, ReadTrace};
use crate::io::notices;
use crate::io::output::unnamed_file;
use crate::io::progress::Progress;
use crate::text::escape;

/// A trace to read.
pub(crate) struct Input {
    name: String,
    file: Rc<File>,
    /// The offset of the trace in a file that can be read again.
    begin: Option<u64>,
    /// The copy of a pipe, once one is needed.
    copy: OnceCell<Rc<File>>,
    progress: Rc<Progress>,
}

/// The reader of memtrace files, in the order of the file.
pub(crate) type MemtraceReader = Reader<Stream<TraceBytes>>;

impl Input {
    /// Opens FILE, or standard input if it is `-`.
    pub(crate) fn open(path: &Path) -> Result<Input, Failure> {
        if path.as_os_str() == "-" {
            let file = stdin().as_fd().try_clone_to_owned().map(File::from);
            return Input::new("standard input".into(), file);
        }
        Input::new(escape::path(path).to_string(), File::open(path))
    }

    fn new(name: String, file: io::Result<File>) -> Result<Input, Failure> {
        let opened = file.and_then(|file| file.metadata().map(|metadata| (file, metadata)));
        let (mut file, metadata) = opened.map_err(|error| cannot_open(&name, &error))?;
        if metadata.is_dir() {
            let message = format!("{name}: is a directory; name a trace file in it");
            return Err(Failure::Trouble(message));
        }
        let begin = if metadata.is_file() { file.stream_position().ok() } else { None };
        let total = begin.map(|begin| metadata.len().saturating_sub(begin));
        let progress = Rc::new(Progress::new(total));
        Ok(Input { name, file: Rc::new(file), begin, copy: OnceCell::new(), progress })
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
        open(self.stream(), Mode::Lenient, Limits::default()).map_err(|error| self.failure(error))
    }

    /// The same for verbs that need what only memtrace files have, such as versions
    /// and packets. Another file is a defective one.
    pub(crate) fn memtrace_reader(&self, mode: Mode) -> Result<MemtraceReader, Failure> {
        Reader::open(self.stream(), mode, Limits::default()).map_err(|error| self.failure(error))
    }

    /// Whether the input can be read again.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.begin.is_some() || self.copy.get().is_some()
    }

    /// Makes sure that the input can be read any number of times.
    pub(crate) fn make_repeatable(&self) -> Result<(), Failure> {
        if self.is_repeatable() {
            return Ok(());
        }
        let copied = unnamed_file().and_then(|mut copy| {
            io::copy(&mut self.bytes(&self.file, None), &mut copy)?;
            Ok(copy)
        });
        match copied {
            Ok(copy) => {
                self.copy.get_or_init(|| Rc::new(copy));
                Ok(())
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
        open_in_time_order(|| Ok(self.stream()), Mode::Lenient, Limits::default())
            .map_err(|error| self.failure(error))
    }

    /// The trace from its beginning, or the rest of a pipe that was not copied.
    fn stream(&self) -> Stream<TraceBytes> {
        Stream::new(match self.copy.get() {
            Some(copy) => self.bytes(copy, Some(0)),
            None => self.bytes(&self.file, self.begin),
        })
    }

    fn bytes(&self, file: &Rc<File>, begin: Option<u64>) -> TraceBytes {
        TraceBytes { file: Rc::clone(file), begin, read: 0, progress: Rc::clone(&self.progress) }
    }

    /// The failure of a verb that could not read the trace.
    pub(crate) fn failure(&self, error: ReadError) -> Failure {
        match error {
            ReadError::Io(error) => Failure::Trouble(format!("{}: {error}", self.name)),
            ReadError::Defect(located) => {
                let message = format!("{}: {}", self.name, notices::with_remedy(&located));
                match notices::is_no_trace(&located) {
                    true => Failure::Trouble(message),
                    false => Failure::Defective(message),
                }
            }
        }
    }

    /// After the last event of a trace whose events were used: reports on standard error
    /// what is missing, and which events had to be ignored.
    pub(crate) fn report(&self, trace: &dyn EventSource, lives: &mut Lives) -> Verdict {
        const IGNORED: &str = "ignored; `heaptap recode` leaves these events out";
        self.report_with(trace, lives, &|offence| (!offence.is_harmless()).then_some(IGNORED))
    }

    /// The same where something else became of events that cannot be.
    pub(crate) fn report_with(
        &self,
        trace: &dyn EventSource,
        lives: &mut Lives,
        outcome: &dyn Fn(Offence) -> Option<&'static str>,
    ) -> Verdict {
        self.end_progress();
        let losses = notices::report(&self.name, trace.losses());
        let read = ReadTrace { losses: trace.losses(), start: trace.info().start_time };
        match lives.report(&self.name, &read, outcome) {
            Verdict::Sound => losses,
            verdict => verdict,
        }
    }

    /// After the last event: removes the progress bar.
    pub(crate) fn end_progress(&self) {
        self.progress.clear();
    }
}

fn cannot_open(name: &str, error: &io::Error) -> Failure {
    Failure::Trouble(match error.kind() {
        io::ErrorKind::NotFound => format!("{name}: no such file; check the path"),
        io::ErrorKind::PermissionDenied => {
            format!("{name}: permission denied; traces are readable by their owner only")
        }
        _ => format!("{name}: cannot be opened: {error}"),
    })
}

/// The bytes of a trace. If the file can be read again, several of these can read it
/// at the same time, each at its own offset.
pub(crate) struct TraceBytes {
    file: Rc<File>,
    begin: Option<u64>,
    read: u64,
    progress: Rc<Progress>,
}

impl Read for TraceBytes {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let count = match self.begin {
            Some(begin) => self.file.read_at(room, begin + self.read)?,
            None => (&*self.file).read(room)?,
        };
        self.read += count as u64;
        self.progress.reached(self.read);
        Ok(count)
    }
}
