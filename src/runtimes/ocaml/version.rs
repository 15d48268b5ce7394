//! The major version of an OCaml, on which the design of its runtime depends.

/// Each major version has its own hooks and layouts, in `four` and `five`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MajorVersion {
    /// 4.12 to 4.14: threads share one heap.
    Four,
    /// 5.3 and later: each domain has a young heap.
    Five,
}
