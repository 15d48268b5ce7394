//! What does not simply hold its target: finalisers and ephemerons.

/// When a finaliser runs. The numbers are those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FinaliserKind {
    /// It takes the value, so it keeps alive what the value points to: OCaml's `Gc.finalise`.
    First = 0,
    /// It runs after the value is gone: OCaml's `Gc.finalise_last`.
    Last = 1,
    /// It is due, and holds the value until it has run.
    Pending = 2,
}

/// A finaliser. It holds its function in any case, no root repeats that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finaliser {
    /// When it runs.
    pub kind: FinaliserKind,
    /// The value's block; 0 if it is none in the heap.
    pub value: u64,
    /// The function's block; 0 if it is none in the heap.
    pub function: u64,
}

/// A key of an ephemeron.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EphemeronKey {
    /// Its index.
    pub index: u64,
    /// The address of the block it points to.
    pub target: u64,
}

/// An ephemeron or a weak array, or a part of one with very many keys.
///
/// Its block has no pointers. The data is alive if the ephemeron and all its keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ephemeron<'a> {
    /// The address of its block.
    pub address: u64,
    /// Whether this is its first part.
    pub is_first: bool,
    /// Whether this is its last part.
    pub is_last: bool,
    /// The block of its data. Set in one part.
    pub data: Option<u64>,
    /// The keys that are set, by ascending index.
    pub keys: &'a [EphemeronKey],
}
