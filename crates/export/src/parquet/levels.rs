//! Small numbers in Parquet's hybrid of runs and packed bits, for levels and for the numbers of
//! words in a dictionary.

use super::thrift::varint;

/// Repetitions that are worth a run of their own.
const SHORTEST_RUN: usize = 8;

/// The bits of the largest of these numbers.
pub(super) fn width(largest: u32) -> u32 {
    u32::BITS - largest.leading_zeros()
}

/// Encodes numbers of this many bits.
pub(super) fn encode(numbers: &[u32], width: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = numbers;
    while let Some(&first) = rest.first() {
        let run = rest.iter().take_while(|&&number| number == first).count();
        if run >= SHORTEST_RUN {
            varint(&mut bytes, (run as u64) << 1);
            let value = u64::from(first).to_le_bytes();
            bytes.extend_from_slice(&value[..width.div_ceil(8) as usize]);
            rest = &rest[run..];
        } else {
            let (packed, after) = rest.split_at(before_next_run(rest));
            pack(&mut bytes, packed, width);
            rest = after;
        }
    }
    bytes
}

/// How many numbers come before the next run: eight at a time, unless they are the last.
fn before_next_run(numbers: &[u32]) -> usize {
    let mut groups = numbers.chunks(8).scan(0, |end, group| {
        let start = *end;
        *end += group.len();
        let is_run = group.len() == 8 && group.iter().all(|&number| number == group[0]);
        Some((start, is_run))
    });
    // The first group is none: a run would begin with it.
    groups.find(|&(_, is_run)| is_run).map_or(numbers.len(), |(start, _)| start)
}

/// Packs groups of eight numbers, the last one filled up with zeros.
fn pack(bytes: &mut Vec<u8>, numbers: &[u32], width: u32) {
    varint(bytes, (numbers.len().div_ceil(8) as u64) << 1 | 1);
    let (mut bits, mut count) = (0_u64, 0);
    let padding = numbers.len().next_multiple_of(8) - numbers.len();
    for &number in numbers.iter().chain(std::iter::repeat_n(&0, padding)) {
        bits |= u64::from(number) << count;
        count += width;
        while count >= 8 {
            bytes.push(bits as u8);
            (bits, count) = (bits >> 8, count - 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The inverse, from the description of the encoding.
    fn decode(mut bytes: &[u8], width: u32, count: usize) -> Vec<u32> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let (mut header, mut shift) = (0_u64, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                header |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            let (len, groups) = (width.div_ceil(8) as usize, (header >> 1) as usize);
            if header & 1 == 0 {
                let value = bytes[..len].iter().rev().fold(0, |sum, &b| sum << 8 | u32::from(b));
                bytes = &bytes[len..];
                numbers.extend(std::iter::repeat_n(value, groups));
            } else {
                for at in 0..groups * 8 {
                    let bit = |n: usize| u32::from(bytes[n / 8] >> (n % 8) & 1);
                    let first = at * width as usize;
                    numbers.push((0..width as usize).map(|n| bit(first + n) << n).sum());
                }
                bytes = &bytes[groups * width as usize..];
            }
        }
        assert!(bytes.is_empty());
        numbers.truncate(count);
        numbers
    }

    #[test]
    fn numbers_come_back() {
        let runs = |lens: &[usize]| -> Vec<u32> {
            (0..).zip(lens).flat_map(|(n, &len)| std::iter::repeat_n(n % 5, len)).collect()
        };
        for numbers in [
            runs(&[]),
            runs(&[1]),
            runs(&[8]),
            runs(&[1000]),
            runs(&[3, 9, 1, 1, 1, 20, 7, 8, 2]),
            (0..1000).collect(),
            (0..1000).map(|n| if n % 100 < 40 { 7 } else { n }).collect(),
        ] {
            let largest = numbers.iter().copied().max().unwrap_or(0);
            for width in width(largest).max(1)..=20 {
                let bytes = encode(&numbers, width);
                assert_eq!(decode(&bytes, width, numbers.len()), numbers, "width {width}");
            }
        }
        assert_eq!(encode(&[0; 100_000], 1).len(), 4, "a run takes no room");
    }

    #[test]
    fn widths_hold_the_largest() {
        assert_eq!([0, 1, 2, 3, 4, 255, 256].map(width), [0, 1, 2, 2, 3, 8, 9]);
    }
}
