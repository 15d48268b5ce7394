//! What blocks are called in reports: blocks of one kind are alike.
//!
//! - `kind`: [`BlockKind`] and [`Kinds`], the kind of each block.
//! - `name`: their names, and those of holders.
//!
//! A block that was given a name, such as its type, is called by that. OCaml does not keep types. A closure is named after its function and a custom block after its
//! identifier; other blocks have tag and size. Sizes of big blocks are joined to ranges: arrays that differ
//! in length are alike.

mod kind;
mod name;

pub use kind::{BlockKind, KindId, Kinds, SizeRange};
pub use name::Names;
