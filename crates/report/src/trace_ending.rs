//! How one of several traces ends.

/// How one of several traces ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEnding {
    /// With its process: its blocks are gone.
    Process,
    /// Its process goes on in another file, which does not say what becomes of these blocks:
    /// any number of them may stay alive.
    Continued,
}
