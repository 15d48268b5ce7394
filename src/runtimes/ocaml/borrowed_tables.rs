//! The frame tables of a running OCaml program, found through the runtime's own index.
//!
//! Nothing is copied at the start: a program may have a hundred thousand frames, of
//! which a trace meets few.

#![allow(unsafe_code, reason = "reads the runtime's frame descriptors")]

use super::frame_descriptor::{OfDescriptors, plain_frame};
use super::frame_table::OcamlTable;
use super::version::MajorVersion;
use crate::stack::formats::{FrameIndex, IndexedFrame, TableDefect};

/// Tables, and `find`: where the runtime has the descriptor of a return address, 0 if
/// it has none.
pub(super) struct BorrowedTables<F> {
    find: F,
    version: MajorVersion,
    /// How many descriptors the tables have.
    count: u64,
    /// The descriptors lie between these, the second exclusive. What the runtime has
    /// elsewhere it may free.
    first: u64,
    end: u64,
}

impl<F: Fn(u64) -> u64 + Send + Sync> BorrowedTables<F> {
    /// `None` if there are no tables.
    ///
    /// # Safety
    /// Where `find` says that a descriptor is, and that is in one of these tables,
    /// there is one. `find` may be called inside hooks.
    pub(super) unsafe fn new(
        tables: impl Iterator<Item = OcamlTable> + Clone,
        version: MajorVersion,
        find: F,
    ) -> Result<Option<Self>, TableDefect> {
        let mut count = 0;
        for table in tables.clone() {
            count += table.count()?;
        }
        let lowest = tables.clone().min_by_key(OcamlTable::base);
        let highest = tables.max_by_key(OcamlTable::base);
        let (Some(lowest), Some(highest)) = (lowest, highest) else { return Ok(None) };
        let (first, end) = (lowest.base(), highest.end()?);
        Ok(Some(Self { find, version, count, first, end }))
    }
}

impl<F: Send + Sync> OfDescriptors for BorrowedTables<F> {
    fn version(&self) -> MajorVersion {
        self.version
    }
}

impl<F: Fn(u64) -> u64 + Send + Sync> FrameIndex for BorrowedTables<F> {
    fn capacity(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }

    fn find(&self, return_address: u64) -> Option<IndexedFrame> {
        let record = (self.find)(return_address);
        if !(self.first..self.end).contains(&record) {
            return None;
        }
        // SAFETY: within the tables, so a descriptor by the contract of `new`.
        let (found, size) = unsafe { plain_frame(record) }?;
        (found == return_address).then_some(IndexedFrame { size, record })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use heaptap_trace::LocationList;

    use super::super::crossings::{CALLBACK, CONTEXT, FIBER};
    use super::super::frame_table::tests::{TableBuilder, table};
    use super::*;
    use crate::stack::FrameTables;
    use crate::stack::formats::{Caller, CrossingRule};

    /// Tables at ascending addresses in one piece of memory, as in a program.
    fn in_one_piece(tables: &[Vec<u64>], version: MajorVersion) -> (Vec<u64>, Vec<OcamlTable>) {
        let starts: Vec<usize> = tables
            .iter()
            .scan(0, |at, table| Some(std::mem::replace(at, *at + table.len())))
            .collect();
        let words = tables.concat();
        let tables = starts.iter().map(|&start| table(&words[start..], version)).collect();
        (words, tables)
    }

    fn crosses_by(tables: &FrameTables, return_address: u64, rule: &CrossingRule) -> bool {
        let caller = tables.caller(return_address);
        matches!(caller, Some(Caller::Beyond(found)) if std::ptr::eq(found, rule))
    }

    fn size(tables: &FrameTables, return_address: u64) -> Option<u64> {
        match tables.caller(return_address)? {
            Caller::Distance(size) => Some(size),
            Caller::Beyond(_) => None,
        }
    }

    #[test]
    fn frames_are_known_once_they_are_found() {
        let mut system = TableBuilder::new();
        system.return_to_c(0x4000);
        system.return_to_c(0x4001);
        let mut module = TableBuilder::new();
        module.frame(0x5000, 16, &[], Some(&[1, 2]), &[100, 200]);
        module.frame(0x5001, 24, &[], None, &[]);
        module.frame(0x5002, 12, &[], None, &[]);
        let five = MajorVersion::Five;
        let (words, all) = in_one_piece(&[system.build(), module.build()], five);
        let elsewhere = {
            let mut table = TableBuilder::new();
            table.frame(0x6000, 16, &[], None, &[]);
            table.build()
        };
        let record = |return_address: u64| -> u64 {
            let of = |words: &[u64]| words.iter().position(|&word| word == return_address);
            let here = of(&words).map(|at| words[at..].as_ptr() as u64);
            here.or(of(&elsewhere).map(|at| elsewhere[at..].as_ptr() as u64)).unwrap_or(0)
        };
        let known: HashMap<u64, u64> =
            [0x4000, 0x5000, 0x5001, 0x5002, 0x6000].map(|a| (a, record(a))).into();
        let find = move |address| known.get(&address).copied().unwrap_or(0);

        let tables = FrameTables::new();
        // SAFETY: `find` returns addresses in the tables that were built above.
        let borrowed = unsafe { BorrowedTables::new(all.iter().copied(), five, find) };
        assert!(tables.borrow(Arc::new(borrowed.expect("sound").expect("not empty"))));
        let with_crossings: Vec<_> =
            all.iter().filter(|table| table.begins_with_return_to_c() == Ok(true)).collect();
        assert_eq!(with_crossings.len(), 1);
        tables.add(Arc::new(*with_crossings[0])).expect("sound");
        assert!(crosses_by(&tables, 0x4000, &CALLBACK));
        assert!(crosses_by(&tables, 0x4001, &FIBER));
        assert!(tables.source(0x5000).is_none(), "no walk has reached it");
        assert_eq!((size(&tables, 0x5000), size(&tables, 0x5001)), (Some(16), Some(24)));
        let source = tables.source(0x5000).expect("entered");
        // The table's count, 12 bytes of head and 3 of lengths, aligned.
        let module = record(0x5000);
        assert_eq!(source.part_key(0), Some(module + 16 + 100));
        assert_eq!(source.part_key(1), Some(module + 20 + 200));
        // A wrong size, an address in no table, and what the runtime may free.
        for unknown in [0x5002, 0x5003, 0x6000] {
            assert!(tables.caller(unknown).is_none());
            assert!(tables.source(unknown).is_none());
        }
        // A plugin's table is added all the same.
        tables.add(Arc::new(table(&elsewhere, five))).expect("sound");
        assert_eq!(size(&tables, 0x6000), Some(16));
        let mut list = LocationList::default();
        let memory = crate::sys::process_memory::ProcessMemory::new();
        let explained = tables.source(0x6000).expect("added").locate(None, &memory, &mut list);
        assert_eq!(explained, crate::stack::formats::Explained::WithoutDebugInfo);
    }

    #[test]
    fn tables_that_cannot_be_borrowed_can_be_added() {
        let mut system = TableBuilder::new();
        system.return_to_c(0x4000);
        let four = MajorVersion::Four;
        let (_words, all) = in_one_piece(&[system.build(), vec![u64::MAX]], four);
        // SAFETY: `find` finds nothing.
        let borrowed = unsafe { BorrowedTables::new(all.iter().copied(), four, |_| 0) };
        assert_eq!(borrowed.err(), Some(TableDefect::Count(u64::MAX)));
        let tables = FrameTables::new();
        tables.add(Arc::new(all[0])).expect("nothing is added yet");
        assert!(crosses_by(&tables, 0x4000, &CONTEXT));
    }
}
