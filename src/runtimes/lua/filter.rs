//! Which addresses may be those of sampled blocks: nearly all that are freed are none of these,
//! and are not looked up. Used by the thread that uses the state.

/// How many counts there are.
const COUNTS: usize = 1 << 12;

/// A count for each hash of addresses. One that has reached its largest value stays there.
pub(super) struct SampledFilter([u8; COUNTS]);

impl SampledFilter {
    pub(super) const fn new() -> SampledFilter {
        SampledFilter([0; COUNTS])
    }

    /// Whether a sampled block may be there. False: there is none.
    #[inline]
    pub(super) fn may_have(&self, address: usize) -> bool {
        self.0[slot(address)] != 0
    }

    /// A block there was sampled.
    pub(super) fn add(&mut self, address: usize) {
        let count = &mut self.0[slot(address)];
        *count = count.saturating_add(1);
    }

    /// It is there no more.
    pub(super) fn remove(&mut self, address: usize) {
        let count = &mut self.0[slot(address)];
        if *count != u8::MAX {
            *count = count.saturating_sub(1);
        }
    }
}

/// Blocks of the C library's allocator are 16 bytes apart.
#[inline]
fn slot(address: usize) -> usize {
    (address >> 4) % COUNTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sampled_block_is_missed() {
        let mut filter = SampledFilter::new();
        let address = |number: usize| 0x5000 + number * 16 * COUNTS;
        assert!(!filter.may_have(address(0)));
        for number in 0..600 {
            filter.add(address(number));
        }
        for number in 0..599 {
            filter.remove(address(number));
        }
        assert!(filter.may_have(address(599)), "its count was full");
        filter.add(0x10);
        filter.add(0x10);
        filter.remove(0x10);
        assert!(filter.may_have(0x10) && !filter.may_have(0x20));
        filter.remove(0x10);
        assert!(!filter.may_have(0x10));
    }
}
