//! OCaml values that events are read from: marshalled in a file, or in the heap.

/// Nothing in it is trusted: what is not as expected is `None`.
pub(super) trait Tree {
    /// An integer or a block.
    type Value: Copy;

    fn field(&self, value: Self::Value, index: usize) -> Option<Self::Value>;
    fn string(&self, value: Self::Value) -> Option<&[u8]>;
    fn int(&self, value: Self::Value) -> Option<i64>;
}
