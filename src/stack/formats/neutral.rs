//! The neutral format: an array of frames, and an array of places.

#![allow(unsafe_code, reason = "reads tables that the host owns")]

use core::ffi::c_char;

use super::super::table::TableDefect;
use super::{
    CROSS_NEUTRAL, CROSS_NEUTRAL_HIDDEN, Entry, HIGHEST_CODE, LOWEST_CODE, MAX_COUNT, Step,
};

/// `HEAPTAP_FRAME_BOUNDARY`.
pub(crate) const BOUNDARY: u32 = u32::MAX;
/// `HEAPTAP_NO_PLACE`.
pub(crate) const NO_PLACE: u32 = u32::MAX;

/// How many places one return address can stand for; a longer chain of
/// inlining is a loop.
const MAX_INLINED: usize = 64;

/// `heaptap_frame`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeutralFrame {
    /// The address a call returns to.
    pub return_address: usize,
    /// In bytes, a multiple of 8, or [`BOUNDARY`].
    pub size: u32,
    /// An index into the places, or [`NO_PLACE`].
    pub place: u32,
}

/// `heaptap_place`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// NUL-terminated, may be NULL.
    pub file: *const c_char,
    /// NUL-terminated, may be NULL.
    pub function: *const c_char,
    pub line: u32,
    pub start_char: u32,
    pub end_char: u32,
    /// An index into the places, or [`NO_PLACE`].
    pub inlined_into: u32,
}

/// Where the places of one table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    base: *const Place,
    count: u32,
}

// SAFETY: the host promises that places stay valid and unchanged; they are only
// ever read.
unsafe impl Send for Places {}

/// Reads a table.
///
/// # Safety
/// `frames` points to `count` frames and `places` to `place_count` places if
/// they are aligned, not NULL, and their counts not 0.
pub(in crate::stack) unsafe fn parse(
    frames: *const NeutralFrame,
    count: usize,
    places: *const Place,
    place_count: u32,
) -> Result<(Vec<Entry>, Places), TableDefect> {
    if count as u64 > MAX_COUNT {
        return Err(TableDefect::Count(count as u64));
    }
    if count > 0 && (frames.is_null() || !frames.is_aligned()) {
        return Err(TableDefect::Address(frames as u64));
    }
    if place_count > 0 && (places.is_null() || !places.is_aligned()) {
        return Err(TableDefect::Address(places as u64));
    }
    let places = Places { base: places, count: place_count };
    places.check()?;
    let mut entries = Vec::with_capacity(count);
    for index in 0..count {
        // SAFETY: within the `count` frames of the caller's promise.
        let record = unsafe { frames.add(index) };
        // SAFETY: aligned as its base is, and within the table.
        let frame = unsafe { *record };
        entries.push(Entry {
            return_address: frame.return_address as u64,
            step: step(frame, places.count)?,
            record: record as u64,
        });
    }
    Ok((entries, places))
}

fn step(frame: NeutralFrame, places: u32) -> Result<Step, TableDefect> {
    let return_address = frame.return_address as u64;
    if !(LOWEST_CODE..HIGHEST_CODE).contains(&return_address) {
        return Err(TableDefect::ReturnAddress(return_address));
    }
    if frame.place != NO_PLACE && frame.place >= places {
        return Err(TableDefect::Place(frame.place));
    }
    match (frame.size, frame.place) {
        (BOUNDARY, NO_PLACE) => Ok(CROSS_NEUTRAL_HIDDEN),
        (BOUNDARY, _) => Ok(CROSS_NEUTRAL),
        (size, _) if size > 0 && size.is_multiple_of(8) => Ok(u64::from(size)),
        (size, _) => Err(TableDefect::FrameSize { return_address, size }),
    }
}

impl Places {
    fn get(&self, index: u32) -> Option<Place> {
        if index >= self.count {
            return None;
        }
        // SAFETY: within the places of the promise made to `parse`.
        let place = unsafe { self.base.add(index as usize) };
        // SAFETY: as above; alignment was checked by `parse`.
        Some(unsafe { *place })
    }

    /// Every chain of inlining stays inside the table and ends.
    fn check(&self) -> Result<(), TableDefect> {
        for index in 0..self.count {
            let mut next = index;
            for step in 0..=MAX_INLINED {
                let Some(place) = self.get(next) else {
                    return Err(TableDefect::Place(next));
                };
                next = place.inlined_into;
                if next == NO_PLACE {
                    break;
                }
                if step == MAX_INLINED {
                    return Err(TableDefect::InliningLoop(index));
                }
            }
        }
        Ok(())
    }

    /// The places of the frame at `record`, outermost function first.
    ///
    /// # Safety
    /// `record` is that of an entry which [`parse`] returned with these places.
    pub(in crate::stack) unsafe fn of(&self, record: u64) -> Vec<Place> {
        // SAFETY: a frame of the table, by the caller's promise.
        let frame = unsafe { *(record as *const NeutralFrame) };
        let mut chain = Vec::new();
        let mut next = frame.place;
        while let Some(place) = self.get(next).filter(|_| chain.len() <= MAX_INLINED) {
            chain.push(place);
            next = place.inlined_into;
        }
        chain.reverse();
        chain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null;

    fn frame(return_address: usize, size: u32, place: u32) -> NeutralFrame {
        NeutralFrame { return_address, size, place }
    }

    fn place(line: u32, inlined_into: u32) -> Place {
        Place { file: null(), function: null(), line, start_char: 0, end_char: 0, inlined_into }
    }

    fn parsed(
        frames: &[NeutralFrame],
        places: &[Place],
    ) -> Result<(Vec<Entry>, Places), TableDefect> {
        let count = u32::try_from(places.len()).expect("few");
        // SAFETY: both slices are as long as said.
        unsafe { parse(frames.as_ptr(), frames.len(), places.as_ptr(), count) }
    }

    #[test]
    fn places_come_outermost_first() {
        let frames = [frame(0x5000, 16, 2), frame(0x5010, BOUNDARY, NO_PLACE)];
        let places = [place(10, NO_PLACE), place(20, 0), place(30, 1)];
        let (entries, places) = parsed(&frames, &places).expect("sound");
        assert_eq!(entries[0].step, 16);
        assert_eq!(entries[1].step, CROSS_NEUTRAL_HIDDEN);
        // SAFETY: an entry of that table.
        let lines = unsafe { places.of(entries[0].record) };
        assert_eq!(lines.iter().map(|p| p.line).collect::<Vec<_>>(), [10, 20, 30]);
        // SAFETY: as above.
        assert!(unsafe { places.of(entries[1].record) }.is_empty());
    }

    #[test]
    fn each_defect_has_its_error() {
        let none: &[Place] = &[];
        let refused = |frames: &[NeutralFrame], places: &[Place]| parsed(frames, places).err();
        assert_eq!(refused(&[frame(0, 16, NO_PLACE)], none), Some(TableDefect::ReturnAddress(0)));
        assert_eq!(
            refused(&[frame(0x5000, 12, NO_PLACE)], none),
            Some(TableDefect::FrameSize { return_address: 0x5000, size: 12 })
        );
        assert_eq!(
            refused(&[frame(0x5000, 0, NO_PLACE)], none),
            Some(TableDefect::FrameSize { return_address: 0x5000, size: 0 })
        );
        assert_eq!(refused(&[frame(0x5000, 8, 0)], none), Some(TableDefect::Place(0)));
        assert_eq!(refused(&[], &[place(1, 7)]), Some(TableDefect::Place(7)));
        assert_eq!(refused(&[], &[place(1, 1), place(1, 0)]), Some(TableDefect::InliningLoop(0)));
        // SAFETY: refused before anything is read.
        let null_frames = unsafe { parse(null(), 1, null(), 0) };
        assert_eq!(null_frames.err(), Some(TableDefect::Address(0)));
        // SAFETY: as above.
        let absurd = unsafe { parse(null(), usize::MAX, null(), 0) };
        assert_eq!(absurd.err(), Some(TableDefect::Count(u64::MAX)));
    }
}
