//! The names of the formats, and what can be said in each.

/// The format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// memtrace's version 1. Read, never written.
    Memtrace1,
    /// memtrace's version 2: one domain; every reader opens it.
    Memtrace2,
    /// memtrace's version 3: any number of domains; newer readers only.
    Memtrace3,
}

impl TraceFormat {
    /// The number of its version.
    pub fn version(self) -> u16 {
        match self {
            TraceFormat::Memtrace1 => 1,
            TraceFormat::Memtrace2 => 2,
            TraceFormat::Memtrace3 => 3,
        }
    }

    /// The format of a copy, unless another one is asked for.
    pub fn of_copy(self) -> TraceFormat {
        match self {
            TraceFormat::Memtrace1 | TraceFormat::Memtrace2 => TraceFormat::Memtrace2,
            TraceFormat::Memtrace3 => TraceFormat::Memtrace3,
        }
    }

    /// Whether it has one domain, whose allocations are numbered in their order. In a format of
    /// several, a block may be collected in the file before another domain allocates it, and a copy
    /// has to state the ids.
    pub fn has_one_domain(self) -> bool {
        self != TraceFormat::Memtrace3
    }
}
