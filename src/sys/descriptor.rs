//! System calls on file descriptors that the standard library has no functions for.
#![allow(unsafe_code, reason = "calls flock, fcntl and fstat")]

use core::mem::MaybeUninit;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;

/// Identifies a file independently of its name and descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// The file that a descriptor refers to; `None` if it is closed.
    pub(super) fn of_descriptor(descriptor: RawFd) -> Option<Self> {
        Self::with_size(descriptor).map(|(identity, _)| identity)
    }

    /// The same, and the size of the file.
    pub(super) fn with_size(descriptor: RawFd) -> Option<(Self, u64)> {
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: fstat accepts any descriptor number and writes one `stat` to the
        // pointer on success.
        if unsafe { libc::fstat(descriptor, stat.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: fstat succeeded, so it has written the whole struct.
        let stat = unsafe { stat.assume_init() };
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        Some((Self { device: stat.st_dev, inode: stat.st_ino }, size))
    }
}

/// Locks the file until its descriptor is closed. Returns false if another process
/// holds the lock. On a file system without locks every attempt succeeds.
pub(super) fn lock(file: &File) -> io::Result<bool> {
    // SAFETY: flock takes a descriptor, which `file` keeps open, and flags.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EWOULDBLOCK) => Ok(false),
        Some(libc::ENOLCK | libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => Ok(true),
        _ => Err(error),
    }
}

/// Shows everybody who asks by `fcntl(F_GETLK)` that this process writes the file.
///
/// A record lock says more than [`lock`]: it can be asked for without being taken, its answer is
/// the same in every pid namespace, and neither a forked child nor a copy of the process has it.
/// The process loses it when it closes any descriptor of the file, so it is taken last, on the
/// descriptor that stays. A host that reads its own trace loses it, and viewers see only that the
/// process has the file open; it is not taken again, since a filter of system calls may forbid
/// that later. It keeps nobody from anything, so it does not matter if it fails: on a file system
/// without locks, or where [`lock`] takes the same lock.
pub(super) fn show_writer(descriptor: RawFd) {
    // SAFETY: `flock` consists of integers, for which zeros are a value: from the beginning of
    // the file, however long it becomes.
    let mut whole: libc::flock = unsafe { core::mem::zeroed() };
    whole.l_type = libc::F_WRLCK as libc::c_short;
    whole.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: F_SETLK reads one `flock`, which is on this stack, and does not wait.
    unsafe { libc::fcntl(descriptor, libc::F_SETLK, &raw const whole) };
}

/// Moves the file to a high descriptor number. Low numbers belong to the host: it may
/// rely on getting the lowest one, or close those it expects to own.
pub(super) fn move_to_high_number(file: File) -> File {
    for lowest in [200, 64, 3] {
        // SAFETY: F_DUPFD_CLOEXEC takes a descriptor, which `file` keeps open, and a
        // number.
        let raised = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest) };
        if raised >= 0 {
            // SAFETY: fcntl has just made this descriptor, so nobody else owns it.
            return unsafe { File::from_raw_fd(raised) };
        }
    }
    file
}

/// A descriptor with a high number, and the file that it refers to. The host may close it: then it
/// is not ours any more, and is not closed when this is dropped.
pub(super) struct OwnDescriptor<T: AsRawFd + IntoRawFd> {
    /// `None` only while it is dropped.
    open: Option<T>,
    identity: FileIdentity,
}

impl<T: AsRawFd + IntoRawFd + From<OwnedFd> + Into<OwnedFd>> OwnDescriptor<T> {
    pub(super) fn new(low: T) -> io::Result<OwnDescriptor<T>> {
        let file = move_to_high_number(File::from(low.into()));
        let identity = FileIdentity::of_descriptor(file.as_raw_fd());
        let identity = identity.ok_or_else(io::Error::last_os_error)?;
        let open: OwnedFd = file.into();
        Ok(OwnDescriptor { open: Some(T::from(open)), identity })
    }
}

impl<T: AsRawFd + IntoRawFd> OwnDescriptor<T> {
    pub(super) fn get(&self) -> &T {
        self.open.as_ref().expect("taken by drop only")
    }

    pub(super) fn number(&self) -> RawFd {
        self.get().as_raw_fd()
    }

    pub(super) fn is_ours(&self) -> bool {
        FileIdentity::of_descriptor(self.number()) == Some(self.identity)
    }
}

impl<T: AsRawFd + IntoRawFd> Drop for OwnDescriptor<T> {
    fn drop(&mut self) {
        if !self.is_ours()
            && let Some(open) = self.open.take()
        {
            // The number belongs to the host now.
            let _ = open.into_raw_fd();
        }
    }
}
