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

use heaptap_symbols::SourceLocation;

use super::crossings::{CALLBACK, CONTEXT, FIBER};
use super::frame_descriptor::{Descriptor, OfDescriptors, RETURN_TO_C, read};
use super::version::MajorVersion;
use crate::stack::formats::{
    Caller, CrossingRule, FrameRecord, FrameTable, MAX_COUNT, TableDefect,
};
use crate::sys::process_memory::ProcessMemory;

/// The rules of the first return to C in a table, and of any other. Only
/// `caml_system.frametable` has any: in 5.3.0 the return from a callback and then
/// that from a fiber (`runtime/amd64.S`).
fn crossing_rules(version: MajorVersion) -> [&'static CrossingRule; 2] {
    match version {
        MajorVersion::Four => [&CONTEXT, &CONTEXT],
        MajorVersion::Five => [&CALLBACK, &FIBER],
    }
}

/// One module's table.
#[derive(Clone, Copy)]
pub(crate) struct OcamlTable {
    base: u64,
    version: MajorVersion,
}

impl OcamlTable {
    /// # Safety
    /// `table`, unless NULL or misaligned, points to a table of this version's
    /// layout, which stays valid and unchanged while this object lives.
    pub(crate) unsafe fn new(table: *const u8, version: MajorVersion) -> OcamlTable {
        OcamlTable { base: table as u64, version }
    }

    /// How many descriptors it has.
    pub(super) fn count(&self) -> Result<u64, TableDefect> {
        if self.base == 0 || !self.base.is_multiple_of(8) {
            return Err(TableDefect::Address(self.base));
        }
        // SAFETY: aligned and not NULL, so by the contract of `new` a table, which
        // begins with its count.
        let count = unsafe { read::<u64>(self.base) };
        if count > MAX_COUNT { Err(TableDefect::Count(count)) } else { Ok(count) }
    }

    /// Whether its first descriptor is a return to C.
    pub(super) fn begins_with_return_to_c(&self) -> Result<bool, TableDefect> {
        // SAFETY: the table has a descriptor, and this is its frame size.
        Ok(self.count()? > 0 && unsafe { read::<u16>(self.base + 16) } == RETURN_TO_C)
    }

    /// Where the table begins.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// Its descriptors, and where each of them is.
    fn descriptors(&self) -> Result<impl Iterator<Item = (u64, Descriptor)>, TableDefect> {
        let mut at = self.base + 8;
        let next = move |_| {
            // SAFETY: by its count the table has one more descriptor.
            let descriptor = unsafe { Descriptor::read(at) };
            (std::mem::replace(&mut at, descriptor.end), descriptor)
        };
        Ok((0..self.count()?).map(next))
    }

    /// Where its last descriptor ends.
    pub(super) fn end(&self) -> Result<u64, TableDefect> {
        Ok(self.descriptors()?.last().map_or(self.base + 8, |(_, last)| last.end))
    }

    /// The return addresses of its frames.
    pub(super) fn return_addresses(&self) -> Result<impl Iterator<Item = u64>, TableDefect> {
        Ok(self.descriptors()?.map(|(_, descriptor)| descriptor.return_address))
    }

    /// Emits the source locations of its frames whose return addresses are among `wanted`,
    /// which ascend. Of a frame with inlined calls, the outermost function comes first.
    pub(super) fn locate(
        &self,
        wanted: &[u64],
        memory: &ProcessMemory,
        emit: &mut dyn FnMut(u64, SourceLocation<'_>),
    ) -> Result<(), TableDefect> {
        for (_, descriptor) in self.descriptors()? {
            let address = descriptor.return_address;
            if wanted.binary_search(&address).is_ok() {
                descriptor.locate(None, self.version, memory, &mut |place| emit(address, place));
            }
        }
        Ok(())
    }
}

impl FrameTable for OcamlTable {
    fn frames(&self) -> Result<Vec<FrameRecord>, TableDefect> {
        // The count is not yet trusted, so nothing is reserved by it.
        let mut frames = Vec::new();
        let [mut rule, next_rule] = crossing_rules(self.version);
        for (record, descriptor) in self.descriptors()? {
            let caller = match descriptor.size()? {
                Some(size) => Caller::Distance(size),
                None => Caller::Beyond(std::mem::replace(&mut rule, next_rule)),
            };
            let return_address = descriptor.return_address;
            frames.push(FrameRecord { return_address, caller, record });
        }
        Ok(frames)
    }
}

impl OfDescriptors for OcamlTable {
    fn version(&self) -> MajorVersion {
        self.version
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::frame_descriptor::{HAS_ALLOCATIONS, HAS_DEBUG};
    use super::*;

    /// Builds tables in the layout above.
    pub(crate) struct TableBuilder {
        bytes: Vec<u8>,
        count: u64,
    }

    impl TableBuilder {
        pub(crate) fn new() -> Self {
            Self { bytes: vec![0; 8], count: 0 }
        }

        pub(crate) fn frame(
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

        pub(crate) fn return_to_c(&mut self, return_address: u64) {
            self.bytes.extend(return_address.to_le_bytes());
            self.bytes.extend([0xFF, 0xFF, 0, 0]);
            self.finish_one();
        }

        fn finish_one(&mut self) {
            self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
            self.count += 1;
        }

        /// The table as words, so that it is aligned.
        pub(crate) fn build(mut self) -> Vec<u64> {
            self.bytes[..8].copy_from_slice(&self.count.to_le_bytes());
            let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
            self.bytes.chunks_exact(8).map(word).collect()
        }
    }

    pub(crate) fn table(words: &[u64], version: MajorVersion) -> OcamlTable {
        // SAFETY: built in these tests, or refused before its end.
        unsafe { OcamlTable::new(words.as_ptr().cast(), version) }
    }

    fn parsed(words: &[u64]) -> Result<Vec<FrameRecord>, TableDefect> {
        table(words, MajorVersion::Five).frames()
    }

    /// The size of a frame, or how many rules come before its own.
    fn shape(caller: Caller) -> Result<u64, usize> {
        match caller {
            Caller::Distance(size) => Ok(size),
            Caller::Beyond(rule) => {
                let rules = [&CONTEXT, &CALLBACK, &FIBER];
                Err(rules.iter().position(|known| std::ptr::eq(*known, rule)).expect("known"))
            }
        }
    }

    #[test]
    fn every_shape_of_descriptor_is_stepped_over() {
        let mut words = TableBuilder::new();
        words.frame(0x5000, 16, &[], None, &[]);
        words.frame(0x5001, 24, &[1, 2, 3], None, &[100]);
        words.return_to_c(0x5002);
        words.frame(0x5003, 32, &[7], Some(&[1, 2, 3]), &[0, 40, 80]);
        words.frame(0x5004, 40, &[7, 9], Some(&[4]), &[]);
        words.frame(0x5005, 48, &[], Some(&[]), &[]);
        words.frame(0x5006, 8, &[], None, &[44]);
        words.return_to_c(0x5007);
        let words = words.build();
        let frames = parsed(&words).expect("sound");
        let shapes: Vec<_> = frames.iter().map(|f| (f.return_address, shape(f.caller))).collect();
        let sizes = [Ok(16), Ok(24), Err(1), Ok(32), Ok(40), Ok(48), Ok(8), Err(2)];
        let expected: Vec<_> = (0x5000..).zip(sizes).collect();
        assert_eq!(shapes, expected);
        let four = table(&words, MajorVersion::Four).frames().expect("sound");
        assert_eq!([2, 7].map(|index| shape(four[index].caller)), [Err(0), Err(0)]);
        let end = words.as_ptr_range().end as u64;
        assert_eq!(table(&words, MajorVersion::Four).end(), Ok(end));

        let info = |index: usize, part| {
            // SAFETY: the record of a frame of that table.
            unsafe { Descriptor::read(frames[index].record) }.debug_info(part)
        };
        assert_eq!(info(0, None), None);
        // 12 bytes of head, 6 of live slots, aligned to 20.
        assert_eq!(info(1, None), Some(frames[1].record + 20 + 100));
        assert_eq!(info(1, Some(3)), Some(frames[1].record + 20 + 100));
        assert_eq!(info(2, None), None);
        // 12 of head, 2 of live slots, 4 of lengths, aligned to 20.
        assert_eq!(info(3, Some(0)), None);
        assert_eq!(info(3, Some(2)), Some(frames[3].record + 28 + 80));
        assert_eq!(info(3, Some(3)), None);
        assert_eq!(info(3, None), Some(frames[3].record + 24 + 40));
        assert_eq!(info(4, Some(0)), None);
        assert_eq!(info(6, None), Some(frames[6].record + 12 + 44));
    }

    #[test]
    fn each_defect_has_its_error() {
        assert_eq!(parsed(&[u64::MAX]).err(), Some(TableDefect::Count(u64::MAX)));
        // SAFETY: misaligned is allowed, and refused before anything is read.
        let misaligned = unsafe { OcamlTable::new(4 as *const u8, MajorVersion::Four) };
        assert_eq!(misaligned.frames().err(), Some(TableDefect::Address(4)));
        for (return_address, size, defect) in [
            (0, 16, TableDefect::ReturnAddress(0)),
            (0x5000, 12, TableDefect::FrameSize { return_address: 0x5000, size: 12 }),
            (0x5000, 0, TableDefect::FrameSize { return_address: 0x5000, size: 0 }),
        ] {
            let mut words = TableBuilder::new();
            words.frame(0x6000, 16, &[], None, &[]);
            words.frame(return_address, size, &[], None, &[]);
            assert_eq!(parsed(&words.build()).err(), Some(defect));
        }
        // A return to C with live slots is none (`num_live == 0`,
        // runtime/frame_descriptors.c, 5.3.0).
        let words = [1, 0x5000, 0x0001_FFFF, 0];
        assert!(matches!(parsed(&words).err(), Some(TableDefect::FrameSize { .. })));
    }
}
