//! Whether a packet follows those before it: its times, its ids, its backtrace cache.

use crate::input::Input;
use crate::memtrace::decode::domain::{Domain, Lost};
use crate::memtrace::decode::reader::Reader;
use crate::memtrace::defect::Defect;
use crate::memtrace::header::{Header, Version};
use crate::memtrace::rules::IDS_PER_BLOCK;
use crate::model::ReadError;

impl<I: Input> Reader<I> {
    /// Checks a packet's header against the packets before it. Returns the number
    /// of allocations missing between them, or `None` if the packet is unusable.
    pub(crate) fn check_in_sequence(&mut self, header: &Header) -> Result<Option<u64>, ReadError> {
        let at = self.offset;
        let Domain { last_time: after, next_id: expected, gap_expected, .. } = self.domains.current;
        if header.begin < after {
            self.report(at, Defect::TimeBackwards { time: header.begin, after })?;
        }
        let found = header.first_id;
        if found < expected || self.used_ids.overlap(found, header.next_id) {
            self.report(at, Defect::IdAgain { first: found })?;
            return Ok(None);
        }
        let missing = missing_ids(header.version, expected, found);
        if missing > 0 && !gap_expected {
            self.report(at, Defect::IdGap { expected, found })?;
            self.lose(Lost::Everything);
        }
        self.check_cache(header)?;
        Ok(Some(missing))
    }

    fn check_cache(&mut self, header: &Header) -> Result<(), ReadError> {
        let Some(check) = header.cache_check else { return Ok(()) };
        if !self.domains.current.stack.check(check) {
            self.report(self.offset, Defect::CacheCheck { slot: check.slot })?;
            self.lose(Lost::Stack);
            // After the loss the check makes the slot's content known.
            self.domains.current.stack.check(check);
        }
        Ok(())
    }
}

/// The least number of ids missing between a domain's packets. In version 3 a
/// domain takes ids in blocks and uses up each before the next; blocks of other
/// domains lie between.
fn missing_ids(version: Version, expected: u64, found: u64) -> u64 {
    let (of_last, of_next) = (expected % IDS_PER_BLOCK, found % IDS_PER_BLOCK);
    let same_block = expected - of_last == found - of_next;
    match version {
        Version::V1 | Version::V2 => found - expected,
        Version::V3 if same_block => found - expected,
        Version::V3 if of_last == 0 => of_next,
        Version::V3 => IDS_PER_BLOCK - of_last + of_next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_ids_are_counted_within_blocks() {
        for version in [Version::V1, Version::V2] {
            assert_eq!(missing_ids(version, 7, 7), 0);
            assert_eq!(missing_ids(version, 7, 20_000), 19_993);
        }
        for (expected, found, missing) in [
            (0, 0, 0),
            (0, 30_000, 0),
            (0, 30_001, 1),
            (10_000, 10_000, 0),
            (10_000, 50_000, 0),
            (10_000, 50_007, 7),
            (9_990, 9_990, 0),
            (9_990, 9_995, 5),
            (9_990, 10_000, 10),
            (9_990, 40_002, 12),
        ] {
            assert_eq!(missing_ids(Version::V3, expected, found), missing, "{expected} {found}");
        }
    }
}
