//! Reading words of a stack: the one place that does. Behind a trait, so that all users
//! are safe code and run on made-up stacks in tests.

#![allow(unsafe_code, reason = "reads the frames of other functions")]

use core::arch::asm;

/// Memory that can be read by the word.
pub(crate) trait Memory {
    /// The word at `address`; `None` if there can be none.
    fn word(&self, address: u64) -> Option<u64>;

    /// The same for an address that is a multiple of 8 and not 0.
    fn aligned_word(&self, address: u64) -> Option<u64> {
        self.word(address)
    }

    /// The word at an address where [`Self::word`] found one before.
    fn again(&self, address: u64) -> u64;

    /// How many words in a row equal `word`, from `address` on and each `stride` above
    /// the one before. Both are multiples of 8 and not 0, and the stride is below 2^32.
    /// Reads no word at or above `end`, and none above one that is different.
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
    /// Until this value and its copies are dropped, every word that a walk reaches by
    /// following the host's frame tables, links or unwind tables is readable.
    pub(crate) const unsafe fn new() -> Self {
        Self(())
    }
}

impl Live {
    /// # Safety
    /// `address` is a multiple of 8 and not 0.
    #[inline]
    unsafe fn read(self, address: u64) -> u64 {
        // SAFETY: aligned, as the caller guarantees; readable, as the creator of `self`
        // guaranteed. Volatile, since the stack belongs to the host and not to Rust.
        unsafe { core::ptr::read_volatile(address as *const u64) }
    }
}

impl Memory for Live {
    #[inline]
    fn word(&self, address: u64) -> Option<u64> {
        if address == 0 || !address.is_multiple_of(8) {
            return None;
        }
        // SAFETY: not 0 and aligned, by the test above; readable by the contract of `Live::new`.
        Some(unsafe { self.read(address) })
    }

    #[inline]
    fn aligned_word(&self, address: u64) -> Option<u64> {
        debug_assert!(address != 0 && address.is_multiple_of(8), "{address:#x}");
        // SAFETY: the walk passes sums of a stack pointer, which it has tested, and frame
        // sizes, which are multiples of 8.
        Some(unsafe { self.read(address) })
    }

    #[inline]
    fn again(&self, address: u64) -> u64 {
        debug_assert!(address != 0 && address.is_multiple_of(8), "{address:#x}");
        // SAFETY: the walk passes witnesses, at which a word was read before.
        unsafe { self.read(address) }
    }

    fn repeats(&self, address: u64, stride: u64, end: u64, word: u64) -> usize {
        debug_assert!((address | stride).is_multiple_of(8), "{address:#x} {stride:#x}");
        // SAFETY: the first word is on the stack. Each further one is the return address
        // of the caller of a frame of size `stride`, since the word below was `word`; so
        // it is on the stack, too, and readable as the creator of `self` guaranteed.
        unsafe { repeats(address, stride, end, word) }
    }
}

/// See [`Memory::repeats`].
///
/// The loop of most instructions in a deep recursion. With offsets that the processor
/// adds while it loads it takes little more than a comparison and a branch for each
/// word: without [`opaque`] 37 % more instructions, as a plain loop 129 % more
/// (`benches/stack.rs: recursion/100000`).
///
/// # Safety
/// `address` and `stride` are multiples of 8. The word at `address` is readable, and so
/// is each word below `end` that lies `stride` above one that equals `word`.
unsafe fn repeats(mut address: u64, stride: u64, end: u64, word: u64) -> usize {
    const BATCH: u64 = 8;
    // Not volatile, so that a word can be compared in memory.
    // SAFETY: no word is read before the one below it was compared.
    let holds = |address: u64| unsafe { core::ptr::read(address as *const u64) } == word;
    let [three, five, seven] = [3, 5, 7].map(|times| opaque(times * stride));
    let first_different = |base: u64| {
        let offsets = [0, stride, 2 * stride, three, 4 * stride, five, 2 * three, seven];
        offsets.into_iter().position(|offset| !holds(base + offset))
    };
    let mut count = 0;
    // Two batches at a time: one takes 7 % more.
    if let Some(last) = end.checked_sub(2 * BATCH * stride) {
        while address <= last {
            let first = opaque(address);
            if let Some(place) = first_different(first) {
                return count + place;
            }
            let second = opaque(first + BATCH * stride);
            if let Some(place) = first_different(second) {
                return count + BATCH as usize + place;
            }
            address = second + BATCH * stride;
            count += 2 * BATCH as usize;
        }
    }
    while address < end && holds(address) {
        address += stride;
        count += 1;
    }
    count
}

/// The value itself. The optimiser cannot see that, so it does not compute the value
/// again from what it was made of.
#[inline]
fn opaque(mut value: u64) -> u64 {
    // SAFETY: there is no instruction, only a comment.
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
        fn live_words_repeat_as_made_up_ones_do(
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
            // SAFETY: only `words` are read: none above the different one, which is there.
            let live = unsafe { Live::new() };
            let base = words.as_ptr() as u64;
            let end = base + 8 * end;
            let found = live.repeats(base, 8 * stride, end, 7);
            let made_up = Words { base, words };
            prop_assert_eq!(found, made_up.repeats(base, 8 * stride, end, 7));
        }
    }

    #[test]
    fn live_memory_reads_aligned_words_only() {
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
