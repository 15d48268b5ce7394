//! Reading words of a stack, through a trait so that everything above is safe
//! code and runs on made-up stacks in tests.

#![allow(unsafe_code, reason = "the one place that reads another frame's memory")]

use core::arch::asm;

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

    /// How many words in a row, from `address` on and each `stride` above the
    /// last, are this one. Both are multiples of 8 and not 0, the stride is below
    /// 2^32. Looks at no word at or above `end`, and at none above one that is
    /// different.
    fn repeats(&self, mut address: u64, stride: u64, end: u64, word: u64) -> usize {
        let mut count = 0;
        while address < end && self.word(address) == Some(word) {
            address = address.wrapping_add(stride);
            count += 1;
        }
        count
    }
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
    #[inline]
    fn word(&self, address: u64) -> Option<u64> {
        if address == 0 || !address.is_multiple_of(8) {
            return None;
        }
        // SAFETY: aligned by the test above; readable by the promise made to
        // `Live::new`. Volatile since its owner is the host, not Rust.
        Some(unsafe { core::ptr::read_volatile(address as *const u64) })
    }

    #[inline]
    fn aligned_word(&self, address: u64) -> Option<u64> {
        // SAFETY: as above; aligned as the caller says.
        Some(unsafe { core::ptr::read_volatile(address as *const u64) })
    }

    #[inline]
    fn again(&self, address: u64) -> u64 {
        // SAFETY: as above; it was found aligned then.
        unsafe { core::ptr::read_volatile(address as *const u64) }
    }

    fn repeats(&self, address: u64, stride: u64, end: u64, word: u64) -> usize {
        // SAFETY: the promises are those that were made to `Live::new` and by the
        // caller, of the words that are looked at.
        unsafe { repeats(address, stride, end, word) }
    }
}

/// See [`Memory::repeats`]. On its own, for the loop needs all registers.
///
/// # Safety
/// All words that it may look at can be read and are aligned.
#[inline(never)]
unsafe fn repeats(mut address: u64, stride: u64, end: u64, word: u64) -> usize {
    const BATCH: u64 = 8;
    // Not volatile, so that a word can be compared where it is. None is read
    // before the one below it was compared: it might not be there.
    // SAFETY: the caller's promise.
    let holds = |address: u64| unsafe { core::ptr::read(address as *const u64) } == word;
    // What a processor can add up as it loads, so that nothing else has to.
    let [three, five, seven] = [3, 5, 7].map(|times| opaque(times * stride));
    let differs = |base: u64| {
        let offsets = [0, stride, 2 * stride, three, 4 * stride, five, 2 * three, seven];
        offsets.into_iter().position(|offset| !holds(base + offset))
    };
    let mut count = 0;
    if let Some(last) = end.checked_sub(2 * BATCH * stride) {
        while address <= last {
            let first = opaque(address);
            if let Some(place) = differs(first) {
                return count + place;
            }
            let second = opaque(first + BATCH * stride);
            if let Some(place) = differs(second) {
                return count + BATCH as usize + place;
            }
            address = second + BATCH * stride;
            count += 2 * BATCH as usize;
        }
    }
    if end.checked_sub(BATCH * stride).is_some_and(|last| address <= last) {
        if let Some(place) = differs(address) {
            return count + place;
        }
        address += BATCH * stride;
        count += BATCH as usize;
    }
    while address < end && holds(address) {
        address += stride;
        count += 1;
    }
    count
}

/// The same value, of which the compiler does not know where it came from.
#[inline]
pub(super) fn opaque(mut value: u64) -> u64 {
    // SAFETY: no instruction.
    unsafe {
        asm!("/* {0} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags));
    }
    value
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn live_words_are_compared_as_made_up_ones_are(
            stride in 1..5_u64,
            count in 0..80_usize,
            others in prop::collection::vec(any::<usize>(), 0..2),
            end in 0..500_u64,
        ) {
            let mut words = vec![7; 400];
            for at in others {
                words[at % 100 * stride as usize] = 8;
            }
            words[count * stride as usize] = 9;
            // SAFETY: only these words are read: none behind the different one.
            let live = unsafe { Live::new() };
            let base = words.as_ptr() as u64;
            let end = base + 8 * end;
            let found = live.repeats(base, 8 * stride, end, 7);
            let made_up = Words { base, words };
            prop_assert_eq!(found, made_up.repeats(base, 8 * stride, end, 7));
        }
    }

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
