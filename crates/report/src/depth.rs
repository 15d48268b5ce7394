//! How much of a stack is kept.

/// How much of a stack is kept, and so what a path is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// The innermost frame: all that a table of sites needs.
    #[default]
    Innermost,
    /// The innermost frame of the program's own code, or the innermost of all if there is none.
    OwnCode,
    /// Every frame.
    Whole,
    /// The label under which the block was allocated.
    Label,
    /// The domain in which the block was allocated, and no frame.
    Domain,
    /// The kind of the block, and no frame.
    Kind,
    /// Where the block was allocated: [`heaptap_trace::Source`], and no frame.
    Source,
}
