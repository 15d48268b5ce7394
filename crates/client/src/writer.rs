//! Whether a trace is still being written.
//!
//! The number of a process says little: another process may have it since, and the same process
//! has other numbers in other pid namespaces. So these are asked, in this order:
//!
//! 1. The lock that heaptap holds on the file while it writes. It is seen in every namespace,
//!    and it goes with the process, however that ends.
//! 2. The process that the trace names: it must have the file open for writing. If the open files
//!    of a process cannot be seen, it must belong to the owner of the file, be older than the
//!    trace and run on the machine that the trace names. That is for other writers, and for file
//!    systems without locks.
//!
//! If neither is there, the writer is gone, unless the file may come from elsewhere: of one that
//! is copied while it grows, nothing can be seen here.
#![allow(unsafe_code, reason = "asks for a lock, which the standard library cannot")]

use std::fs::{self, File};
use std::mem::zeroed;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use crate::open_trace::FileIdentity;
use crate::process::Process;

/// How often the open files of a process are looked through: there may be many.
const PACE: Duration = Duration::from_secs(1);

/// How much later than its trace a process may seem to have begun: clocks are set.
const MARGIN_US: u64 = 2_000_000;

/// What can be seen of the writer of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriterSign {
    /// It runs, and holds its lock.
    Locked,
    /// It runs, and has the file open.
    Running,
    /// It was there, or ran on this machine, and is not there any more.
    Gone,
    /// The file may be written elsewhere, or may have been copied.
    Unknown,
}

/// What a trace says of its writer.
#[derive(Clone, Copy)]
pub struct NamedWriter<'a> {
    /// Its number in its own namespace.
    pub pid: u64,
    /// When its trace began, in microseconds since the epoch.
    pub start_time: u64,
    /// The name of its machine, if the trace says so.
    pub host: Option<&'a [u8]>,
}

impl WriterSign {
    /// Whether it runs.
    pub fn is_there(self) -> bool {
        matches!(self, WriterSign::Locked | WriterSign::Running)
    }
}

/// Looks for the writer of one file, again and again.
#[derive(Default)]
pub struct WriterWatch {
    /// The process that was given as the writer.
    given: Option<Process>,
    /// The process that was found to be the writer.
    found: Option<Process>,
    /// When the open files of a process were looked through, and whether one was the file.
    looked: Option<(Instant, bool)>,
    was_locked: bool,
}

impl WriterWatch {
    /// If the writer is known, by the number of its process.
    pub fn of(writer: Option<Process>) -> WriterWatch {
        WriterWatch { given: writer, found: writer, ..WriterWatch::default() }
    }

    /// For another file of the same name.
    pub fn begin_again(&mut self) {
        *self = WriterWatch::of(self.given);
    }

    /// Looks for the writer of a file, which names it unless its first packet is not there yet.
    pub fn look(&mut self, file: &File, named: Option<NamedWriter<'_>>) -> WriterSign {
        if is_locked(file) {
            self.was_locked = true;
            return WriterSign::Locked;
        }
        if self.has_process(file, named.as_ref()) {
            return WriterSign::Running;
        }
        let was_here = self.given.is_some()
            || self.was_locked
            || named.is_some_and(|named| named.host.is_some_and(is_this_machine));
        if was_here { WriterSign::Gone } else { WriterSign::Unknown }
    }

    /// Whether a process of this namespace writes the file.
    fn has_process(&mut self, file: &File, named: Option<&NamedWriter<'_>>) -> bool {
        if self.found.is_some_and(|process| !process.is_running()) {
            (self.found, self.looked) = (None, None);
        }
        if let Some((when, writes)) = self.looked
            && when.elapsed() < PACE
        {
            return writes;
        }
        let found = match self.given {
            Some(_) => self.found,
            None => named.and_then(NamedWriter::process),
        };
        let writes = found.is_some_and(|process| writes(process, file, named));
        self.found = found.filter(|_| writes || self.given.is_some());
        // Before a file names its writer, it says nothing about it.
        self.looked = named.map(|_| (Instant::now(), writes));
        writes
    }
}

impl NamedWriter<'_> {
    /// The process with its number here, which may be another one. This one is none.
    fn process(&self) -> Option<Process> {
        let pid = u32::try_from(self.pid).ok()?;
        Process::of(pid).filter(|_| pid != std::process::id())
    }
}

/// Whether a process writes a file, as far as can be seen.
fn writes(process: Process, file: &File, named: Option<&NamedWriter<'_>>) -> bool {
    let Ok(of_file) = file.metadata() else { return false };
    if let Some(mut files) = process.written_files() {
        let identity = FileIdentity::of(&of_file);
        return files.any(|found| FileIdentity::of(&found) == identity);
    }
    let Some(named) = named else { return true };
    let is_older =
        process.began_us().is_some_and(|began| began <= named.start_time.saturating_add(MARGIN_US));
    process.user() == Some(of_file.uid()) && is_older && named.host.is_some_and(is_this_machine)
}

fn is_this_machine(host: &[u8]) -> bool {
    fs::read("/proc/sys/kernel/hostname").is_ok_and(|name| name.trim_ascii_end() == host)
}

/// Whether another process holds a lock on a file. Nothing is locked by asking. A file system
/// without locks has none.
fn is_locked(file: &File) -> bool {
    // SAFETY: `flock` consists of integers, for which zeros are a value: from the beginning of
    // the file to its end.
    let mut lock: libc::flock = unsafe { zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: F_GETLK reads and writes one `flock`, which is on this stack; `file` keeps the
    // descriptor open.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) };
    asked == 0 && lock.l_type != libc::F_UNLCK as libc::c_short
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::OpenOptions;
    use std::path::Path;
    use std::process::{Child, Command};

    use super::*;

    /// Ends a process with the test.
    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn sleeper(output: Option<&Path>) -> Running {
        let mut command = Command::new("sleep");
        let file = output.map(|path| OpenOptions::new().append(true).open(path).unwrap());
        file.into_iter().for_each(|file| _ = command.stdout(file));
        Running(command.arg("600").spawn().unwrap())
    }

    /// A process that holds a lock on a file, perhaps in a pid namespace of its own.
    fn locker(path: &Path, in_namespace: bool) -> Running {
        const PROGRAM: &str = "import fcntl, sys, time
file = open(sys.argv[1], 'r+')
fcntl.lockf(file, fcntl.LOCK_EX)
time.sleep(600)";
        let words: &[&str] = match in_namespace {
            true => &["unshare", "--pid", "--fork", "--kill-child", "python3", "-c", PROGRAM],
            false => &["python3", "-c", PROGRAM],
        };
        let child = Command::new(words[0]).args(&words[1..]).arg(path).spawn().unwrap();
        let (locker, file) = (Running(child), File::open(path).unwrap());
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_locked(&file) {
            assert!(Instant::now() < deadline, "{words:?} has not locked it");
            std::thread::sleep(Duration::from_millis(5));
        }
        locker
    }

    fn here() -> Vec<u8> {
        fs::read("/proc/sys/kernel/hostname").unwrap().trim_ascii_end().to_owned()
    }

    pub(crate) fn now_us() -> u64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        u64::try_from(now.as_micros()).unwrap()
    }

    fn named(pid: u32, host: &[u8]) -> Option<NamedWriter<'_>> {
        Some(NamedWriter { pid: pid.into(), start_time: now_us(), host: Some(host) })
    }

    #[test]
    fn a_process_of_the_same_number_is_not_the_writer_unless_it_has_the_file_open() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t");
        let (file, host) = (File::create(&path).unwrap(), here());
        let (other, writer) = (sleeper(None), sleeper(Some(&path)));
        let look = |pid, host| WriterWatch::default().look(&file, named(pid, host));
        assert_eq!(look(other.0.id(), &host), WriterSign::Gone, "its number was given again");
        assert_eq!(look(other.0.id(), b"elsewhere"), WriterSign::Unknown);
        assert_eq!(look(writer.0.id(), &host), WriterSign::Running);
        assert_eq!(look(writer.0.id(), b"elsewhere"), WriterSign::Running, "it was renamed");
        assert_eq!(look(u32::MAX, &host), WriterSign::Gone);
        assert_eq!(look(1, &host), WriterSign::Gone, "a container's process, and the host's");
        // This process has it open.
        assert_eq!(look(std::process::id(), &host), WriterSign::Gone);
        // One that reads it does not write it.
        let reader = File::open(&path).unwrap();
        let reader = Running(Command::new("sleep").arg("600").stdin(reader).spawn().unwrap());
        assert_eq!(look(reader.0.id(), &host), WriterSign::Gone);
    }

    #[test]
    fn a_writer_that_ends_is_gone_and_its_number_means_nothing_then() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t");
        let (file, host) = (File::create(&path).unwrap(), here());
        let mut writer = sleeper(Some(&path));
        let process = Process::of(writer.0.id()).unwrap();
        let mut watches = [WriterWatch::default(), WriterWatch::of(Some(process))];
        for watch in &mut watches {
            assert_eq!(watch.look(&file, named(process.pid, &host)), WriterSign::Running);
        }
        writer.0.kill().unwrap();
        writer.0.wait().unwrap();
        for watch in &mut watches {
            assert_eq!(watch.look(&file, named(process.pid, &host)), WriterSign::Gone);
        }
        assert!(!Process { began: process.began + 1, ..process }.is_running());
    }

    #[test]
    fn a_lock_is_seen_from_another_namespace_and_goes_with_its_process() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t");
        let (file, host) = (File::create(&path).unwrap(), here());
        let may_unshare = Command::new("unshare").args(["--pid", "--fork", "true"]).output();
        let may_unshare = may_unshare.is_ok_and(|output| output.status.success());
        for in_namespace in [false, may_unshare] {
            let locker = locker(&path, in_namespace);
            let mut watch = WriterWatch::default();
            // The number is that of nobody, as in another namespace.
            assert_eq!(watch.look(&file, named(u32::MAX, &host)), WriterSign::Locked);
            assert_eq!(watch.look(&file, None), WriterSign::Locked);
            assert_eq!(watch.look(&file, named(1, b"elsewhere")), WriterSign::Locked);
            drop(locker);
            let deadline = Instant::now() + Duration::from_secs(60);
            while watch.look(&file, named(1, b"elsewhere")) != WriterSign::Gone {
                assert!(Instant::now() < deadline, "the lock is left behind");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}
