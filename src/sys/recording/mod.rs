//! The files of a series that is kept in memory: the last parts, in a bounded number of bytes.
//!
//! All files are lists of *chunks* of one mapping, which is as large as the bound: there is never
//! more. When no chunk is free the oldest part is dropped, and its pages are returned to the system.
//!
//! What is there can be written to a directory at any moment (`write_out`), also by a signal handler
//! of a thread that has interrupted whatever it has: lengths and lists are atomic, and are published
//! after the bytes. A file that is dropped meanwhile is noticed by the number of its part.
//!
//! - here: parts, files and chunks. One thread writes; its lock is for those who ask how much is there.
//! - `memory_file`: one file, as its writer sees it.
//! - `write_out`: from memory to a directory.
#![allow(unsafe_code, reason = "copies from and to a mapping")]

mod memory_file;
#[cfg(test)]
mod tests;
mod write_out;

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::memory::map_anonymous;

pub(crate) use memory_file::MemoryFile;
pub(crate) use write_out::{DirectoryName, NewDirectory, WrittenParts};

/// A file takes whole chunks.
const CHUNK: usize = if crate::SMALL_LIMITS { 4 << 10 } else { 16 << 10 };

/// The most parts: more than the time is divided into, for those that begin since somebody asks.
const MAX_PARTS: usize = 64;

/// The end of a list of chunks.
const NO_CHUNK: u32 = u32::MAX;

/// The files of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Trace,
    Series,
    Probes,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Trace, Kind::Series, Kind::Probes];
}

/// A part, as it can be read without a lock.
struct PartSlot {
    /// 0 if there is none.
    number: AtomicU64,
    /// By [`Kind`].
    files: [FileSlot; 3],
}

struct FileSlot {
    first: AtomicU32,
    /// Bytes that can be read.
    length: AtomicUsize,
}

/// Parts in memory. The writer thread changes them.
pub(crate) struct Recording {
    /// The start of the mapping, and the process that has it: a forked child does not.
    memory: NonNull<u8>,
    owner: u32,
    /// By chunk: the next one of its file.
    next: Box<[AtomicU32]>,
    slots: Box<[PartSlot]>,
    kept: Mutex<Kept>,
    /// This much time is kept if it fits.
    time: Duration,
}

// SAFETY: the mapping belongs to this value. Its bytes are written under the lock and read up to a
// length that is published behind them; a reader without the lock checks afterwards that the part is
// still the same, and uses what it has copied for nothing but a file.
unsafe impl Send for Recording {}
// SAFETY: the same.
unsafe impl Sync for Recording {}

/// What is kept.
struct Kept {
    free: Vec<u32>,
    /// The oldest first.
    parts: VecDeque<KeptPart>,
    /// The number of the last part.
    last: u64,
    /// So many of the last parts are being written.
    writing: usize,
}

struct KeptPart {
    number: u64,
    slot: usize,
    begun: Instant,
    /// By [`Kind`]: the last chunk of the file, and how many there are.
    tails: [(u32, usize); 3],
}

impl Recording {
    /// Room for so many bytes; `None` if the system refuses.
    pub(crate) fn new(bytes: u64, time: Duration) -> Option<Recording> {
        let chunks =
            u32::try_from(bytes / CHUNK as u64).ok().filter(|&chunks| chunks < NO_CHUNK)?;
        let size = chunks as usize * CHUNK;
        let memory = map_anonymous(size, libc::MAP_PRIVATE)?;
        for advice in [libc::MADV_DONTFORK, libc::MADV_NOHUGEPAGE] {
            // SAFETY: the range was just mapped, and nobody forks with a reference to it: a child
            // has a recording of its own.
            unsafe { libc::madvise(memory.as_ptr().cast(), size, advice) };
        }
        let slot = || PartSlot {
            number: AtomicU64::new(0),
            files: Kind::ALL
                .map(|_| FileSlot { first: AtomicU32::new(NO_CHUNK), length: AtomicUsize::new(0) }),
        };
        Some(Recording {
            memory,
            owner: std::process::id(),
            next: (0..chunks).map(|_| AtomicU32::new(NO_CHUNK)).collect(),
            slots: (0..MAX_PARTS).map(|_| slot()).collect(),
            kept: Mutex::new(Kept {
                free: (0..chunks).rev().collect(),
                parts: VecDeque::new(),
                last: 0,
                writing: 0,
            }),
            time,
        })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of the mapping.
    pub(crate) fn size(&self) -> usize {
        self.next.len() * CHUNK
    }

    /// Begins a part, and returns its number. Parts are dropped without which the rest still covers
    /// the time.
    pub(crate) fn begin_part(&self, now: Instant) -> u64 {
        let mut kept = self.kept();
        while kept.parts.len() > kept.writing
            && kept
                .parts
                .get(1)
                .is_some_and(|second| now.saturating_duration_since(second.begun) >= self.time)
            || kept.parts.len() == MAX_PARTS
        {
            self.drop_oldest(&mut kept);
        }
        kept.last += 1;
        kept.writing += 1;
        let number = kept.last;
        let free = |slot: &PartSlot| slot.number.load(Ordering::Relaxed) == 0;
        // There are fewer parts than slots.
        let slot = self.slots.iter().position(free).unwrap_or(0);
        if let Some(place) = self.slots.get(slot) {
            place.number.store(number, Ordering::Release);
        }
        kept.parts.push_back(KeptPart { number, slot, begun: now, tails: [(NO_CHUNK, 0); 3] });
        number
    }

    /// The parts before the last one are complete.
    pub(crate) fn end_before(&self) {
        let mut kept = self.kept();
        kept.writing = kept.writing.min(1);
    }

    /// The part that was begun last will not be written.
    pub(crate) fn abandon(&self) {
        let mut kept = self.kept();
        kept.writing = kept.writing.saturating_sub(1);
        if let Some(part) = kept.parts.pop_back() {
            self.release(&mut kept.free, &part);
        }
    }

    /// The number of the part that was begun last.
    pub(crate) fn last_part(&self) -> u64 {
        self.kept().last
    }

    /// How long ago the oldest part began.
    pub(crate) fn covered(&self, now: Instant) -> Duration {
        self.covered_from(0, now)
    }

    /// How long ago the oldest part with this number or a higher one began.
    pub(crate) fn covered_from(&self, number: u64, now: Instant) -> Duration {
        let kept = self.kept();
        let first = kept.parts.iter().find(|part| part.number >= number);
        first.map_or(Duration::ZERO, |part| now.saturating_duration_since(part.begun))
    }

    /// The memory that is used.
    pub(crate) fn bytes(&self) -> u64 {
        let kept = self.kept();
        ((self.next.len() - kept.free.len()) * CHUNK) as u64
    }

    /// The bytes of the part that was begun last, sidecars included.
    pub(crate) fn part_bytes(&self) -> u64 {
        let kept = self.kept();
        let slot = kept.parts.back().and_then(|part| self.slots.get(part.slot));
        let length = |file: &FileSlot| file.length.load(Ordering::Relaxed) as u64;
        slot.map_or(0, |slot| slot.files.iter().map(length).sum())
    }

    /// Drops the oldest part that nobody writes; false if there is none.
    fn drop_oldest(&self, kept: &mut Kept) -> bool {
        if kept.parts.len() <= kept.writing {
            return false;
        }
        let oldest = kept.parts.pop_front();
        oldest.iter().for_each(|part| self.release(&mut kept.free, part));
        oldest.is_some()
    }

    /// Frees all that a part has.
    fn release(&self, free: &mut Vec<u32>, part: &KeptPart) {
        let Some(slot) = self.slots.get(part.slot) else { return };
        slot.number.store(0, Ordering::Release);
        slot.files.iter().for_each(|file| self.empty(free, file));
    }

    /// Frees the chunks of a file, which is empty then.
    fn empty(&self, free: &mut Vec<u32>, file: &FileSlot) {
        file.length.store(0, Ordering::Release);
        let mut at = file.first.swap(NO_CHUNK, Ordering::AcqRel);
        while let Some(next) = self.next.get(at as usize) {
            let start = self.memory.as_ptr().wrapping_add(at as usize * CHUNK);
            // SAFETY: a whole chunk of the mapping, of which no file has any byte.
            unsafe { libc::madvise(start.cast(), CHUNK, libc::MADV_DONTNEED) };
            free.push(at);
            at = next.swap(NO_CHUNK, Ordering::AcqRel);
        }
    }

    /// Adds bytes to a file of a part, all of them or none. Drops the oldest parts if there is no
    /// room.
    fn append(&self, number: u64, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        let mut kept = self.kept();
        let kept = &mut *kept;
        let gone = || io::Error::other("the part of the recording was dropped");
        let find =
            |parts: &VecDeque<KeptPart>| parts.iter().rposition(|part| part.number == number);
        let part = find(&kept.parts).and_then(|at| kept.parts.get(at)).ok_or_else(gone)?;
        let (slot, (_, chunks)) = (part.slot, part.tails[kind as usize]);
        let file = self.slots.get(slot).map(|slot| &slot.files[kind as usize]).ok_or_else(gone)?;
        let length = file.length.load(Ordering::Relaxed);
        let more = (length + bytes.len()).div_ceil(CHUNK).saturating_sub(chunks);
        while kept.free.len() < more {
            let oldest = kept.parts.front().map(|part| part.number);
            if oldest == Some(number) || !self.drop_oldest(kept) {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        let at = find(&kept.parts).ok_or_else(gone)?;
        let part = kept.parts.get_mut(at).ok_or_else(gone)?;
        let (tail, count) = &mut part.tails[kind as usize];
        let before = (*tail, length - count.saturating_sub(1) * CHUNK);
        let mut rest = bytes;
        if *count > 0 {
            let (now, later) = rest.split_at(rest.len().min(CHUNK - before.1));
            self.copy_in(before.0, before.1, now);
            rest = later;
        }
        while !rest.is_empty() {
            let Some(chunk) = kept.free.pop() else { break };
            let (now, later) = rest.split_at(rest.len().min(CHUNK));
            self.copy_in(chunk, 0, now);
            match self.next.get(*tail as usize) {
                Some(next) => next.store(chunk, Ordering::Release),
                None => file.first.store(chunk, Ordering::Release),
            }
            (*tail, *count) = (chunk, *count + 1);
            rest = later;
        }
        file.length.store(length + bytes.len(), Ordering::Release);
        Ok(())
    }

    /// Writes bytes into a chunk.
    fn copy_in(&self, chunk: u32, offset: usize, bytes: &[u8]) {
        let end = offset.saturating_add(bytes.len());
        if (chunk as usize) < self.next.len() && end <= CHUNK {
            let start = self.memory.as_ptr().wrapping_add(chunk as usize * CHUNK + offset);
            // SAFETY: inside a chunk of the mapping, which a file owns; the lock is held, so nobody
            // else writes.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
        }
    }

    /// Calls `with` on the bytes of each chunk of a file, until it returns false. Takes no lock
    /// and ends even if the file is changed meanwhile.
    fn each_chunk(
        &self,
        file: &FileSlot,
        mut with: impl FnMut(NonNull<u8>, usize) -> bool,
    ) -> bool {
        let mut rest = file.length.load(Ordering::Acquire).min(self.size());
        let mut at = file.first.load(Ordering::Acquire);
        while rest > 0 {
            let Some(next) = self.next.get(at as usize) else { return false };
            let here = rest.min(CHUNK);
            // SAFETY: `at` is a chunk of the mapping.
            let start = unsafe { self.memory.add(at as usize * CHUNK) };
            if !with(start, here) {
                return false;
            }
            rest -= here;
            at = next.load(Ordering::Acquire);
        }
        true
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            // SAFETY: `new` has mapped these bytes, and whoever could read them has let go of this
            // value.
            unsafe { libc::munmap(self.memory.as_ptr().cast(), self.size()) };
        }
    }
}
