//! Space in the program for code and state: the zeros between the end of a segment and the end of
//! its last page, which nothing refers to.
//!
//! Only of files that are never unloaded: the program, its runtime, and glibc. Not of the
//! loader, which gives out the end of its own `.bss`
//! (`__minimal_malloc`, `elf/dl-minimal-malloc.c`, glibc 2.36).

use crate::elf::{Image, Segment};
use crate::images::Images;
use crate::maps::Maps;
use crate::memory::{Memory, Writable};

const PAGE: u64 = 4096;

/// Where something could be put, the best first.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Behind code.
    pub(crate) code: Vec<Writable>,
    /// Behind variables.
    pub(crate) state: Vec<Writable>,
}

impl Room {
    pub(crate) fn find(memory: &Memory, maps: &Maps, images: &Images) -> Room {
        let program = images.program();
        let runtime = images.defining(memory, "caml_minor_gc_begin_hook");
        let libraries = [&b"libm.so.6"[..], b"libc.so.6"].map(|name| images.library(name));
        let mut room = Room::default();
        for image in [program, runtime].into_iter().chain(libraries).flatten() {
            for (index, segment) in image.segments.iter().enumerate() {
                let Some(tail) = tail(image, index) else { continue };
                if segment.executable && !segment.writable && is_text(maps, tail) {
                    push_new(&mut room.code, tail);
                } else if segment.writable && !segment.executable && is_data(maps, tail) {
                    push_new(&mut room.state, tail);
                }
            }
        }
        room
    }

    /// The range of code space that this range begins.
    pub(crate) fn code_at(&self, start: u64, size: u64) -> Option<Writable> {
        within(&self.code, start, size)
    }

    /// The range of state space that this range begins.
    pub(crate) fn state_at(&self, start: u64, size: u64) -> Option<Writable> {
        within(&self.state, start, size)
    }
}

fn within(tails: &[Writable], start: u64, size: u64) -> Option<Writable> {
    let tail = tails.iter().find(|tail| tail.start == start && size <= tail.size)?;
    Some(Writable { size, ..*tail })
}

fn push_new(tails: &mut Vec<Writable>, tail: Writable) {
    if !tails.contains(&tail) {
        tails.push(tail);
    }
}

/// From the end of a segment to the end of its page, if no other segment is on that page.
fn tail(image: &Image, index: usize) -> Option<Writable> {
    let segment = image.segments.get(index)?;
    let start = segment.end.checked_next_multiple_of(16)?;
    let end = segment.end.checked_next_multiple_of(PAGE)?;
    let page = end.checked_sub(PAGE)?;
    let is_alone = image.segments.iter().enumerate().all(|(other, &Segment { start, end, .. })| {
        other == index || end <= page || start >= page + PAGE
    });
    (is_alone && start < end).then(|| Writable { start, size: end - start })
}

/// Whether it is a private copy of a file's code.
fn is_text(maps: &Maps, tail: Writable) -> bool {
    maps.around(tail.start, tail.size).is_some_and(|mapping| {
        mapping.executable && !mapping.writable && mapping.private && mapping.file.is_some()
    })
}

/// Whether it is the program's own, and not already its heap.
fn is_data(maps: &Maps, tail: Writable) -> bool {
    maps.is_variable(tail.start, tail.size)
        && maps.at(tail.start).is_some_and(|mapping| !mapping.path.starts_with(b"["))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(start: u64, end: u64) -> Segment {
        Segment { start, end, writable: false, executable: true }
    }

    fn tail_of(segments: &[Segment]) -> Option<(u64, u64)> {
        let image = Image::of_segments(segments);
        tail(&image, 0).map(|tail| (tail.start, tail.size))
    }

    #[test]
    fn what_is_behind_a_segment_is_free() {
        assert_eq!(tail_of(&[segment(0x1000, 0x2345)]), Some((0x2350, 0xcb0)));
        assert_eq!(tail_of(&[segment(0x1000, 0x2000)]), None, "its page is full");
        assert_eq!(tail_of(&[segment(0x1000, 0x1fff)]), None, "but for one byte");
        assert_eq!(tail_of(&[segment(0x1000, u64::MAX)]), None);
    }

    #[test]
    fn not_if_another_segment_is_on_that_page() {
        let first = segment(0x1000, 0x2345);
        assert_eq!(tail_of(&[first, segment(0x2800, 0x3000)]), None);
        assert_eq!(tail_of(&[first, segment(0x2000, 0x2100)]), None);
        assert!(tail_of(&[first, segment(0x3000, 0x4000)]).is_some());
        assert!(tail_of(&[first, segment(0x800, 0x2000)]).is_some());
    }

    #[test]
    fn only_a_place_that_was_found_is_written() {
        let room = Room { code: vec![Writable { start: 0x2350, size: 0xcb0 }], state: vec![] };
        assert_eq!(room.code_at(0x2350, 16), Some(Writable { start: 0x2350, size: 16 }));
        assert_eq!(room.code_at(0x2350, 0xcb1), None);
        assert_eq!(room.code_at(0x2360, 16), None);
        assert_eq!(room.state_at(0x2350, 16), None);
    }
}
