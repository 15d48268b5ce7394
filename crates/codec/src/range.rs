//! An adaptive binary range coder, and plain bits.
//!
//! Each yes or no is coded with a probability that follows what was coded with it
//! before, so that what is likely costs a fraction of a bit. Source: the range
//! coder of LZMA (Martin, "Range encoding", 1979; Pavlov's 7-zip), here with 15
//! bits of probability and with carries that go back into the buffer.
//!
//! Written here because the file format is made of it: no library codes these bits, and without allocating.

use crate::Buffer;

/// The probability that the next bit is 0, in 1 / 32768.
pub type Probability = u16;
/// As likely as not.
pub const EVEN: Probability = 1 << 14;
const SCALE: u32 = 15;
const RATE: u32 = 5;
/// Below this the range is widened by a byte.
const NARROW: u32 = 1 << 24;
/// Enough to bring the last state out.
pub const RANGE_TAIL: usize = 4;

#[inline]
fn learn(probability: &mut Probability, bit: bool) {
    if bit {
        *probability -= *probability >> RATE;
    } else {
        *probability += ((1 << SCALE) - *probability) >> RATE;
    }
}

/// The encoder's state. Its output goes to a buffer.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RangeEncoder {
    /// The lower end of the range: 32 bits, and a carry above them.
    low: u64,
    range: u32,
}

impl RangeEncoder {
    /// Before the first bit.
    pub const START: RangeEncoder = RangeEncoder { low: 0, range: u32::MAX };

    /// Codes a bit, and lets `probability` learn of it.
    #[inline]
    pub fn bit<const N: usize>(
        &mut self,
        output: &mut Buffer<N>,
        probability: &mut Probability,
        bit: bool,
    ) {
        let bound = (self.range >> SCALE) * u32::from(*probability);
        if bit {
            self.low += u64::from(bound);
            self.range -= bound;
        } else {
            self.range = bound;
        }
        learn(probability, bit);
        while self.range < NARROW {
            self.shift(output);
            self.range <<= 8;
        }
    }

    /// The bits of a symbol from the top, each with the probability of its prefix.
    #[inline]
    pub fn symbol<const N: usize>(
        &mut self,
        output: &mut Buffer<N>,
        tree: &mut [Probability; 256],
        symbol: u8,
    ) {
        let mut node = 1u8;
        for shift in (0..8).rev() {
            let bit = (symbol >> shift) & 1;
            if let Some(probability) = tree.get_mut(usize::from(node)) {
                self.bit(output, probability, bit == 1);
            }
            node = (node << 1) | bit;
        }
    }

    fn shift<const N: usize>(&mut self, output: &mut Buffer<N>) {
        if self.low >> 32 != 0 {
            output.carry();
        }
        output.put_byte((self.low >> 24) as u8);
        self.low = (self.low & 0x00ff_ffff) << 8;
    }

    /// Brings out what is left.
    pub fn finish<const N: usize>(&mut self, output: &mut Buffer<N>) {
        for _ in 0..RANGE_TAIL {
            self.shift(output);
        }
        *self = RangeEncoder::START;
    }
}

/// Reads what a [`RangeEncoder`] wrote.
#[derive(Clone, Copy, Debug)]
pub struct RangeDecoder {
    range: u32,
    code: u32,
    /// How many bytes have been taken.
    taken: usize,
}

impl RangeDecoder {
    /// Before there is an input.
    pub const IDLE: RangeDecoder = RangeDecoder { range: u32::MAX, code: 0, taken: 0 };

    /// At the start of `input`. `None` if that is too short.
    pub fn new(input: &[u8]) -> Option<RangeDecoder> {
        let code = u32::from_be_bytes(*input.first_chunk::<RANGE_TAIL>()?);
        Some(RangeDecoder { range: u32::MAX, code, taken: RANGE_TAIL })
    }

    /// Whether everything has been taken.
    pub fn is_done(&self, input: &[u8]) -> bool {
        self.taken == input.len()
    }

    /// `None` if the input ends too early.
    #[inline]
    pub fn bit(&mut self, input: &[u8], probability: &mut Probability) -> Option<bool> {
        let bound = (self.range >> SCALE) * u32::from(*probability);
        let bit = self.code >= bound;
        if bit {
            self.code -= bound;
            self.range -= bound;
        } else {
            self.range = bound;
        }
        learn(probability, bit);
        while self.range < NARROW {
            self.code = (self.code << 8) | u32::from(*input.get(self.taken)?);
            self.taken += 1;
            self.range <<= 8;
        }
        Some(bit)
    }

    /// What [`RangeEncoder::symbol`] coded. `None` if the input ends too early.
    #[inline]
    pub fn symbol(&mut self, input: &[u8], tree: &mut [Probability; 256]) -> Option<u8> {
        let mut node = 1u8;
        let mut symbol = 0;
        for _ in 0..8 {
            let bit = u8::from(self.bit(input, tree.get_mut(usize::from(node))?)?);
            node = (node << 1) | bit;
            symbol = (symbol << 1) | bit;
        }
        Some(symbol)
    }
}

/// Bits that wait for their byte, the first one lowest. All zeros is an empty one.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BitEncoder {
    waiting: u64,
    /// Below 8 between two calls.
    count: u32,
}

impl BitEncoder {
    /// Without any bits.
    pub const EMPTY: BitEncoder = BitEncoder { waiting: 0, count: 0 };

    /// Appends the low `width` bits, at most 32.
    #[inline]
    pub fn put<const N: usize>(&mut self, output: &mut Buffer<N>, bits: u64, width: u32) {
        let mask = (1u64 << width) - 1;
        self.waiting |= (bits & mask) << self.count;
        self.count += width;
        while self.count >= 8 {
            output.put_byte(self.waiting as u8);
            self.waiting >>= 8;
            self.count -= 8;
        }
    }

    /// Brings out what is left.
    pub fn finish<const N: usize>(&mut self, output: &mut Buffer<N>) {
        if self.count > 0 {
            output.put_byte(self.waiting as u8);
        }
        *self = BitEncoder::EMPTY;
    }
}

/// Reads what a [`BitEncoder`] wrote.
#[derive(Clone, Copy, Debug, Default)]
pub struct BitDecoder {
    waiting: u64,
    count: u32,
    taken: usize,
}

impl BitDecoder {
    /// The next `width` bits, at most 32. `None` if the input ends too early.
    #[inline]
    pub fn take(&mut self, input: &[u8], width: u32) -> Option<u64> {
        while self.count < width {
            self.waiting |= u64::from(*input.get(self.taken)?) << self.count;
            self.taken += 1;
            self.count += 8;
        }
        let bits = self.waiting & ((1u64 << width) - 1);
        self.waiting >>= width;
        self.count -= width;
        Some(bits)
    }

    /// Whether everything has been taken, but for the last byte's filling.
    pub fn is_done(&self, input: &[u8]) -> bool {
        self.taken == input.len() && self.waiting == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn symbols_and_bits_come_back(
            symbols in prop::collection::vec((any::<u8>(), 0u32..=32, any::<u32>(), any::<bool>()), 0..2000),
            skew in 0u8..8,
        ) {
            let mut coded = Box::new(Buffer::<32768>::EMPTY);
            let mut plain = Box::new(Buffer::<32768>::EMPTY);
            let mut encoder = RangeEncoder::START;
            let mut bits = BitEncoder::EMPTY;
            let (mut tree, mut flag) = ([EVEN; 256], EVEN);
            for &(symbol, width, number, bit) in &symbols {
                encoder.symbol(&mut coded, &mut tree, symbol >> skew);
                encoder.bit(&mut coded, &mut flag, bit);
                bits.put(&mut plain, u64::from(number), width);
            }
            encoder.finish(&mut coded);
            bits.finish(&mut plain);
            prop_assert!(!coded.overflowed() && !plain.overflowed());

            let (coded, plain) = (coded.bytes(), plain.bytes());
            let mut decoder = RangeDecoder::new(coded).unwrap();
            let mut bits = BitDecoder::default();
            let (mut tree, mut flag) = ([EVEN; 256], EVEN);
            for &(symbol, width, number, bit) in &symbols {
                prop_assert_eq!(decoder.symbol(coded, &mut tree), Some(symbol >> skew));
                prop_assert_eq!(decoder.bit(coded, &mut flag), Some(bit));
                let mask = (1u64 << width) - 1;
                prop_assert_eq!(bits.take(plain, width), Some(u64::from(number) & mask));
            }
            prop_assert!(decoder.is_done(coded));
            prop_assert!(bits.is_done(plain));
        }
    }

    #[test]
    fn what_is_likely_is_cheap() {
        let mut coded = Box::new(Buffer::<32768>::EMPTY);
        let mut encoder = RangeEncoder::START;
        let mut flag = EVEN;
        for _ in 0..100_000 {
            encoder.bit(&mut coded, &mut flag, true);
        }
        encoder.finish(&mut coded);
        assert!(coded.bytes().len() < 60, "{}", coded.bytes().len());
    }
}
