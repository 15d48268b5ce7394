//! Arrays in anonymous mappings, never from malloc.
//!
//! Hooks may not call malloc: the host may be inside it, or may have replaced it. What
//! must grow inside a hook is in a [`MappedVec`], which grows by one `mremap`. What never
//! grows is in a [`MappedArray`]. Pages that are never touched occupy no memory, so
//! capacities may be generous.
//!
//! Nothing here panics or unwinds. A refused mapping is `None` or `false`, and `errno` is
//! preserved.

mod array;
mod mapping;
#[cfg(test)]
mod tests;
mod vec;

pub(crate) use array::{MappedArray, Region, Zeroable};
pub(super) use mapping::map_anonymous;
pub(crate) use vec::MappedVec;
