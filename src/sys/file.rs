//! Creates a trace file without destroying other files.
//!
//! - A file that another process traces into is locked, and is refused.
//! - A file that is neither empty nor a trace is refused: a mistyped name must not destroy
//!   data.
//! - A process keeps its id over `exec`. If the file is a trace that this same process began
//!   as an earlier program, the new trace goes to `FILE.1`, `FILE.2`, …
//! - Pipes, terminals and other special files are written to as they are.
//!
//! A new file is readable by its owner only (mode 0600); an existing one keeps its mode.
//! Symbolic links are followed, since `/dev/stdout` is one.
#![allow(unsafe_code, reason = "calls sysconf")]

use super::clock_source::clock_ns;
use super::descriptor::lock;
use super::output::Output;
use core::fmt;
use heaptap_trace::{SERIES_MAGIC, TraceHead, series_name};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// `FILE.999` is the last name that is tried.
const MAX_SUFFIX: u32 = 999;

/// Why no trace file was created.
#[derive(Debug)]
pub(crate) enum FileError {
    /// The system refused.
    Open(PathBuf, io::Error),
    /// Another process holds the lock.
    Locked(PathBuf),
    /// The file holds something else.
    NotATrace(PathBuf),
    /// This process has begun a thousand traces with this name.
    TooMany(PathBuf),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(path, error) if error.raw_os_error() == Some(libc::ENXIO) => {
                write!(f, "nobody reads from {}: start its reader first", path.display())
            }
            Self::Open(path, error) => {
                write!(f, "cannot make the trace file {}: {error}", path.display())
            }
            Self::Locked(path) => write!(
                f,
                "another process is tracing into {}: put %p into the name for a file per process",
                path.display()
            ),
            Self::NotATrace(path) => write!(
                f,
                "{} exists and is not a trace: remove it or give another name",
                path.display()
            ),
            Self::TooMany(path) => write!(
                f,
                "{} and {MAX_SUFFIX} more are traces of this process: put %t into the name",
                path.display()
            ),
        }
    }
}

impl std::error::Error for FileError {}

/// Opens and empties `path`, or the first `path.N` that does not hold an earlier trace of
/// this process.
pub(crate) fn create(path: &Path) -> Result<Output, FileError> {
    for suffix in 0..=MAX_SUFFIX {
        let mut name = path.as_os_str().to_owned();
        if suffix > 0 {
            name.push(format!(".{suffix}"));
        }
        if let Some(output) = create_exactly(Path::new(&name))? {
            return Ok(output);
        }
    }
    Err(FileError::TooMany(path.into()))
}

/// Opens and empties `path`, the sidecar of a trace with its probes. Nobody has named this file: a
/// symbolic link is not followed, and what is neither empty nor such a sidecar is refused.
pub(crate) fn create_sidecar(path: &Path) -> Result<Output, FileError> {
    create_beside::<{ heaptap_probes::SIDECAR_START }>(path, |begin| {
        heaptap_probes::is_sidecar(begin)
    })
}

/// The same for the sidecar of a series.
pub(crate) fn create_series_sidecar(path: &Path) -> Result<Output, FileError> {
    create_beside::<{ SERIES_MAGIC.len() }>(path, |begin| *begin == SERIES_MAGIC)
}

/// Removes the sidecar of an earlier series, beside a trace that is none.
pub(crate) fn remove_series_sidecar(trace: &Path) {
    let path = series_name(trace.as_os_str());
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
    let mut begin = [0; SERIES_MAGIC.len()];
    if let Ok(file) = opened
        && file.metadata().is_ok_and(|found| found.is_file())
        && read_begin(&file, &mut begin).is_ok()
        && begin == SERIES_MAGIC
    {
        let _ = std::fs::remove_file(&path);
    }
}

fn create_beside<const START: usize>(
    path: &Path,
    is_sidecar: impl FnOnce(&[u8; START]) -> bool,
) -> Result<Output, FileError> {
    let refused = |error| FileError::Open(path.into(), error);
    let file = options(libc::O_NOFOLLOW).read(true).create(true).open(path).map_err(refused)?;
    let found = file.metadata().map_err(refused)?;
    if !found.is_file() {
        return Err(FileError::NotATrace(path.into()));
    }
    if !lock(&file).map_err(refused)? {
        return Err(FileError::Locked(path.into()));
    }
    let mut begin = [0; START];
    match read_begin(&file, &mut begin).map_err(refused)? {
        0 => {}
        _ if is_sidecar(&begin) => file.set_len(0).map_err(refused)?,
        _ => return Err(FileError::NotATrace(path.into())),
    }
    Output::new(file, &found, path).map_err(refused)
}

/// Makes a file that must not be there yet.
pub(crate) fn create_new(path: &Path) -> Result<Output, FileError> {
    let refused = |error| FileError::Open(path.into(), error);
    let file = options(libc::O_NOFOLLOW).read(true).create_new(true).open(path).map_err(refused)?;
    let found = file.metadata().map_err(refused)?;
    lock(&file).map_err(refused)?;
    Output::new(file, &found, path).map_err(refused)
}

/// `None` if it holds an earlier trace of this process.
fn create_exactly(path: &Path) -> Result<Option<Output>, FileError> {
    let refused = |error| FileError::Open(path.into(), error);
    let file = open(path).map_err(refused)?;
    let found = file.metadata().map_err(refused)?;
    if found.is_file() {
        if !lock(&file).map_err(refused)? {
            return Err(FileError::Locked(path.into()));
        }
        match existing_contents(&file).map_err(refused)? {
            // Not truncated: ext4 would then flush the file to disk when it is closed, as a
            // replaced file (its mount option auto_da_alloc).
            ExistingContents::Nothing => {}
            ExistingContents::Trace => file.set_len(0).map_err(refused)?,
            ExistingContents::OwnTrace => return Ok(None),
            ExistingContents::Other => return Err(FileError::NotATrace(path.into())),
        }
    }
    Output::new(file, &found, path).map(Some).map_err(refused)
}

/// Opens without waiting for a pipe's reader: in non-blocking mode, which [`Output`]
/// expects.
fn open(path: &Path) -> io::Result<File> {
    let special = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    // If this process could read from the pipe, it would never see its reader close it.
    options(0).read(!special).create(!special).open(path)
}

fn options(flags: i32) -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = flags | libc::O_NOCTTY | libc::O_NONBLOCK;
    options.write(true).truncate(false).mode(0o600).custom_flags(flags);
    options
}

/// What a file holds before tracing starts.
#[derive(Debug, PartialEq, Eq)]
enum ExistingContents {
    Nothing,
    /// A trace of another process.
    Trace,
    /// A trace that this process began.
    OwnTrace,
    Other,
}

fn existing_contents(file: &File) -> io::Result<ExistingContents> {
    let mut header = [0; TraceHead::BYTES];
    let len = read_begin(file, &mut header)?;
    if len == 0 {
        return Ok(ExistingContents::Nothing);
    }
    let Some(TraceHead { origin, .. }) = TraceHead::of(&header[..len]) else {
        return Ok(ExistingContents::Other);
    };
    let own = origin.pid == u64::from(std::process::id()) && origin.start_time >= earliest_us();
    Ok(if own { ExistingContents::OwnTrace } else { ExistingContents::Trace })
}

/// Reads the first bytes of a file, and returns how many it has.
fn read_begin(file: &File, begin: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while let Some(rest) = begin.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, len as u64) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// The earliest time at which this process can have begun a trace, in microseconds since the
/// epoch; 0 if unknown. An older trace is of another process with the same id, which is
/// common in containers.
fn earliest_us() -> u64 {
    /// The clocks may have been adjusted since.
    const MARGIN_US: u64 = 2_000_000;
    let age = process_age_us().unwrap_or(u64::MAX);
    (clock_ns(libc::CLOCK_REALTIME) / 1000).saturating_sub(age).saturating_sub(MARGIN_US)
}

/// How long ago this process started. Field 22 of `/proc/self/stat` is the start in clock
/// ticks since boot; the second field, in parentheses, may contain anything (proc(5)).
fn process_age_us() -> Option<u64> {
    let stat = std::fs::read("/proc/self/stat").ok()?;
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = core::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let start: u64 = fields.split_whitespace().nth(22 - 3)?.parse().ok()?;
    // SAFETY: sysconf takes and returns numbers.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok()?;
    let start_us = start.checked_mul(1_000_000)?.checked_div(per_second)?;
    (clock_ns(libc::CLOCK_BOOTTIME) / 1000).checked_sub(start_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    // Of a packet's header: `docs/format.md`.
    const MAGIC: u32 = 0xc1fc_1fc1;
    const TIME_AT: usize = 8;
    const PID_AT: usize = 30;

    fn header(pid: u32, time_us: u64) -> Vec<u8> {
        let mut packet = vec![0; 64];
        packet[..4].copy_from_slice(&MAGIC.to_le_bytes());
        packet[TIME_AT..TIME_AT + 8].copy_from_slice(&time_us.to_le_bytes());
        packet[PID_AT..PID_AT + 8].copy_from_slice(&u64::from(pid).to_le_bytes());
        packet
    }

    fn now_us() -> u64 {
        clock_ns(libc::CLOCK_REALTIME) / 1000
    }

    fn scratch() -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.ctf");
        (dir, path)
    }

    #[test]
    fn a_new_file_is_readable_by_its_owner_only() {
        let (_dir, path) = scratch();
        create(&path).unwrap().write_all(b"packet").unwrap();
        let found = std::fs::metadata(&path).unwrap();
        assert_eq!((found.permissions().mode() & 0o777, found.len()), (0o600, 6));
    }

    #[test]
    fn a_trace_of_another_process_is_overwritten() {
        let (_dir, path) = scratch();
        std::fs::write(&path, header(std::process::id() + 1, now_us())).unwrap();
        let output = create(&path).unwrap();
        assert_eq!(output.path(), std::fs::canonicalize(&path).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }

    #[test]
    fn a_trace_of_an_older_process_with_this_id_is_overwritten() {
        let (_dir, path) = scratch();
        let before = now_us() - process_age_us().unwrap() - 3_000_000;
        std::fs::write(&path, header(std::process::id(), before)).unwrap();
        create(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }

    #[test]
    fn own_earlier_traces_are_kept() {
        let (dir, path) = scratch();
        for suffix in ["", ".1", ".2"] {
            let expected = dir.path().join(format!("trace.ctf{suffix}"));
            let mut output = create(&path).unwrap();
            output.write_all(&header(std::process::id(), now_us())).unwrap();
            assert_eq!(output.path(), std::fs::canonicalize(expected).unwrap());
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 64);
    }

    #[test]
    fn a_file_in_use_is_refused_and_unchanged() {
        let (_dir, path) = scratch();
        let mut first = create(&path).unwrap();
        first.write_all(b"packet").unwrap();
        let error = create(&path).unwrap_err();
        assert!(error.to_string().starts_with("another process is tracing into "), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"packet");
    }

    #[test]
    fn a_file_that_is_no_trace_is_refused_and_unchanged() {
        let (_dir, path) = scratch();
        for text in [&b"x"[..], &[b'x'; 100], &MAGIC.to_le_bytes()] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(create(&path), Err(FileError::NotATrace(_))));
            assert_eq!(std::fs::read(&path).unwrap(), text);
        }
    }

    #[test]
    fn the_error_names_a_file_that_cannot_be_opened() {
        let (dir, _) = scratch();
        for path in [dir.path().join("none/trace.ctf"), dir.path().to_owned()] {
            let error = create(&path).unwrap_err().to_string();
            assert!(error.contains(&*path.to_string_lossy()), "{error}");
        }
    }

    #[test]
    fn the_process_is_younger_than_the_machine() {
        let age = process_age_us().unwrap();
        assert!(age < clock_ns(libc::CLOCK_BOOTTIME) / 1000);
        assert!(0 < earliest_us() && earliest_us() < now_us());
    }
}
