//! A file of a recording, as its writer sees it.

use core::sync::atomic::Ordering;
use std::io;
use std::sync::Arc;

use super::{CHUNK, FileSlot, Kind, NO_CHUNK, Recording};

/// An open file of a part. It is gone when its part is dropped.
pub(crate) struct MemoryFile {
    recording: Arc<Recording>,
    part: u64,
    kind: Kind,
    written: u64,
}

impl MemoryFile {
    /// A file of this part, which is empty.
    pub(crate) fn new(recording: Arc<Recording>, part: u64, kind: Kind) -> MemoryFile {
        MemoryFile { recording, part, kind, written: 0 }
    }

    /// Adds a packet, all of it or nothing.
    pub(crate) fn write(&mut self, packet: &[u8]) -> io::Result<usize> {
        self.recording.append(self.part, self.kind, packet)?;
        self.written += packet.len() as u64;
        Ok(packet.len())
    }

    /// Bytes so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Empties it.
    pub(crate) fn restart(&mut self) {
        let recording = &self.recording;
        let mut kept = recording.kept();
        let kept = &mut *kept;
        if let Some(part) = kept.parts.iter_mut().find(|part| part.number == self.part) {
            part.tails[self.kind as usize] = (NO_CHUNK, 0);
            if let Some(slot) = recording.slots.get(part.slot) {
                recording.empty(&mut kept.free, &slot.files[self.kind as usize]);
            }
        }
        self.written = 0;
    }

    /// Changes bytes that were written.
    pub(crate) fn overwrite(&mut self, offset: u64, bytes: &[u8]) {
        if offset.saturating_add(bytes.len() as u64) > self.written {
            return;
        }
        for (at, &byte) in (offset as usize..).zip(bytes) {
            self.with_file(|recording, file| {
                if let Some(chunk) = recording.chunk_at(file, at) {
                    recording.copy_in(chunk, at % CHUNK, &[byte]);
                }
            });
        }
    }

    /// Reads what was written from an offset on, and returns how many bytes that were.
    pub(crate) fn read_at(&self, room: &mut [u8], offset: u64) -> usize {
        let contents = self.contents();
        let rest = usize::try_from(offset).ok().and_then(|offset| contents.get(offset..));
        let rest = rest.unwrap_or_default();
        let length = rest.len().min(room.len());
        room.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        length
    }

    /// Everything that was written.
    pub(crate) fn contents(&self) -> Vec<u8> {
        let mut contents = Vec::with_capacity(self.written as usize);
        self.with_file(|recording, file| {
            recording.each_chunk(file, |start, length| {
                // SAFETY: so many bytes of the chunk are written, and the lock is held.
                contents.extend_from_slice(unsafe {
                    core::slice::from_raw_parts(start.as_ptr(), length)
                });
                true
            });
        });
        contents
    }

    /// Runs `with` on the file under the lock, if its part is there.
    fn with_file(&self, with: impl FnOnce(&Recording, &FileSlot)) {
        let kept = self.recording.kept();
        let part = kept.parts.iter().find(|part| part.number == self.part);
        if let Some(slot) = part.and_then(|part| self.recording.slots.get(part.slot)) {
            with(&self.recording, &slot.files[self.kind as usize]);
        }
    }
}

impl Recording {
    /// The chunk that has this byte of a file.
    fn chunk_at(&self, file: &FileSlot, byte: usize) -> Option<u32> {
        let mut at = file.first.load(Ordering::Relaxed);
        for _ in 0..byte / CHUNK {
            at = self.next.get(at as usize)?.load(Ordering::Relaxed);
        }
        (at != NO_CHUNK).then_some(at)
    }
}
