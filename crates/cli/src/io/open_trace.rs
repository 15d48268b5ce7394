//! The file or pipe that [`super::live_trace`] reads: opened and read without waiting.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use heaptap_client::FileIdentity;
use heaptap_trace::{Completion, Limits, Mode, Tail, TraceHead, TraceOrigin};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::exit_status::Failure;
use crate::io::input::{cannot_open, refuse_sidecar};

/// The file that is being read.
pub(super) struct OpenTrace {
    pub(super) file: Rc<File>,
    /// A regular file, and the offset at which the trace begins; `None` for a pipe.
    pub(super) regular: Option<(FileIdentity, u64)>,
    progress: Rc<ReadProgress>,
    pub(super) tail: Tail<'static, LiveBytes>,
    /// The trace has said that it is unfinished.
    pub(super) was_unfinished: bool,
    pub(super) ended: bool,
    /// The bytes that the file began with, once they were there, and when it was opened.
    fixed: Option<[u8; TraceHead::FIXED]>,
    pub(super) since: Instant,
}

/// What was read of a file.
struct ReadProgress {
    bytes: Cell<u64>,
    /// When there was something to read.
    grown: Cell<Instant>,
    /// The writers of a pipe have closed it.
    closed: Cell<bool>,
}

impl ReadProgress {
    fn new() -> ReadProgress {
        let (bytes, grown) = (Cell::new(0), Cell::new(Instant::now()));
        ReadProgress { bytes, grown, closed: Cell::new(false) }
    }
}

/// The bytes of a growing file or pipe.
pub(super) struct LiveBytes {
    file: Rc<File>,
    begin: Option<u64>,
    progress: Rc<ReadProgress>,
}

impl Read for LiveBytes {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.progress.bytes.get();
        let count = match self.begin {
            Some(begin) => self.file.read_at(room, begin + read)?,
            None => {
                if !is_readable(&self.file, Duration::ZERO) {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                let count = (&*self.file).read(room)?;
                self.progress.closed.set(count == 0);
                count
            }
        };
        self.progress.bytes.set(read + count as u64);
        if count > 0 {
            self.progress.grown.set(Instant::now());
        }
        Ok(count)
    }
}

/// Whether a read of a pipe would not block, after at most this long.
fn is_readable(file: &File, wait: Duration) -> bool {
    let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
    let mut files = [PollFd::new(file, PollFlags::IN)];
    // A signal that interrupts it is no byte.
    poll(&mut files, Some(&wait)).is_ok_and(|ready| ready > 0)
}

impl OpenTrace {
    pub(super) fn new(name: &str, mut file: File) -> Result<OpenTrace, Failure> {
        let metadata = file.metadata().map_err(|error| cannot_open(name, &error))?;
        if metadata.is_dir() {
            let message = format!("{name}: is a directory; name a trace file in it");
            return Err(Failure::Trouble(message));
        }
        let begin = io::Seek::stream_position(&mut file).unwrap_or(0);
        let regular = metadata.is_file().then(|| (FileIdentity::of(&metadata), begin));
        if let Some((_, begin)) = regular {
            refuse_sidecar(name, &file, begin)?;
        }
        let (file, progress) = (Rc::new(file), Rc::new(ReadProgress::new()));
        let begin = regular.map(|(_, begin)| begin);
        let bytes = LiveBytes { file: Rc::clone(&file), begin, progress: Rc::clone(&progress) };
        let tail = Tail::new(bytes, Mode::Lenient, Limits::default());
        Ok(OpenTrace {
            file,
            regular,
            progress,
            tail,
            was_unfinished: false,
            ended: false,
            fixed: None,
            since: Instant::now(),
        })
    }

    /// Whether the file still begins with the same trace: not if it was truncated, and another one
    /// began in it.
    pub(super) fn begins_as_before(&mut self) -> bool {
        let Some((_, begin)) = self.regular else { return true };
        let mut found = [0; TraceHead::FIXED];
        if self.file.read_exact_at(&mut found, begin).is_err() {
            return self.fixed.is_none();
        }
        *self.fixed.get_or_insert(found) == found
    }

    /// Whether the file begins with zeros.
    pub(super) fn is_hole(&self) -> bool {
        self.fixed == Some([0; TraceHead::FIXED])
    }

    /// Whether the trace says now that it is complete; `None` of a pipe, or before that is written.
    pub(super) fn completion(&self) -> Option<Completion> {
        self.head().map(|head| head.completion)
    }

    /// Which process began the trace, and when; `None` of a pipe, or before that is written.
    pub(super) fn origin(&self) -> Option<TraceOrigin> {
        self.head().map(|head| head.origin)
    }

    fn head(&self) -> Option<TraceHead> {
        let (_, begin) = self.regular?;
        let mut bytes = [0; TraceHead::BYTES];
        self.file.read_exact_at(&mut bytes, begin).ok()?;
        TraceHead::of(&bytes)
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.progress.bytes.get()
    }

    /// Whether a file has not grown for this long.
    pub(super) fn is_quiet(&self, long: Duration) -> bool {
        // The clock of another machine may be ahead: then only what is seen here counts.
        let age = self.file.metadata().and_then(|found| found.modified()).ok();
        let age = age.and_then(|modified| modified.elapsed().ok());
        self.progress.grown.get().elapsed() >= long || age.is_some_and(|age| age >= long)
    }

    /// Whether this is a pipe that has no writers any more.
    pub(super) fn is_closed(&self) -> bool {
        self.progress.closed.get()
    }

    /// Waits this long, below a second; for a pipe only until there is more.
    pub(super) fn wait(&self, long: Duration) {
        if self.regular.is_some() || self.is_closed() {
            std::thread::sleep(long);
        } else {
            is_readable(&self.file, long);
        }
    }
}

/// Opens a file for reading. A named pipe need not have a writer yet.
pub(super) fn open_without_waiting(path: &Path) -> io::Result<File> {
    let metadata = fs::metadata(path)?;
    let mut options = OpenOptions::new();
    if metadata.file_type().is_fifo() {
        options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    }
    options.read(true).open(path)
}
