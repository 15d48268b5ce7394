//! The items of a snapshot.
//!
//! A word is 8 bytes, and addresses are those of the process. Addresses of
//! blocks, and so targets of pointers and roots, are multiples of 8.
//!
//! - `meta`: facts about the snapshot; `block`: blocks and segments; `root`: roots; `weak`: finalisers
//!   and ephemerons. The rest, and what a reader returns, is here.

mod block;
mod meta;
mod root;
mod weak;

pub use block::{
    Block, Code, CustomBlock, OutsideArea, OutsideKind, Pointer, Segment, SegmentKind,
};
pub use meta::MetaKey;
pub use root::{Root, RootKind, RootOwner};
pub use weak::{Ephemeron, EphemeronKey, Finaliser, FinaliserKind};

/// The most bytes of a string in a file. Longer ones are cut.
pub const MAX_STRING: usize = 4096;

/// What a code address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The code address.
    pub address: u64,
    /// The function; may be empty.
    pub function: &'a [u8],
    /// The source file; may be empty.
    pub file: &'a [u8],
    /// The line; 0 if it is unknown.
    pub line: u32,
}

/// What an [`Item::KindName`] names. The numbers are those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KindNamespace {
    /// A tag of blocks.
    Tag = 0,
    /// A kind of [`RootOwner::Host`].
    HostRoot = 1,
}

/// A block that a trace tracks too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// The block's address.
    pub address: u64,
    /// Its id in the trace.
    pub id: u64,
}

/// What a reader returns, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A fact about the snapshot.
    Meta {
        /// Its key.
        key: MetaKey,
        /// Its value.
        value: &'a [u8],
    },
    /// A range in which blocks lie.
    Segment(Segment),
    /// A block or a part of one.
    Block(Block<'a>),
    /// A root.
    Root(Root),
    /// A finaliser.
    Finaliser(Finaliser),
    /// An ephemeron or a part of one.
    Ephemeron(Ephemeron<'a>),
    /// A module's name.
    Module {
        /// Its id.
        id: u32,
        /// Its name.
        name: &'a [u8],
    },
    /// A thread.
    Thread {
        /// Its id.
        id: u32,
        /// The domain it runs on.
        domain: u32,
        /// Its name; may be empty.
        name: &'a [u8],
    },
    /// A code address that occurs in the snapshot. One may come several times.
    CodeSeen(u64),
    /// What kind of custom block has these operations.
    CustomKind {
        /// The address of the operations.
        operations: u64,
        /// Its identifier.
        identifier: &'a [u8],
    },
    /// The name of a tag or of a host's kind of roots.
    KindName {
        /// Which of the two.
        namespace: KindNamespace,
        /// The tag or kind.
        kind: u32,
        /// Its name.
        name: &'a [u8],
    },
    /// What a code address belongs to.
    Name(Name<'a>),
    /// A block that a trace tracks too.
    Tracked(Tracked),
    /// Memory outside the heap that a block keeps.
    OutsideArea(OutsideArea),
}
