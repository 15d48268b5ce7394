//! Kinds and field widths of the words that records are made of. The table in
//! [`record`](super) is the reference.

/// The kind of a record: the low 8 bits of its first word.
pub(super) const KIND_BITS: u32 = 8;
pub(super) const KIND_MASK: u64 = (1 << KIND_BITS) - 1;

pub(super) const TIME: u64 = 1;
pub(super) const FRAMES: u64 = 2;
pub(super) const ALLOC: u64 = 3;
pub(super) const SMALL_ALLOC: u64 = 4;
pub(super) const STACK: u64 = 5;
pub(super) const REPEAT_FRAME: u64 = 6;
pub(super) const SAMPLE: u64 = 7;
pub(super) const RATE: u64 = 8;

/// Kinds from here up to [`COLLECT`] are promotions.
pub(super) const PROMOTE: u64 = 0x80;
/// Kinds from here up are collections.
pub(super) const COLLECT: u64 = 0xc0;
/// In the kind of a promotion or collection: the number of blocks after the first.
pub(super) const MORE_BLOCKS_MASK: u64 = 0x3f;

/// The largest value that fits beside the kind.
pub(super) const MAX_PAYLOAD: u64 = u64::MAX >> KIND_BITS;

/// The width of the frame count in a sample's first word.
pub(super) const SAMPLE_FRAMES_BITS: u32 = 8;

/// The largest length that fits beside a sample's kind and frame count. A small
/// allocation alone could hold a larger one, but either record must do.
pub(super) const MAX_SMALL_LENGTH: u64 = u64::MAX >> (KIND_BITS + SAMPLE_FRAMES_BITS);

/// Where an allocation's fields begin.
pub(super) const SOURCE_SHIFT: u32 = 8;
pub(super) const PART_SHIFT: u32 = 16;
pub(super) const SAMPLES_SHIFT: u32 = 24;

/// The largest sample count of an allocation; more are counted as that many.
pub(super) const MAX_SAMPLES: u64 = u64::MAX >> SAMPLES_SHIFT;

/// Where the number of kept frames begins. The number of new frames is below it.
pub(super) const KEPT_FRAMES_SHIFT: u32 = 32;

/// The most new frames in one record.
pub(super) const MAX_NEW_FRAMES: usize = (1 << (KEPT_FRAMES_SHIFT - KIND_BITS)) - 1;
