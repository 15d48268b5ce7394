//! Which OCaml it is.

/// The major version of OCaml, on which nearly everything about a runtime depends:
/// the heap is shared by threads (4) or divided among domains (5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MajorVersion {
    /// 4.12 to 4.14.
    Four,
    /// 5.3 and later.
    Five,
}
