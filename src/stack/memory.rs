//! Reading words of a stack, through a trait so that everything above is safe
//! code and runs on made-up stacks in tests.

#![allow(unsafe_code, reason = "the one place that reads another frame's memory")]

/// Memory that can be read by the word.
pub(crate) trait Memory {
    /// The word at `address`, which is a multiple of 8; `None` if there is none.
    fn word(&self, address: u64) -> Option<u64>;

    /// The same for an address that is a multiple of 8 and not 0.
    fn aligned_word(&self, address: u64) -> Option<u64> {
        self.word(address)
    }

    /// The word at an address where [`Self::word`] found one before.
    fn again(&self, address: u64) -> u64;
}

/// The memory of this process.
#[derive(Clone, Copy)]
pub(crate) struct Live(());

impl Live {
    /// # Safety
    /// Until this value is dropped, every word that a walk reaches by following
    /// the host's frame tables and links must be readable.
    pub(crate) const unsafe fn new() -> Self {
        Self(())
    }
}

impl Memory for Live {
    #[inline(always)]
    fn word(&self, address: u64) -> Option<u64> {
        if address == 0 || !address.is_multiple_of(8) {
            return None;
        }
        // SAFETY: aligned by the test above; readable by the promise made to
        // `Live::new`. Volatile since its owner is the host, not Rust.
        Some(unsafe { core::ptr::read_volatile(address as *const u64) })
    }

    #[inline(always)]
    fn aligned_word(&self, address: u64) -> Option<u64> {
        // SAFETY: as above; aligned as the caller says.
        Some(unsafe { core::ptr::read_volatile(address as *const u64) })
    }

    #[inline(always)]
    fn again(&self, address: u64) -> u64 {
        // SAFETY: as above; it was found aligned then.
        unsafe { core::ptr::read_volatile(address as *const u64) }
    }
}

/// A made-up stack: words at addresses from a base up.
#[cfg(test)]
pub(crate) struct Words {
    pub(crate) base: u64,
    pub(crate) words: Vec<u64>,
}

#[cfg(test)]
impl Memory for Words {
    fn word(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.base)?;
        if offset % 8 != 0 {
            return None;
        }
        self.words.get(usize::try_from(offset / 8).ok()?).copied()
    }

    fn again(&self, address: u64) -> u64 {
        self.word(address).expect("read before")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_reads_what_is_there_and_refuses_what_cannot_be() {
        let word = 0x1234_u64;
        // SAFETY: only `word` is read.
        let live = unsafe { Live::new() };
        let address = &raw const word as u64;
        assert_eq!(live.word(address), Some(0x1234));
        assert_eq!(live.again(address), 0x1234);
        assert_eq!(live.word(address + 4), None);
        assert_eq!(live.word(0), None);
    }
}
