//! A flight recorder: the last moments of the trace are kept in memory, and written to files when
//! somebody asks, when memory runs short, or when the program dies.
//!
//! Whoever wants it written asks the writer thread, which has everything that is recorded. A signal
//! handler does so too, without locks or memory, and waits; if the thread does not begin, since it
//! waits for something that the program held when the signal came, the handler itself writes
//! what is in memory: what was encoded until a tenth of a second before.
//!
//! On the host's threads outside of hooks and on the writer thread, but for what says otherwise.

use std::cell::UnsafeCell;
use std::ffi::{OsStr, OsString, c_int};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::sys::fatal_signals;
use crate::sys::memory_pressure::MemoryWatch;
use crate::sys::name_pattern::{ProcessFacts, expand};
use crate::sys::recording::{DirectoryName, NewDirectory, Recording, WrittenParts};
use crate::tracer::failure::Failure;
use crate::tracer::message::say;
use crate::tracer::options::{Options, RecorderLimits};
use crate::tracer::start_error::StartError;
use crate::writer::{DumpOrder, DumpReason, Dumped};

/// The recorder of a session.
pub(crate) struct FlightRecorder {
    pub(crate) recording: Arc<Recording>,
    pub(super) limits: RecorderLimits,
    /// What the names of its directories begin with, and those of the files in them.
    base: Vec<u8>,
    stem: Vec<u8>,
    /// The bytes of all files that were written.
    written: AtomicU64,
    /// Who writes before the program dies, and whether that is done.
    last_words: AtomicU32,
    /// The handler's, which may not have memory of its own. For the thread that has set
    /// `last_words` to [`BY_HANDLER`].
    room: UnsafeCell<DirectoryName>,
    /// Has the writer thread write it, within so much time. Async-signal-safe.
    ask_writer: OnceLock<AskWriter>,
}

/// See [`FlightRecorder::watch_signals`].
type AskWriter = Box<dyn Fn(DumpReason, Duration) -> bool + Send + Sync>;

// SAFETY: `room` is used by one thread, once.
unsafe impl Sync for FlightRecorder {}

/// Nobody has written before the program dies; the writer thread does; a signal handler does; it is
/// done.
const NOBODY: u32 = 0;
const BY_WRITER: u32 = 1;
const BY_HANDLER: u32 = 2;
const DONE: u32 = 3;

/// The longest that a dying program waits for the writer thread to begin, and for a disk.
const LONGEST_BEGIN: Duration = Duration::from_secs(3);
const LONGEST_WRITE: Duration = Duration::from_secs(20);

/// The recorder of this process, of which a signal handler has a reference; NULL if there is none.
static CURRENT: AtomicPtr<FlightRecorder> = AtomicPtr::new(std::ptr::null_mut());

/// An exception that nobody has caught ends the program: its runtime prints it.
static UNCAUGHT: AtomicBool = AtomicBool::new(false);

/// Somebody else says at the end what was written.
static END_IS_TOLD: AtomicBool = AtomicBool::new(false);

/// The runtime begins to print an exception that nobody has caught, or goes on after all. Inside
/// hooks.
#[inline]
pub(crate) fn note_uncaught_exception(uncaught: bool) {
    UNCAUGHT.store(uncaught, Ordering::Relaxed);
}

/// Whoever has started this program says at its end that nothing was written.
pub(crate) fn leave_end_to_others() {
    END_IS_TOLD.store(true, Ordering::Relaxed);
}

impl FlightRecorder {
    /// Takes the memory, and looks whether files can be made. `%p` and the like are replaced in the
    /// file's name.
    pub(super) fn new(
        options: &Options,
        limits: RecorderLimits,
    ) -> Result<Arc<FlightRecorder>, StartError> {
        let pattern = OsStr::from_bytes(&options.file);
        let refused = |why: &dyn std::fmt::Display| {
            let message = format!("cannot record for {}: {why}; not tracing", pattern.display());
            StartError::new(Failure::File, message)
        };
        let name = expand(pattern, ProcessFacts::gather).map_err(|error| refused(&error))?;
        let name = std::path::absolute(&name).map_err(|error| refused(&error))?;
        let stem = name.file_name().ok_or_else(|| refused(&"it names no file"))?.as_bytes();
        let stem = stem.strip_suffix(b".ctf").unwrap_or(stem).to_vec();
        let base = name.with_file_name(OsStr::from_bytes(&stem)).into_os_string().into_vec();
        if let Some(error) = unwritable(name.parent().unwrap_or(Path::new("/"))) {
            say(format_args!(
                "nothing can be written beside {} now: {error}; recording nevertheless",
                name.display()
            ));
        }
        let recording = Recording::new(limits.bytes, limits.time).ok_or(Failure::Memory)?;
        Ok(Arc::new(FlightRecorder {
            recording: Arc::new(recording),
            limits,
            base,
            stem,
            written: AtomicU64::new(0),
            last_words: AtomicU32::new(NOBODY),
            room: UnsafeCell::new(DirectoryName::new()),
            ask_writer: OnceLock::new(),
        }))
    }

    /// What is written where, for messages.
    pub(super) fn pattern(&self) -> OsString {
        let mut name = OsString::from_vec(self.base.clone());
        name.push(".recording-N");
        name
    }

    /// The time that is covered now.
    pub(crate) fn covered(&self) -> Duration {
        self.recording.covered(Instant::now())
    }

    /// The bytes of all files that were written.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// From now on it is written when a signal ends the program. `ask_writer` has the writer thread
    /// do it, within so much time, and is async-signal-safe.
    pub(super) fn watch_signals(self: &Arc<Self>, ask_writer: AskWriter) {
        let _ = self.ask_writer.set(ask_writer);
        // The one before is that of a parent, in a forked child, and belongs to the parent's memory.
        CURRENT.store(Arc::into_raw(Arc::clone(self)).cast_mut(), Ordering::SeqCst);
        fatal_signals::install(last_work);
    }

    /// The session is over.
    pub(super) fn retire(self: &Arc<Self>) {
        let own = Arc::as_ptr(self).cast_mut();
        let none = std::ptr::null_mut();
        if CURRENT.compare_exchange(own, none, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return;
        }
        fatal_signals::uninstall();
        if !fatal_signals::is_ending() {
            // SAFETY: the reference of `watch_signals`. A handler that begins from now on finds NULL,
            // and one that has begun before is seen by `is_ending`.
            drop(unsafe { Arc::from_raw(own) });
        }
    }

    /// Writes everything that is in memory to a directory, on the writer thread.
    pub(super) fn dump(&self, order: &DumpOrder) -> Result<Dumped, String> {
        let is_last = matches!(order.reason, DumpReason::Signal(_));
        if is_last && !self.take_last_words(BY_WRITER) {
            return Err("a signal handler has written it".into());
        }
        let now = Instant::now();
        let mut name = Box::new(DirectoryName::new());
        let directory = match &order.directory {
            Some(named) => NewDirectory::Named(named.as_os_str().as_bytes()),
            None => NewDirectory::Numbered(&self.base),
        };
        let written = self.recording.write_to(&directory, &self.stem, &mut name);
        self.written.fetch_add(written.bytes, Ordering::Relaxed);
        let dumped = self.describe(written, PathBuf::from(OsStr::from_bytes(name.bytes())), now);
        if order.reason != DumpReason::Asked {
            tell(order.reason, &dumped);
        }
        if is_last {
            self.last_words.store(DONE, Ordering::Release);
        }
        dumped
    }

    fn take_last_words(&self, by: u32) -> bool {
        let taken =
            self.last_words.compare_exchange(NOBODY, by, Ordering::AcqRel, Ordering::Acquire);
        taken.is_ok()
    }

    fn describe(
        &self,
        written: WrittenParts,
        directory: PathBuf,
        now: Instant,
    ) -> Result<Dumped, String> {
        let error = (written.errno != 0).then(|| io::Error::from_raw_os_error(written.errno));
        match (written.parts, error) {
            (0, Some(error)) => {
                Err(format!("cannot write the recording to {}: {error}", directory.display()))
            }
            (0, None) => Err("nothing is recorded yet".into()),
            (_, error) => Ok(Dumped {
                directory,
                bytes: written.bytes,
                covered: self.recording.covered_from(written.oldest, now),
                cut_short: error.map(|error| error.to_string()),
            }),
        }
    }
}

/// Why no file can be made in a directory.
fn unwritable(directory: &Path) -> Option<io::Error> {
    let mut name = directory.as_os_str().as_bytes().to_vec();
    name.push(0);
    // SAFETY: access reads a string that ends with a NUL.
    let refused = unsafe { libc::access(name.as_ptr().cast(), libc::W_OK | libc::X_OK) };
    (refused != 0).then(io::Error::last_os_error)
}

/// Tells the user what nobody has asked for.
fn tell(reason: DumpReason, dumped: &Result<Dumped, String>) {
    let reason = shown(reason);
    match dumped {
        Ok(Dumped { directory, covered, cut_short, .. }) => {
            let directory = directory.display();
            let covered = covered.as_secs_f64();
            let missing = match cut_short {
                Some(why) => format!(", and what was before could not be written: {why}"),
                None => String::new(),
            };
            say(format_args!(
                "{reason}: the last {covered:.1} s are in {directory}{missing}; for details: heaptap \
                 report {directory}"
            ));
        }
        Err(why) => say(format_args!("{reason}: {why}")),
    }
}

/// A reason, as messages and the log have it.
pub(super) fn shown(reason: DumpReason) -> &'static str {
    match reason {
        DumpReason::Asked => "asked",
        DumpReason::Pressure => "memory runs short",
        DumpReason::Exit => "exit",
        DumpReason::UncaughtException => "uncaught exception",
        DumpReason::Signal(signal) => fatal_signals::name(signal),
    }
}

/// Before a signal ends the program. Async-signal-safe, with little stack.
fn last_work(signal: c_int) {
    // SAFETY: NULL, or a recorder of which this process keeps a reference while a signal ends it.
    let Some(recorder) = (unsafe { CURRENT.load(Ordering::SeqCst).as_ref() }) else { return };
    let reason = DumpReason::Signal(signal);
    if recorder.ask_writer.get().is_some_and(|ask| ask(reason, LONGEST_BEGIN)) {
        return;
    }
    if recorder.take_last_words(BY_HANDLER) {
        recorder.write_in_handler(signal);
        return;
    }
    let begin = Instant::now();
    while recorder.last_words.load(Ordering::Acquire) != DONE && begin.elapsed() < LONGEST_WRITE {
        let millisecond = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        // SAFETY: nanosleep reads one struct.
        unsafe { libc::nanosleep(&raw const millisecond, std::ptr::null_mut()) };
    }
}

impl FlightRecorder {
    /// Writes what is in memory, and says so, with system calls only.
    #[cold]
    fn write_in_handler(&self, signal: c_int) {
        // SAFETY: for the one thread that has set `last_words` to `BY_HANDLER`.
        let room = unsafe { &mut *self.room.get() };
        let directory = NewDirectory::Numbered(&self.base);
        let written = self.recording.write_to(&directory, &self.stem, room);
        let outcome: &[u8] = match written.parts {
            0 => b": the recording could not be written to ",
            _ => b": the last moments, but for a tenth of a second, are in ",
        };
        let name = fatal_signals::name(signal).as_bytes();
        let parts: [&[u8]; 5] = [b"heaptap: ", name, outcome, room.bytes(), b"\n"];
        for part in parts {
            // SAFETY: write reads the bytes of a slice. A failure cannot be helped.
            unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
        }
    }
}

/// What a session does about its recorder on the writer thread.
pub(super) struct RecorderWatch {
    pub(super) recorder: Arc<FlightRecorder>,
    memory: MemoryWatch,
    /// Whether an address is one of the runtime's code.
    is_runtime: Option<fn(usize) -> bool>,
    looks_for_handler: bool,
}

impl RecorderWatch {
    pub(super) fn new(recorder: Arc<FlightRecorder>, options: &Options) -> RecorderWatch {
        let is_runtime = options.is_runtime;
        let memory = MemoryWatch::new(Instant::now());
        let looks_for_handler = is_runtime.is_some();
        RecorderWatch { recorder, memory, is_runtime, looks_for_handler }
    }

    /// Why it is to be written now, if it is.
    pub(super) fn due(&mut self) -> Option<DumpReason> {
        if self.looks_for_handler
            && let Some(handler) = fatal_signals::new_fault_handler()
        {
            // The runtime's comes before any that the program sets.
            self.looks_for_handler = false;
            if self.is_runtime.is_some_and(|is_runtime| is_runtime(handler)) {
                fatal_signals::go_before(handler);
            }
        }
        self.memory.is_short(Instant::now()).then_some(DumpReason::Pressure)
    }
}

/// What the end of the program is a reason for, if the recorder is to be written then.
pub(super) fn reason_at_exit(limits: &RecorderLimits) -> Option<DumpReason> {
    if UNCAUGHT.load(Ordering::Relaxed) {
        Some(DumpReason::UncaughtException)
    } else {
        limits.at_exit.then_some(DumpReason::Exit)
    }
}

/// Says at a normal end that nothing was written.
pub(super) fn tell_end(recorder: &FlightRecorder) {
    if recorder.written() == 0 && !END_IS_TOLD.load(Ordering::Relaxed) {
        say(format_args!(
            "the recorder has written nothing: `heaptap recorder {}` asks for it while the program \
             runs, and {}=…,exit at its end",
            std::process::id(),
            heaptap_settings::RECORDER.name
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Rate;
    use crate::sys::recording::{Kind, MemoryFile};

    /// A recorder in this directory that has one part.
    fn recorder(directory: &Path) -> Arc<FlightRecorder> {
        let file = directory.join("a.ctf").into_os_string().into_vec();
        let options = Options::new(file, Rate::DEFAULT);
        let limits =
            RecorderLimits { time: Duration::from_secs(30), bytes: 8 << 20, at_exit: false };
        let recorder = FlightRecorder::new(&options, limits).unwrap();
        let part = recorder.recording.begin_part(Instant::now());
        for kind in [Kind::Series, Kind::Trace] {
            let mut file = MemoryFile::new(Arc::clone(&recorder.recording), part, kind);
            file.write(b"packet").unwrap();
        }
        recorder
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// In a process of its own: there is one recorder, and its signals.
    fn with_recorder(test: &str, body: impl FnOnce(&Path, &Arc<FlightRecorder>)) {
        crate::sys::testing::in_a_process(module_path!(), test, || {
            let place = tempfile::tempdir().unwrap();
            body(place.path(), &recorder(place.path()));
        });
    }

    #[test]
    fn a_handler_writes_what_the_writer_thread_does_not() {
        let test = "a_handler_writes_what_the_writer_thread_does_not";
        with_recorder(test, |place, recorder| {
            recorder.watch_signals(Box::new(|_, _| false));
            last_work(libc::SIGTERM);
            assert_eq!(names(place), ["a.recording-1"]);
            let files = names(&place.join("a.recording-1"));
            assert_eq!(files, ["a.000001.ctf", "a.000001.ctf.series"]);
            // The writer thread comes too late.
            let reason = DumpReason::Signal(libc::SIGTERM);
            assert!(recorder.dump(&DumpOrder { reason, directory: None }).is_err());
            assert_eq!(names(place), ["a.recording-1"]);
            recorder.retire();
            assert_eq!(Arc::strong_count(recorder), 1);
        });
    }

    #[test]
    fn a_handler_waits_for_the_writer_thread() {
        with_recorder("a_handler_waits_for_the_writer_thread", |place, recorder| {
            let writer = Arc::clone(recorder);
            recorder.watch_signals(Box::new(move |reason, _| {
                let order = DumpOrder { reason, directory: None };
                assert_eq!(writer.dump(&order).unwrap().bytes, 12);
                // As if it had not been in time to say so.
                false
            }));
            last_work(libc::SIGTERM);
            assert_eq!((names(place), recorder.written()), (vec!["a.recording-1".into()], 12));
        });
    }

    #[test]
    fn a_directory_that_is_named_must_be_new() {
        with_recorder("a_directory_that_is_named_must_be_new", |place, recorder| {
            let order =
                DumpOrder { reason: DumpReason::Asked, directory: Some(place.join("named")) };
            assert_eq!(recorder.dump(&order).unwrap().directory, place.join("named"));
            let refused = recorder.dump(&order).unwrap_err();
            assert!(refused.contains("named") && refused.contains("File exists"), "{refused}");
        });
    }
}
