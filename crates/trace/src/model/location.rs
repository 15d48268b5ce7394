//! Source locations.

/// A range of characters in a source file, and the function around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location<'a> {
    /// File name.
    pub file: &'a [u8],
    /// Line, from 1.
    pub line: u32,
    /// First character within the line.
    pub start_char: u32,
    /// Last character, counted from the start of the same line.
    pub end_char: u32,
    /// The function or module that contains it.
    pub definition: &'a [u8],
}

impl Location<'static> {
    /// Written in place of locations that would take too much room.
    pub const UNKNOWN: Location<'static> =
        Location { file: b"<unknown>", line: 1, start_char: 1, end_char: 1, definition: b"??" };
}

/// A name in a [`crate::LocationTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub(super) u32);

impl NameId {
    /// Names are numbered from 0 in the order in which they first appear.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A location whose names are ids in a [`crate::LocationTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NamedLocation {
    /// File name.
    pub file: NameId,
    /// Function or module.
    pub definition: NameId,
    /// Line.
    pub line: u32,
    /// First character.
    pub start_char: u16,
    /// Last character.
    pub end_char: u16,
}
