//! OCaml's frame tables: what `caml_frametable[i]` points to.
//!
//! The same layout in OCaml 4.14.1 (`frame_descr` in `runtime/caml/stack.h`,
//! `next_frame_descr` in `runtime/roots_nat.c`) and 5.3.0
//! (`runtime/caml/frame_descriptors.h`, `runtime/frame_descriptors.c`):
//!
//! ```text
//! i64 count, then `count` times, each aligned to 8:
//!   u64 return address
//!   u16 frame size | 1 if debug info follows | 2 if allocation lengths follow,
//!       or 0xFFFF: the return from a callback to C
//!   u16 number of live slots, then a u16 for each
//!   allocation lengths: u8 count, then a u8 for each
//!   debug info, aligned to 4: u32 each, relative to its own address, 0 = none;
//!       one for each allocation length, or one
//! ```

#![allow(unsafe_code, reason = "reads tables that the host owns")]

use super::super::table::TableDefect;
use super::{Entry, LOWEST_CODE, MAX_COUNT, Step};

const RETURN_TO_C: u16 = 0xFFFF;
const HAS_DEBUG: u16 = 1;
const HAS_ALLOCATIONS: u16 = 2;
const FLAGS: u16 = 3;

/// One descriptor, read.
struct Descriptor {
    return_address: u64,
    frame: u16,
    live: u16,
    /// How many debug-info offsets there are, and where the first lies.
    offsets: usize,
    offsets_at: u64,
    /// Where the next descriptor begins.
    end: u64,
}

/// # Safety
/// The bytes at `address` must be readable; any alignment.
unsafe fn read<T: Copy>(address: u64) -> T {
    // SAFETY: the caller's promise.
    unsafe { core::ptr::read_unaligned(address as *const T) }
}

impl Descriptor {
    /// # Safety
    /// A descriptor lies at `at`.
    unsafe fn read(at: u64) -> Self {
        // SAFETY: every descriptor has these three fields.
        let return_address = unsafe { read::<u64>(at) };
        // SAFETY: as above.
        let frame = unsafe { read::<u16>(at + 8) };
        // SAFETY: as above.
        let live = unsafe { read::<u16>(at + 10) };
        let mut end = at + 12 + 2 * u64::from(live);
        let (mut offsets, mut offsets_at) = (0, 0);
        if frame != RETURN_TO_C {
            let mut parts = 1;
            if frame & HAS_ALLOCATIONS != 0 {
                // SAFETY: the flag says that a count follows the live slots.
                parts = u64::from(unsafe { read::<u8>(end) });
                end += 1 + parts;
            }
            if frame & HAS_DEBUG != 0 {
                offsets_at = end.next_multiple_of(4);
                offsets = parts as usize;
                end = offsets_at + 4 * parts;
            }
        }
        let end = end.next_multiple_of(8);
        Self { return_address, frame, live, offsets, offsets_at, end }
    }

    fn step(&self, crossing: Step) -> Result<Step, TableDefect> {
        if self.return_address < LOWEST_CODE {
            return Err(TableDefect::ReturnAddress(self.return_address));
        }
        if self.frame == RETURN_TO_C && self.live == 0 {
            return Ok(crossing);
        }
        let size = self.frame & !FLAGS;
        if self.frame == RETURN_TO_C || size == 0 || !size.is_multiple_of(8) {
            let (return_address, size) = (self.return_address, u32::from(self.frame));
            return Err(TableDefect::FrameSize { return_address, size });
        }
        Ok(u64::from(size))
    }
}

/// What the beginning of a table says.
pub(in crate::stack) struct Head {
    pub(in crate::stack) count: u64,
    pub(in crate::stack) begins_with_crossing: bool,
}

/// Reads the beginning of a table.
///
/// # Safety
/// As for [`parse`].
pub(in crate::stack) unsafe fn head(table: *const u8) -> Result<Head, TableDefect> {
    let base = table as u64;
    if base == 0 || !base.is_multiple_of(8) {
        return Err(TableDefect::Address(base));
    }
    // SAFETY: aligned, and a table begins with its count.
    let count = unsafe { read::<u64>(base) };
    if count > MAX_COUNT {
        return Err(TableDefect::Count(count));
    }
    // SAFETY: if there is a descriptor, it has this field.
    let begins_with_crossing = count > 0 && unsafe { read::<u16>(base + 16) } == RETURN_TO_C;
    Ok(Head { count, begins_with_crossing })
}

/// Where the last descriptor of a table ends.
///
/// # Safety
/// As for [`parse`].
pub(in crate::stack) unsafe fn end(table: *const u8) -> Result<u64, TableDefect> {
    // SAFETY: the caller's promise.
    let Head { count, .. } = unsafe { head(table) }?;
    // SAFETY: the table has so many descriptors.
    Ok((0..count).fold(table as u64 + 8, |at, _| unsafe { Descriptor::read(at) }.end))
}

/// One descriptor; `None` if it is a crossing, or none at all.
///
/// # Safety
/// A descriptor lies at `record`.
pub(in crate::stack) unsafe fn entry(record: u64) -> Option<Entry> {
    // SAFETY: the caller's promise.
    let descriptor = unsafe { Descriptor::read(record) };
    let step = descriptor.step(0).ok().filter(|&step| step != 0)?;
    Some(Entry { return_address: descriptor.return_address, step, record })
}

/// Reads a table. Its first return to C crosses by the first of `crossings`, any
/// other by the second: only `caml_system.frametable` has any, in 5.3.0 the
/// return from a callback and then that from a fiber (`runtime/amd64.S`).
///
/// # Safety
/// `table`, unless NULL or misaligned, points to a table of this layout.
pub(in crate::stack) unsafe fn parse(
    table: *const u8,
    crossings: [Step; 2],
) -> Result<Vec<Entry>, TableDefect> {
    // SAFETY: the caller's promise.
    let Head { count, .. } = unsafe { head(table) }?;
    // The count is not yet trusted, so nothing is reserved by it.
    let mut entries = Vec::new();
    let mut record = table as u64 + 8;
    let [mut crossing, next_crossing] = crossings;
    for _ in 0..count {
        // SAFETY: the table has one more descriptor, by its count.
        let descriptor = unsafe { Descriptor::read(record) };
        let step = descriptor.step(crossing)?;
        if step == crossing {
            crossing = next_crossing;
        }
        entries.push(Entry { return_address: descriptor.return_address, step, record });
        record = descriptor.end;
    }
    Ok(entries)
}

/// The address of the debug info of the descriptor at `record`: of the
/// allocated part `part`, or else the first there is, as `debuginfo_extract`
/// in `runtime/backtrace_nat.c` (4.14.1, 5.3.0) has it.
///
/// # Safety
/// `record` is that of an entry which [`parse`] returned.
pub(in crate::stack) unsafe fn debug_info(record: u64, part: Option<usize>) -> Option<u64> {
    // SAFETY: the caller's promise.
    let descriptor = unsafe { Descriptor::read(record) };
    let info = |index: usize| {
        let at = descriptor.offsets_at + 4 * index as u64;
        // SAFETY: one of the descriptor's own offsets.
        let offset = unsafe { read::<u32>(at) };
        (offset != 0).then(|| at + u64::from(offset))
    };
    let has_parts = descriptor.frame & HAS_ALLOCATIONS != 0;
    match part.filter(|_| has_parts) {
        Some(index) if index < descriptor.offsets => info(index),
        Some(_) => None,
        None => (0..descriptor.offsets).find_map(info),
    }
}

#[cfg(test)]
pub(in crate::stack) mod tests {
    use super::super::{CROSS_OCAML4, CROSS_OCAML5_FIBER};
    use super::*;

    /// Builds tables in the layout above.
    pub(in crate::stack) struct TableBuilder {
        bytes: Vec<u8>,
        count: u64,
    }

    impl TableBuilder {
        pub(in crate::stack) fn new() -> Self {
            Self { bytes: vec![0; 8], count: 0 }
        }

        pub(in crate::stack) fn frame(
            &mut self,
            return_address: u64,
            size: u16,
            live: &[u16],
            lengths: Option<&[u8]>,
            offsets: &[u32],
        ) {
            let debug = if offsets.is_empty() { 0 } else { HAS_DEBUG };
            let allocations = if lengths.is_some() { HAS_ALLOCATIONS } else { 0 };
            self.bytes.extend(return_address.to_le_bytes());
            self.bytes.extend((size | debug | allocations).to_le_bytes());
            self.bytes.extend((live.len() as u16).to_le_bytes());
            self.bytes.extend(live.iter().flat_map(|slot| slot.to_le_bytes()));
            if let Some(lengths) = lengths {
                self.bytes.push(lengths.len() as u8);
                self.bytes.extend(lengths);
            }
            if !offsets.is_empty() {
                self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
                self.bytes.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
            }
            self.finish_one();
        }

        pub(in crate::stack) fn return_to_c(&mut self, return_address: u64) {
            self.bytes.extend(return_address.to_le_bytes());
            self.bytes.extend([0xFF, 0xFF, 0, 0]);
            self.finish_one();
        }

        fn finish_one(&mut self) {
            self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
            self.count += 1;
        }

        /// The table as words, so that it is aligned.
        pub(in crate::stack) fn build(mut self) -> Vec<u64> {
            self.bytes[..8].copy_from_slice(&self.count.to_le_bytes());
            let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
            self.bytes.chunks_exact(8).map(word).collect()
        }
    }

    fn parsed(table: &[u64]) -> Result<Vec<Entry>, TableDefect> {
        // SAFETY: built above, or refused before its end.
        unsafe { parse(table.as_ptr().cast(), [CROSS_OCAML4, CROSS_OCAML5_FIBER]) }
    }

    #[test]
    fn every_shape_of_descriptor_is_stepped_over() {
        let mut table = TableBuilder::new();
        table.frame(0x5000, 16, &[], None, &[]);
        table.frame(0x5001, 24, &[1, 2, 3], None, &[100]);
        table.return_to_c(0x5002);
        table.frame(0x5003, 32, &[7], Some(&[1, 2, 3]), &[0, 40, 80]);
        table.frame(0x5004, 40, &[7, 9], Some(&[4]), &[]);
        table.frame(0x5005, 48, &[], Some(&[]), &[]);
        table.frame(0x5006, 8, &[], None, &[44]);
        table.return_to_c(0x5007);
        let table = table.build();
        let entries = parsed(&table).expect("sound");
        let steps: Vec<_> = entries.iter().map(|e| (e.return_address, e.step)).collect();
        let sizes = [16, 24, CROSS_OCAML4, 32, 40, 48, 8, CROSS_OCAML5_FIBER];
        let expected: Vec<_> = (0x5000..).zip(sizes).collect();
        assert_eq!(steps, expected);

        // SAFETY: an entry of that table, here and below.
        let info = |index: usize, part| unsafe { debug_info(entries[index].record, part) };
        assert_eq!(info(0, None), None);
        // 12 bytes of head, 6 of live slots, aligned to 20.
        assert_eq!(info(1, None), Some(entries[1].record + 20 + 100));
        assert_eq!(info(1, Some(3)), Some(entries[1].record + 20 + 100));
        assert_eq!(info(2, None), None);
        // 12 of head, 2 of live slots, 4 of lengths, aligned to 20.
        assert_eq!(info(3, Some(0)), None);
        assert_eq!(info(3, Some(2)), Some(entries[3].record + 28 + 80));
        assert_eq!(info(3, Some(3)), None);
        assert_eq!(info(3, None), Some(entries[3].record + 24 + 40));
        assert_eq!(info(4, Some(0)), None);
        assert_eq!(info(6, None), Some(entries[6].record + 12 + 44));
    }

    #[test]
    fn each_defect_has_its_error() {
        assert_eq!(parsed(&[u64::MAX]).err(), Some(TableDefect::Count(u64::MAX)));
        // SAFETY: refused before anything is read.
        let misaligned = unsafe { parse(4 as *const u8, [CROSS_OCAML4; 2]) };
        assert_eq!(misaligned.err(), Some(TableDefect::Address(4)));
        for (return_address, size, defect) in [
            (0, 16, TableDefect::ReturnAddress(0)),
            (0x5000, 12, TableDefect::FrameSize { return_address: 0x5000, size: 12 }),
            (0x5000, 0, TableDefect::FrameSize { return_address: 0x5000, size: 0 }),
        ] {
            let mut table = TableBuilder::new();
            table.frame(0x6000, 16, &[], None, &[]);
            table.frame(return_address, size, &[], None, &[]);
            assert_eq!(parsed(&table.build()).err(), Some(defect));
        }
        // A return to C with live slots is none (`num_live == 0`,
        // runtime/frame_descriptors.c, 5.3.0).
        let table = [1, 0x5000, 0x0001_FFFF, 0];
        assert!(matches!(parsed(&table).err(), Some(TableDefect::FrameSize { .. })));
    }
}
