//! Compresses in the format of gzip (RFC 1952), with all processors.
//!
//! Each part of the bytes is compressed by itself, up to a flush that ends at a whole
//! byte (RFC 1951, 3.2.4: an empty stored block). The parts one after the other are one
//! deflate stream, and so one member: browsers read no second one.

use std::panic::resume_unwind;
use std::thread;

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// The bytes of a part. They do not depend on the machine, so that the result does not. A
/// part cannot refer to the bytes before it, which costs little at this size.
const PART: usize = 4 << 20;

/// Without a name or time, from an unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// The bytes, compressed.
pub(crate) fn compressed(bytes: &[u8], effort: Compression) -> Vec<u8> {
    compressed_in_parts(bytes, effort, PART)
}

/// An archive is less than a hundred megabytes, so there are few parts.
fn compressed_in_parts(bytes: &[u8], effort: Compression, part: usize) -> Vec<u8> {
    let parts: Vec<&[u8]> = bytes.chunks(part).collect();
    let (last, first) = match parts.split_last() {
        Some((last, first)) => (*last, first),
        None => (&[][..], &[][..]),
    };
    let mut gzip = HEADER.to_vec();
    let mut sum = Crc::new();
    thread::scope(|scope| {
        let started: Vec<_> = first
            .iter()
            .map(|part| scope.spawn(move || deflated(part, effort, FlushCompress::Sync)))
            .collect();
        let end = deflated(last, effort, FlushCompress::Finish);
        for part in started {
            let (deflated, of_part) = part.join().unwrap_or_else(|panic| resume_unwind(panic));
            gzip.extend(deflated);
            sum.combine(&of_part);
        }
        gzip.extend(end.0);
        sum.combine(&end.1);
    });
    gzip.extend(sum.sum().to_le_bytes());
    gzip.extend(sum.amount().to_le_bytes());
    gzip
}

/// A part of a deflate stream, and the check sum of its bytes.
fn deflated(bytes: &[u8], effort: Compression, flush: FlushCompress) -> (Vec<u8>, Crc) {
    let mut sum = Crc::new();
    sum.update(bytes);
    let mut compress = Compress::new(effort, false);
    let mut deflated = Vec::with_capacity(bytes.len() / 4 + 64);
    loop {
        deflated.reserve(1 << 16);
        let read = usize::try_from(compress.total_in()).unwrap_or(bytes.len());
        let room = deflated.capacity() - deflated.len();
        let before = deflated.len();
        match compress.compress_vec(&bytes[read..], &mut deflated, flush) {
            Ok(Status::StreamEnd) => break,
            // All is flushed once room is left.
            Ok(_) if flush != FlushCompress::Finish && deflated.len() - before < room => break,
            Ok(_) => {}
            // Only a stream that already ended, or a wrong flush, is an error.
            Err(_) => break,
        }
    }
    (deflated, sum)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn parts_are_one_member_with_all_bytes() {
        let mut state = 1_u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        };
        let random: Vec<u8> = (0..300_000).map(|_| noise()).collect();
        let even: Vec<u8> = (0..300_000).map(|at| (at / 1000) as u8).collect();
        for bytes in [&[][..], &[7][..], &random, &even] {
            for part in [1000, 100_000, 150_000, 299_999, 300_000, 1 << 20] {
                for effort in [Compression::fast(), Compression::default()] {
                    let gzip = compressed_in_parts(bytes, effort, part);
                    // This decoder reads one member, and checks sum and length.
                    let (mut found, mut rest) = (Vec::new(), &gzip[..]);
                    GzDecoder::new(&mut rest).read_to_end(&mut found).unwrap();
                    assert_eq!(found.len(), bytes.len());
                    assert!(found == bytes && rest.is_empty(), "parts of {part}");
                }
            }
        }
    }
}
