//! Formats of runtimes that there might be, with rules of different kinds.

use heaptap_trace::LocationList;

use super::super::super::formats::{
    Caller, Crossing, CrossingRule, Explained, FrameRecord, FrameRecords, FrameTable, StackReader,
    TableDefect,
};
use crate::sys::process_memory::ProcessMemory;

/// A link {sp, return address} lies 16 bytes up; sp 0 ends.
pub(super) static CONTEXT: CrossingRule = CrossingRule { offset: 16, end: 0, cross: cross_context };

fn cross_context(at: u64, next: u64, stack: &mut dyn StackReader) -> Option<Crossing> {
    let read_at = at.checked_add(8)?;
    let return_address = stack.word(read_at)?;
    Some(Crossing::Frame { sp: next, return_address, read_at })
}

/// The caller's frames begin 32 bytes up with its return address; 1 ends.
pub(super) static CHUNK: CrossingRule = CrossingRule { offset: 32, end: 1, cross: cross_to_chunk };

fn cross_to_chunk(at: u64, return_address: u64, _: &mut dyn StackReader) -> Option<Crossing> {
    Some(Crossing::Frame { sp: at.checked_add(8)?, return_address, read_at: at })
}

/// A pointer to the parent stack lies 56 bytes up, which begins with the address of
/// its innermost return address; 0 ends.
pub(super) static PARENT: CrossingRule =
    CrossingRule { offset: 56, end: 0, cross: cross_to_parent };

fn cross_to_parent(_: u64, parent: u64, stack: &mut dyn StackReader) -> Option<Crossing> {
    let read_at = stack.word(parent)?;
    let return_address = stack.word(read_at)?;
    Some(Crossing::Frame { sp: read_at.checked_add(8)?, return_address, read_at })
}

/// Frames that say nothing about themselves. Their records are their return addresses.
pub(super) struct TestTable(Vec<FrameRecord>);

impl TestTable {
    /// The first boundary crosses by the first rule, the second by the second.
    pub(super) fn new(
        codes: &[(u64, u16)],
        boundaries: &[u64],
        rules: [&'static CrossingRule; 2],
    ) -> TestTable {
        let plain = codes.iter().map(|&(code, size)| (code, Caller::Distance(size.into())));
        let boundaries = boundaries.iter().zip(rules);
        let boundaries = boundaries.map(|(&code, rule)| (code, Caller::Beyond(rule)));
        let record = |(code, caller)| FrameRecord { return_address: code, caller, record: code };
        TestTable(plain.chain(boundaries).map(record).collect())
    }
}

impl FrameTable for TestTable {
    fn frames(&self) -> Result<Vec<FrameRecord>, TableDefect> {
        Ok(self.0.clone())
    }
}

impl FrameRecords for TestTable {
    unsafe fn part_key(&self, _: u64, _: usize) -> Option<u64> {
        None
    }

    unsafe fn locate(
        &self,
        _: u64,
        _: Option<usize>,
        _: &ProcessMemory,
        _: &mut LocationList,
    ) -> Explained {
        Explained::WithoutDebugInfo
    }
}
