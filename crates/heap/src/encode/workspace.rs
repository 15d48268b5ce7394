//! The encoder's memory.

use heaptap_codec::Buffer;
use heaptap_codec::lz::{POSITIONS, Positions};

use super::blocks::BlockColumns;
use crate::chunk::MAX_CHUNK;

/// Code addresses that were listed lately.
pub(super) const RECENT_CODES: usize = 1 << 12;

/// The encoder's buffers, some 700 KiB, to be provided by the caller: nothing is allocated.
///
/// It consists of integers alone, and all-zero bytes are a valid workspace, such as
/// [`Workspace::SIZE`] bytes of a fresh anonymous mapping.
#[repr(C)]
pub struct Workspace {
    pub(super) blocks: BlockColumns,
    /// Records of one kind, which wait to be written.
    pub(super) records: Buffer<{ 64 << 10 }>,
    /// Code addresses, which come up in between.
    pub(super) codes: Buffer<{ 16 << 10 }>,
    /// The last address listed with each hash; 0 for none.
    pub(super) recent_codes: [u64; RECENT_CODES],
    /// A chunk that is being written.
    pub(super) chunk: [u8; MAX_CHUNK],
    pub(super) positions: Positions,
}

impl Workspace {
    /// Its size in bytes.
    pub const SIZE: usize = size_of::<Workspace>();

    /// An unused workspace. It is big: for the heap or a static variable.
    pub const fn new() -> Workspace {
        Workspace {
            blocks: BlockColumns::EMPTY,
            records: Buffer::EMPTY,
            codes: Buffer::EMPTY,
            recent_codes: [0; RECENT_CODES],
            chunk: [0; MAX_CHUNK],
            positions: [0; POSITIONS],
        }
    }
}

impl Default for Workspace {
    fn default() -> Workspace {
        Workspace::new()
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").finish_non_exhaustive()
    }
}
