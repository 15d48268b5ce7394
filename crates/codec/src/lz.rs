//! A small LZ77 codec for one stream of at most 256 KiB.
//!
//! The bytes are those of an LZ4 block: a token with the numbers of literals and of
//! matched bytes, the literals, and a 16-bit distance. The encoder is greedy and
//! looks up four bytes at a time in a table of the most recent positions. It
//! steps faster through what does not compress. Source: the published
//! description of the LZ4 block format.
//!
//! Not `lz4_flex`: its encoder allocates its table at every call, which a clone of a traced program may not do, and
//! writes other bytes. Its decoder alone would save fifty lines for a dependency of what is loaded into programs.

const MIN_MATCH: usize = 4;
const MAX_DISTANCE: usize = 0xffff;
const HASH_BITS: u32 = 13;

/// Where each hash of four bytes was seen last. Its contents do not matter between calls.
pub type Positions = [u32; POSITIONS];
/// How many hashes there are.
pub const POSITIONS: usize = 1 << HASH_BITS;

fn four_bytes(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*four))
}

fn hash(four: u32) -> usize {
    (four.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

/// How many bytes from `at` equal those from `from`.
fn match_length(bytes: &[u8], from: usize, at: usize) -> usize {
    let (Some(old), Some(new)) = (bytes.get(from..), bytes.get(at..)) else { return 0 };
    let (old_words, _) = old.as_chunks::<8>();
    let (new_words, _) = new.as_chunks::<8>();
    let mut length = 0;
    for (old, new) in old_words.iter().zip(new_words) {
        let difference = u64::from_le_bytes(*old) ^ u64::from_le_bytes(*new);
        if difference != 0 {
            return length + difference.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let rest = old.iter().skip(length).zip(new.iter().skip(length));
    length + rest.take_while(|(old, new)| old == new).count()
}

/// What has been written to the output.
struct Packed<'a> {
    output: &'a mut [u8],
    len: usize,
}

impl Packed<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.len.checked_add(bytes.len())?;
        self.output.get_mut(self.len..end)?.copy_from_slice(bytes);
        self.len = end;
        Some(())
    }

    /// The rest of a number of which the token holds 15.
    fn put_rest(&mut self, mut rest: usize) -> Option<()> {
        while rest >= 255 {
            self.put(&[255])?;
            rest -= 255;
        }
        self.put(&[rest as u8])
    }

    fn put_sequence(&mut self, literals: &[u8], matched: Option<(usize, usize)>) -> Option<()> {
        let match_code = matched.map_or(0, |(_, length)| length - MIN_MATCH);
        let token = (literals.len().min(15) << 4) | match_code.min(15);
        self.put(&[token as u8])?;
        if literals.len() >= 15 {
            self.put_rest(literals.len() - 15)?;
        }
        self.put(literals)?;
        if let Some((distance, _)) = matched {
            self.put(&(distance as u16).to_le_bytes())?;
            if match_code >= 15 {
                self.put_rest(match_code - 15)?;
            }
        }
        Some(())
    }
}

/// Compresses `input`; returns the length of the output, or `None` if it does not fit.
pub fn compress(input: &[u8], output: &mut [u8], positions: &mut Positions) -> Option<usize> {
    if output.is_empty() {
        return None;
    }
    // Positions are stored plus one.
    positions.fill(0);
    let mut packed = Packed { output, len: 0 };
    let (mut at, mut literals_from, mut misses) = (0, 0, 0usize);
    while let Some(four) = four_bytes(input, at) {
        let slot = positions.get_mut(hash(four))?;
        let before = std::mem::replace(slot, at as u32 + 1) as usize;
        let candidate = before.wrapping_sub(1);
        let is_match = before != 0
            && at - candidate <= MAX_DISTANCE
            && four_bytes(input, candidate) == Some(four);
        if !is_match {
            misses += 1;
            at += 1 + (misses >> 6);
            continue;
        }
        let length = MIN_MATCH + match_length(input, candidate + MIN_MATCH, at + MIN_MATCH);
        packed.put_sequence(input.get(literals_from..at)?, Some((at - candidate, length)))?;
        at += length;
        literals_from = at;
        misses = 0;
    }
    packed.put_sequence(input.get(literals_from..)?, None)?;
    Some(packed.len)
}

/// Decompresses to exactly `raw` bytes behind what `output` holds. `None` if the input is damaged.
pub fn decompress(input: &[u8], raw: usize, output: &mut Vec<u8>) -> Option<()> {
    let start = output.len();
    let end = start.checked_add(raw)?;
    let mut rest = input;
    loop {
        let token = usize::from(*take(&mut rest, 1)?.first()?);
        let count = length(token >> 4, &mut rest)?;
        let literals = take(&mut rest, count)?;
        if literals.len() > end - output.len() {
            return None;
        }
        output.extend_from_slice(literals);
        if rest.is_empty() {
            return (output.len() == end && token & 15 == 0).then_some(());
        }
        let distance = usize::from(u16::from_le_bytes(*take(&mut rest, 2)?.first_chunk()?));
        let matched = MIN_MATCH + length(token & 15, &mut rest)?;
        let from = output.len().checked_sub(distance)?;
        if distance == 0 || from < start || matched > end - output.len() {
            return None;
        }
        copy_within(output, from, matched);
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, behind) = rest.split_at_checked(count)?;
    *rest = behind;
    Some(taken)
}

/// A number of which 15 or less was in the token.
fn length(in_token: usize, rest: &mut &[u8]) -> Option<usize> {
    let mut length = in_token;
    if in_token == 15 {
        loop {
            let byte = *take(rest, 1)?.first()?;
            length = length.checked_add(usize::from(byte))?;
            if byte != 255 {
                break;
            }
        }
    }
    Some(length)
}

/// Appends `count` bytes from `from` on, which may run into what is being appended.
fn copy_within(output: &mut Vec<u8>, from: usize, count: usize) {
    let period = output.len() - from;
    let mut left = count;
    while left > 0 {
        let step = left.min(period.max(output.len() - from));
        output.extend_from_within(from..from + step);
        left -= step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(input: &[u8]) -> usize {
        let mut output = vec![0; input.len() + input.len() / 200 + 32];
        let len = compress(input, &mut output, &mut [7; POSITIONS]).unwrap();
        let mut again = b"before".to_vec();
        decompress(&output[..len], input.len(), &mut again).unwrap();
        assert_eq!(&again[6..], input);
        len
    }

    #[test]
    fn repetition_shrinks() {
        assert!(round_trip(&[7; 200_000]) < 900);
        assert!(round_trip(&b"abcdefghij".repeat(1000)) < 80);
        round_trip(b"");
        round_trip(b"a");
        let spaced: Vec<u8> = (0..200_000u32).map(|i| (i % 65_537 % 251) as u8).collect();
        round_trip(&spaced);
    }

    #[test]
    fn no_room_is_no_answer() {
        let input: Vec<u8> = (0..=255).collect();
        assert_eq!(compress(&input, &mut [0; 200], &mut [0; POSITIONS]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(
            parts in prop::collection::vec((prop::collection::vec(0u8..4, 0..40), 1usize..30), 0..60),
        ) {
            let input: Vec<u8> = parts.iter().flat_map(|(part, times)| part.repeat(*times)).collect();
            round_trip(&input);
        }

        #[test]
        fn hostile_input_is_refused_or_has_the_length(
            input in prop::collection::vec(any::<u8>(), 0..200),
            raw in 0usize..5000,
        ) {
            let mut output = Vec::new();
            if decompress(&input, raw, &mut output).is_some() {
                prop_assert_eq!(output.len(), raw);
            }
            prop_assert!(output.len() <= raw);
        }
    }
}
