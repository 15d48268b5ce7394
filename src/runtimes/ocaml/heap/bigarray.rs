//! What bigarrays keep outside the heap (`struct caml_ba_array`, `runtime/caml/bigarray.h`; the same from 4.12.0 to
//! 5.3.0). Other kinds of custom blocks do not say what they keep.
//!
//! Slices share the data of their array through a proxy, which counts them. The data is freed with the last of them,
//! so a slice keeps all of it.

use heaptap_heap::{OutsideArea, OutsideKind};

use super::words::Words;

/// Fields of the block.
const DATA: usize = 1;
const DIMENSIONS: usize = 2;
const FLAGS: usize = 3;
const PROXY: usize = 4;
const FIRST_DIMENSION: usize = 5;

/// Fields of the proxy.
const PROXY_DATA: usize = 1;
/// Of a mapped file; otherwise 0.
const PROXY_SIZE: usize = 2;

/// `CAML_BA_MANAGED_MASK`: data that somebody else owns has neither bit.
const MANAGED_MASK: usize = 0x600;
/// `CAML_BA_MAPPED_FILE`.
const MAPPED: usize = 0x400;
/// `CAML_BA_KIND_MASK`.
const KIND_MASK: usize = 0xff;

/// A bigarray whose data the runtime owns.
#[derive(Clone, Copy)]
pub(super) struct Bigarray {
    data: usize,
    /// What it shows: its elements.
    pub(super) bytes: u64,
    proxy: usize,
    kind: OutsideKind,
}

impl Bigarray {
    /// `None` for another custom block, and for data of somebody else.
    pub(super) fn read(
        words: Words,
        block: usize,
        size: usize,
        identifier: &[u8],
    ) -> Option<Bigarray> {
        if !identifier.starts_with(b"_bigarr") || size < FIRST_DIMENSION {
            return None;
        }
        let flags = words.field(block, FLAGS);
        if flags & MANAGED_MASK == 0 {
            return None;
        }
        let dimensions = words.field(block, DIMENSIONS).min(size - FIRST_DIMENSION);
        let elements = (0..dimensions)
            .map(|index| words.field(block, FIRST_DIMENSION + index) as u64)
            .fold(1, u64::saturating_mul);
        let is_mapped = flags & MANAGED_MASK == MAPPED;
        Some(Bigarray {
            data: words.field(block, DATA),
            bytes: elements.saturating_mul(element_bytes(flags & KIND_MASK)),
            proxy: words.field(block, PROXY),
            kind: if is_mapped { OutsideKind::Mapped } else { OutsideKind::Allocated },
        })
    }

    /// What it keeps. Of an array that was sliced, the proxy has the beginning, but the length only of mapped files:
    /// then the data goes at least to the end of what this slice shows.
    pub(super) fn area(&self, words: Words, block: usize, operations: usize) -> OutsideArea {
        let (mut start, mut bytes) = (self.data as u64, self.bytes);
        if self.proxy != 0 {
            let base = words.field(self.proxy, PROXY_DATA) as u64;
            let size = words.field(self.proxy, PROXY_SIZE) as u64;
            if let Some(before) = start.checked_sub(base) {
                start = base;
                bytes = bytes.saturating_add(before).max(size);
            }
        }
        let (block, operations) = (block as u64, operations as u64);
        OutsideArea { block, operations, start, bytes, kind: self.kind }
    }
}

/// The size of an element, by its kind (`caml_ba_element_size`, `runtime/bigarray.c`).
fn element_bytes(kind: usize) -> u64 {
    const BYTES: [u64; 14] = [4, 8, 1, 1, 2, 2, 4, 8, 8, 8, 8, 16, 1, 2];
    BYTES.get(kind).copied().unwrap_or(1)
}
