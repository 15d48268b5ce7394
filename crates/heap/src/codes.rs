//! The small numbers that say what follows in a stream.

/// Codes of a block in the stream of heads. A smaller one is a shape in the table.
pub(crate) mod head {
    /// A shape that is not in the table: it follows in the stream of fields.
    pub(crate) const NEW_SHAPE: u8 = 252;
    /// A big block: size, tag and fields follow in the stream of fields.
    pub(crate) const BIG: u8 = 253;
    /// The big block that the chunk before broke off.
    pub(crate) const CONTINUED: u8 = 254;
}

/// What is in the stream of fields where a big block's next pointer is not in the next field. A
/// greater number is the number of fields left out, plus two.
pub(crate) mod field {
    /// No more pointers.
    pub(crate) const LAST: u64 = 0;
    /// The block goes on in the next chunk.
    pub(crate) const BROKEN_OFF: u64 = 1;
}

/// What may follow in the stream of extras.
pub(crate) mod extra {
    pub(crate) const LAST: u8 = 0;
    pub(crate) const CODE: u8 = 1;
    pub(crate) const CUSTOM: u8 = 2;
    pub(crate) const STRING: u8 = 3;
}

/// Codes of the parts of an ephemeron.
pub(crate) mod part {
    pub(crate) const LAST: u64 = 0;
    /// The ephemeron goes on in the next chunk.
    pub(crate) const BROKEN_OFF: u64 = 1;
    pub(crate) const DATA: u64 = 2;
    /// A key right behind the one before. A greater number leaves out some.
    pub(crate) const KEY: u64 = 3;
}
