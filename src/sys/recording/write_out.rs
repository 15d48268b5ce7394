//! From memory to a directory.
//!
//! Everything here is async-signal-safe: system calls and arithmetic, no lock, no memory. The newest
//! part is written first, and of a part its trace last: if the disk is full there, what was written is
//! a series that covers less, and no trace lacks its sidecar.

use core::ffi::{c_char, c_int};
use core::sync::atomic::Ordering;

use super::{Kind, MAX_PARTS, PartSlot, Recording};
use crate::sys::errno;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WrittenParts {
    pub(crate) parts: usize,
    pub(crate) bytes: u64,
    /// The number of the oldest.
    pub(crate) oldest: u64,
    /// Why others are missing; 0 if none is.
    pub(crate) errno: i32,
}

/// The name of the directory, and room for one of a file in it: whoever writes has it in his own
/// memory.
pub(crate) struct DirectoryName {
    directory: Name,
    file: Name,
}

impl DirectoryName {
    pub(crate) const fn new() -> DirectoryName {
        DirectoryName { directory: Name::new(), file: Name::new() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.directory.bytes.get(..self.directory.length).unwrap_or_default()
    }
}

/// A name that ends with a NUL.
struct Name {
    bytes: [u8; libc::PATH_MAX as usize],
    length: usize,
}

impl Name {
    const fn new() -> Name {
        Name { bytes: [0; libc::PATH_MAX as usize], length: 0 }
    }

    /// Begins with these bytes. False if they do not fit.
    fn set(&mut self, name: &[u8]) -> bool {
        self.length = 0;
        self.push(name)
    }

    fn push(&mut self, more: &[u8]) -> bool {
        let end = self.length + more.len();
        let Some(place) = self.bytes.get_mut(self.length..end) else { return false };
        place.copy_from_slice(more);
        self.length = end;
        // The last byte stays a NUL.
        self.bytes.get_mut(end).is_some_and(|after| {
            *after = 0;
            true
        })
    }

    /// Adds a number of at least so many digits.
    fn push_number(&mut self, mut number: u64, digits: usize) -> bool {
        let mut text = [b'0'; 20];
        let mut at = text.len();
        while number > 0 || text.len() - at < digits {
            at -= 1;
            if let Some(digit) = text.get_mut(at) {
                *digit = b'0' + (number % 10) as u8;
            }
            number /= 10;
        }
        self.push(text.get(at..).unwrap_or_default())
    }

    /// Where it begins, for the system.
    fn start(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }
}

/// The directory that parts are written to.
pub(crate) enum NewDirectory<'a> {
    /// One that is not there yet.
    Named(&'a [u8]),
    /// The first of `NAME.recording-1`, `NAME.recording-2`, … that is not there yet.
    Numbered(&'a [u8]),
}

/// The last number that is tried.
const MOST_DIRECTORIES: u64 = 99_999;

impl NewDirectory<'_> {
    /// Makes it, and opens it. `name` gets its name. An error is an `errno`.
    fn make(&self, name: &mut Name) -> Result<c_int, i32> {
        let numbers = match self {
            NewDirectory::Named(_) => 0..=0,
            NewDirectory::Numbered(_) => 1..=MOST_DIRECTORIES,
        };
        for number in numbers {
            let fits = match self {
                NewDirectory::Named(exact) => name.set(exact),
                NewDirectory::Numbered(base) => {
                    name.set(base) && name.push(b".recording-") && name.push_number(number, 1)
                }
            };
            if !fits {
                return Err(libc::ENAMETOOLONG);
            }
            // SAFETY: mkdir reads a string that ends with a NUL.
            if unsafe { libc::mkdir(name.start(), 0o700) } == 0 {
                let flags = libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
                // SAFETY: open reads a string that ends with a NUL.
                let directory = unsafe { libc::open(name.start(), flags) };
                return if directory < 0 { Err(errno::get()) } else { Ok(directory) };
            }
            if errno::get() != libc::EEXIST || matches!(self, NewDirectory::Named(_)) {
                return Err(errno::get());
            }
        }
        Err(libc::EEXIST)
    }
}

impl Recording {
    /// Writes all parts into a directory that is made for them, each as `STEM.NUMBER.ctf` with its
    /// sidecars. `name` gets the name of the directory. If no part could be written, there is no
    /// directory. Async-signal-safe.
    pub(crate) fn write_to(
        &self,
        directory: &NewDirectory<'_>,
        stem: &[u8],
        name: &mut DirectoryName,
    ) -> WrittenParts {
        let mut written = WrittenParts::default();
        let DirectoryName { directory: name, file: room } = name;
        let opened = match directory.make(name) {
            Ok(opened) => opened,
            Err(errno) => return WrittenParts { errno, ..written },
        };
        let mut below = u64::MAX;
        for _ in 0..MAX_PARTS {
            let Some((number, slot)) = self.newest_below(below) else { break };
            below = number;
            match self.write_part(opened, slot, number, stem, room) {
                Ok(0) => {}
                Ok(bytes) => {
                    written.parts += 1;
                    written.bytes += bytes;
                    written.oldest = number;
                }
                Err(errno) => {
                    written.errno = errno;
                    break;
                }
            }
        }
        // SAFETY: opened above.
        unsafe { libc::close(opened) };
        if written.parts == 0 {
            // SAFETY: a string that ends with a NUL. If the directory is not empty it stays.
            unsafe { libc::rmdir(name.start()) };
        }
        written
    }

    fn newest_below(&self, below: u64) -> Option<(u64, &PartSlot)> {
        let numbered = self.slots.iter().map(|slot| (slot.number.load(Ordering::Acquire), slot));
        numbered.filter(|&(number, _)| number > 0 && number < below).max_by_key(|found| found.0)
    }

    /// Writes the files of a part, and returns their bytes: 0 if its trace has not begun. `room` is
    /// used for names.
    fn write_part(
        &self,
        directory: c_int,
        slot: &PartSlot,
        number: u64,
        stem: &[u8],
        room: &mut Name,
    ) -> Result<u64, i32> {
        let length = |kind: Kind| slot.files[kind as usize].length.load(Ordering::Acquire);
        if length(Kind::Trace) == 0 {
            return Ok(0);
        }
        let mut bytes = 0;
        let mut result = Ok(());
        for kind in [Kind::Series, Kind::Probes, Kind::Trace] {
            if length(kind) > 0 && file_name(stem, number, kind, room) {
                result = self.write_file(directory, slot, kind, room);
                bytes += length(kind) as u64;
            }
            if result.is_err() {
                break;
            }
        }
        let is_same = slot.number.load(Ordering::Acquire) == number;
        if is_same && result.is_ok() {
            return Ok(bytes);
        }
        for kind in Kind::ALL {
            if file_name(stem, number, kind, room) {
                // SAFETY: a string that ends with a NUL, in a directory of ours.
                unsafe { libc::unlinkat(directory, room.start(), 0) };
            }
        }
        result.map(|()| 0)
    }

    fn write_file(
        &self,
        directory: c_int,
        slot: &PartSlot,
        kind: Kind,
        name: &Name,
    ) -> Result<(), i32> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: a string that ends with a NUL.
        let file = unsafe { libc::openat(directory, name.start(), flags, 0o600) };
        if file < 0 {
            return Err(errno::get());
        }
        let mut errno = 0;
        self.each_chunk(&slot.files[kind as usize], |start, length| {
            let mut done = 0;
            while done < length {
                let rest = start.as_ptr().wrapping_add(done);
                // SAFETY: write reads the rest of a chunk, which stays mapped.
                let wrote = unsafe { libc::write(file, rest.cast(), length - done) };
                match usize::try_from(wrote) {
                    Ok(wrote @ 1..) => done += wrote,
                    Ok(0) => errno = libc::EIO,
                    Err(_) if errno::get() == libc::EINTR => {}
                    Err(_) => errno = errno::get(),
                }
                if errno != 0 {
                    return false;
                }
            }
            true
        });
        // SAFETY: opened above.
        let closed = unsafe { libc::close(file) };
        match errno {
            0 if closed == 0 => Ok(()),
            0 => Err(errno::get()),
            errno => Err(errno),
        }
    }
}

/// The name of a file of a part.
fn file_name(stem: &[u8], number: u64, kind: Kind, room: &mut Name) -> bool {
    let suffix: &[u8] = match kind {
        Kind::Trace => b".ctf",
        Kind::Series => b".ctf.series",
        Kind::Probes => b".ctf.probes",
    };
    room.set(stem) && room.push(b".") && room.push_number(number, 6) && room.push(suffix)
}
