//! The neutral format of the C header: an array of frames and an array of places.

#![allow(unsafe_code, reason = "reads tables that the host owns")]

use core::ffi::{CStr, c_char};

use heaptap_trace::{Location, LocationList};

use super::{
    Caller, Crossing, CrossingRule, Explained, FrameRecord, FrameRecords, FrameTable, HIGHEST_CODE,
    LOWEST_CODE, MAX_COUNT, StackReader, TableDefect,
};
use crate::sys::process_memory::ProcessMemory;

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
pub(crate) struct NeutralPlace {
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

/// A boundary with a place: it is itself a frame of the backtrace.
pub(crate) static LINK: CrossingRule = CrossingRule { offset: 8, end: 0, cross: cross_link };

/// A boundary without a place, which is not shown.
pub(crate) static HIDDEN_LINK: CrossingRule = CrossingRule { offset: 8, end: 0, cross: cross_link };

/// Both rules: a `heaptap_frame_link` {sp, return address} lies at `sp`; return
/// address 0 ends the stack.
fn cross_link(at: u64, return_address: u64, stack: &mut dyn StackReader) -> Option<Crossing> {
    let sp = stack.word(at - 8)?;
    Some(Crossing::Frame { sp, return_address, read_at: at })
}

/// A table as `heaptap_frame_table` describes it.
pub(crate) struct NeutralTable {
    frames: *const NeutralFrame,
    frame_count: usize,
    places: *const NeutralPlace,
    place_count: u32,
}

// SAFETY: the table is only read, and by the contract of `NeutralTable::new` the
// host does not change it while this object lives.
unsafe impl Send for NeutralTable {}
// SAFETY: the same contract; no method writes.
unsafe impl Sync for NeutralTable {}

impl NeutralTable {
    /// # Safety
    /// Unless NULL or misaligned, `frames` points to `frame_count` frames and
    /// `places` to `place_count` places, whose strings are NULL or NUL-terminated.
    /// All of it stays valid and unchanged while this object lives.
    pub(crate) unsafe fn new(
        frames: *const NeutralFrame,
        frame_count: usize,
        places: *const NeutralPlace,
        place_count: u32,
    ) -> NeutralTable {
        NeutralTable { frames, frame_count, places, place_count }
    }

    fn check_arrays(&self) -> Result<(), TableDefect> {
        if self.frame_count as u64 > MAX_COUNT {
            return Err(TableDefect::Count(self.frame_count as u64));
        }
        if self.frame_count > 0 && (self.frames.is_null() || !self.frames.is_aligned()) {
            return Err(TableDefect::Address(self.frames as u64));
        }
        if self.place_count > 0 && (self.places.is_null() || !self.places.is_aligned()) {
            return Err(TableDefect::Address(self.places as u64));
        }
        Ok(())
    }

    /// Every chain of inlining stays inside the table and ends.
    fn check_places(&self) -> Result<(), TableDefect> {
        for index in 0..self.place_count {
            let mut next = index;
            for step in 0..=MAX_INLINED {
                let Some(place) = self.place(next) else {
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

    fn caller(&self, frame: NeutralFrame) -> Result<Caller, TableDefect> {
        let return_address = frame.return_address as u64;
        if !(LOWEST_CODE..HIGHEST_CODE).contains(&return_address) {
            return Err(TableDefect::ReturnAddress(return_address));
        }
        if frame.place != NO_PLACE && frame.place >= self.place_count {
            return Err(TableDefect::Place(frame.place));
        }
        match (frame.size, frame.place) {
            (BOUNDARY, NO_PLACE) => Ok(Caller::Beyond(&HIDDEN_LINK)),
            (BOUNDARY, _) => Ok(Caller::Beyond(&LINK)),
            (size, _) if size > 0 && size.is_multiple_of(8) => Ok(Caller::Distance(size.into())),
            (size, _) => Err(TableDefect::FrameSize { return_address, size }),
        }
    }

    /// Only after [`Self::check_arrays`].
    fn place(&self, index: u32) -> Option<NeutralPlace> {
        if index >= self.place_count {
            return None;
        }
        // SAFETY: within the `place_count` places of the contract of `new`.
        let place = unsafe { self.places.add(index as usize) };
        // SAFETY: the same contract; `check_arrays` found the array aligned.
        Some(unsafe { *place })
    }

    /// The places of the frame at `record`, outermost function first.
    ///
    /// # Safety
    /// `record` is that of a frame which [`FrameTable::frames`] returned.
    unsafe fn places_of(&self, record: u64) -> Vec<NeutralPlace> {
        // SAFETY: the contract says that a frame of this table lies there.
        let frame = unsafe { *(record as *const NeutralFrame) };
        let mut chain = Vec::new();
        let mut next = frame.place;
        while let Some(place) = self.place(next).filter(|_| chain.len() <= MAX_INLINED) {
            chain.push(place);
            next = place.inlined_into;
        }
        chain.reverse();
        chain
    }
}

impl FrameTable for NeutralTable {
    fn frames(&self) -> Result<Vec<FrameRecord>, TableDefect> {
        self.check_arrays()?;
        self.check_places()?;
        let mut frames = Vec::with_capacity(self.frame_count);
        for index in 0..self.frame_count {
            // SAFETY: within the `frame_count` frames of the contract of `new`.
            let record = unsafe { self.frames.add(index) };
            // SAFETY: the same contract; `check_arrays` found the array aligned.
            let frame = unsafe { *record };
            frames.push(FrameRecord {
                return_address: frame.return_address as u64,
                caller: self.caller(frame)?,
                record: record as u64,
            });
        }
        Ok(frames)
    }
}

impl FrameRecords for NeutralTable {
    unsafe fn part_key(&self, _: u64, _: usize) -> Option<u64> {
        None
    }

    unsafe fn locate(
        &self,
        record: u64,
        _: Option<usize>,
        _: &ProcessMemory,
        list: &mut LocationList,
    ) -> Explained {
        // SAFETY: the contract of this function is that of `places_of`.
        for place in unsafe { self.places_of(record) } {
            list.add(Location {
                // SAFETY: NULL or a string, by the contract of `new`.
                file: unsafe { name(place.file) },
                line: place.line,
                start_char: place.start_char,
                end_char: place.end_char,
                // SAFETY: NULL or a string, by the contract of `new`.
                definition: unsafe { name(place.function) },
            });
        }
        Explained::Fully
    }
}

/// A name, or `??` if it is NULL.
///
/// # Safety
/// `name` is NULL or points to a NUL-terminated string that outlives `'a`.
unsafe fn name<'a>(name: *const c_char) -> &'a [u8] {
    if name.is_null() {
        return b"??";
    }
    // SAFETY: not NULL, so a string by this function's contract.
    unsafe { CStr::from_ptr(name) }.to_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null;

    fn frame(return_address: usize, size: u32, place: u32) -> NeutralFrame {
        NeutralFrame { return_address, size, place }
    }

    fn place(line: u32, inlined_into: u32) -> NeutralPlace {
        let (file, function) = (null(), null());
        NeutralPlace { file, function, line, start_char: 0, end_char: 0, inlined_into }
    }

    fn table(frames: &[NeutralFrame], places: &[NeutralPlace]) -> NeutralTable {
        let place_count = u32::try_from(places.len()).expect("few");
        // SAFETY: the pointers and lengths of two slices, which the tests keep.
        unsafe { NeutralTable::new(frames.as_ptr(), frames.len(), places.as_ptr(), place_count) }
    }

    #[test]
    fn places_come_outermost_first() {
        let frames = [frame(0x5000, 16, 2), frame(0x5010, BOUNDARY, NO_PLACE)];
        let places = [place(10, NO_PLACE), place(20, 0), place(30, 1)];
        let table = table(&frames, &places);
        let records = table.frames().expect("sound");
        assert!(matches!(records[0].caller, Caller::Distance(16)));
        let Caller::Beyond(rule) = records[1].caller else { panic!("a boundary") };
        assert!(std::ptr::eq(rule, &HIDDEN_LINK));
        // SAFETY: the record of a frame of this table.
        let lines = unsafe { table.places_of(records[0].record) };
        assert_eq!(lines.iter().map(|p| p.line).collect::<Vec<_>>(), [10, 20, 30]);
        // SAFETY: the record of a frame of this table.
        assert!(unsafe { table.places_of(records[1].record) }.is_empty());
    }

    #[test]
    fn each_defect_has_its_error() {
        let none: &[NeutralPlace] = &[];
        let refused =
            |frames: &[NeutralFrame], places: &[NeutralPlace]| table(frames, places).frames().err();
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
        // SAFETY: NULL is allowed, and refused before anything is read.
        let null_frames = unsafe { NeutralTable::new(null(), 1, null(), 0) };
        assert_eq!(null_frames.frames().err(), Some(TableDefect::Address(0)));
        // SAFETY: NULL is allowed, and refused before anything is read.
        let absurd = unsafe { NeutralTable::new(null(), usize::MAX, null(), 0) };
        assert_eq!(absurd.frames().err(), Some(TableDefect::Count(u64::MAX)));
    }
}
