//! How to read: what to do about defects, and what a trace may cost.

/// What to do about a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Stop there.
    Strict,
    /// Leave the packet out, count it in [`Losses`](crate::Losses), go on.
    Lenient,
}

/// Bounds on what a trace may make the reader keep.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Frames in the last backtraces of all domains together, 8 bytes each.
    pub frames: usize,
    /// Domains; each takes 160 KiB when it is busy.
    pub domains: usize,
}

impl Default for Limits {
    /// Four million frames, 4,096 domains.
    fn default() -> Self {
        Limits { frames: 4 << 20, domains: 4096 }
    }
}
