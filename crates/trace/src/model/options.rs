//! How to read: what to do about defects, and what a trace may cost.

/// What to do about a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Stop there.
    Strict,
    /// Skip the damaged part, count it in [`crate::Losses`], and continue.
    Lenient,
}

/// Bounds on what a trace may make the reader keep.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Frames in the last backtraces of all domains together, 8 bytes each.
    pub frames: usize,
    /// Domains. A busy one takes 160 KiB in the memtrace reader.
    pub domains: usize,
}

impl Default for Limits {
    /// Four million frames, 4,096 domains.
    fn default() -> Self {
        Limits { frames: 4 << 20, domains: 4096 }
    }
}
