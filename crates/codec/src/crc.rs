//! CRC-32C (Castagnoli), eight bytes at a time.
//!
//! Source: "slicing by 8", Kounavis and Berry, "A systematic approach to building
//! high performance software-based CRC generators", 2005. The reflected
//! polynomial is `0x82f63b78`, the value begins and ends inverted (RFC 3720, B.4).
//!
//! Not `crc32c`: it brings unsafe code and a build script into traced programs, and 60 lines do without.

const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]`: the effect of a byte `b` with `k` zero bytes behind it.
static TABLES: [[u32; 256]; 8] = tables();

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// The checksum of several slices as if they were one.
pub fn crc32c(parts: &[&[u8]]) -> u32 {
    !parts.iter().fold(!0, |crc, part| update(crc, part))
}

fn update(mut crc: u32, bytes: &[u8]) -> u32 {
    let at = |table: &[u32; 256], byte: u8| -> u32 {
        // A byte is always within the table.
        table.get(usize::from(byte)).copied().unwrap_or_default()
    };
    let [t0, t1, t2, t3, t4, t5, t6, t7] = &TABLES;
    let (chunks, rest) = bytes.as_chunks::<8>();
    for &[b0, b1, b2, b3, b4, b5, b6, b7] in chunks {
        let [c0, c1, c2, c3] = crc.to_le_bytes();
        crc = at(t7, b0 ^ c0)
            ^ at(t6, b1 ^ c1)
            ^ at(t5, b2 ^ c2)
            ^ at(t4, b3 ^ c3)
            ^ at(t3, b4)
            ^ at(t2, b5)
            ^ at(t1, b6)
            ^ at(t0, b7);
    }
    for &byte in rest {
        crc = (crc >> 8) ^ at(t0, byte ^ crc as u8);
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    /// From RFC 3720, B.4, and the usual check value.
    #[test]
    fn known_values() {
        assert_eq!(crc32c(&[b"123456789"]), 0xe306_9283);
        assert_eq!(crc32c(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc32c(&[&[0xff; 32]]), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&[&ascending]), 0x46dd_794e);
    }

    #[test]
    fn parts_count_as_one_slice() {
        let bytes: Vec<u8> = (0..=255).collect();
        for cut in [0, 1, 7, 8, 100, 256] {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(crc32c(&[left, right]), crc32c(&[&bytes]));
        }
    }
}
