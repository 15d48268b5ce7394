//! Blocks, and the ranges of addresses in which they lie.

/// What a segment is for. The numbers are those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentKind {
    /// A part of the major heap.
    Major = 0,
    /// A young generation.
    Young = 1,
    /// A block too big for the other segments.
    Large = 2,
    /// A range that a host described.
    Host = 3,
}

impl SegmentKind {
    /// Every kind.
    pub const ALL: [SegmentKind; 4] =
        [SegmentKind::Major, SegmentKind::Young, SegmentKind::Large, SegmentKind::Host];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            SegmentKind::Major => "major",
            SegmentKind::Young => "young",
            SegmentKind::Large => "large",
            SegmentKind::Host => "host",
        }
    }
}

/// A range of addresses in which blocks lie. It comes before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What it is for.
    pub kind: SegmentKind,
    /// Its first address, a multiple of 8.
    pub start: u64,
    /// Its length.
    pub words: u64,
}

/// A field of a block that points to another block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pointer {
    /// The index of the field.
    pub field: u64,
    /// The address of the block it points to.
    pub target: u64,
}

/// A field of a block that holds a code address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The index of the field.
    pub field: u64,
    /// The code address.
    pub address: u64,
}

/// What a custom block says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CustomBlock {
    /// The address of its operations.
    pub operations: u64,
    /// The bytes that it shows outside the heap. If an [`OutsideArea`] says which these are, what the block keeps is
    /// that.
    pub outside_bytes: u64,
}

/// Where memory outside the heap comes from. The numbers are those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutsideKind {
    /// Allocated by the program.
    Allocated = 0,
    /// A file that is mapped: pages of it that were not changed can be dropped at any time.
    Mapped = 1,
}

/// Memory outside the heap that a custom block keeps, or a continuation as its stack. Blocks may keep the same memory, as
/// slices of an array do: areas that overlap are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutsideArea {
    /// The address of the block.
    pub block: u64,
    /// The address of its operations, which stands for its kind; 0 of a continuation.
    pub operations: u64,
    /// The first address.
    pub start: u64,
    /// The length.
    pub bytes: u64,
    /// Where it comes from.
    pub kind: OutsideKind,
}

/// A block, or a part of a block with very many pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The address of its first field, a multiple of 8.
    pub address: u64,
    /// Its size without its header.
    pub words: u64,
    /// Its tag.
    pub tag: u32,
    /// Whether this is its first part. Counting first parts counts blocks.
    pub is_first: bool,
    /// Whether this is its last part.
    pub is_last: bool,
    /// Its pointers, by ascending field.
    pub pointers: &'a [Pointer],
    /// Its code addresses.
    pub codes: &'a [Code],
    /// Set in one part of a custom block.
    pub custom: Option<CustomBlock>,
    /// The beginning of its contents, if they were asked for. Set in one part.
    pub string: Option<&'a [u8]>,
}
