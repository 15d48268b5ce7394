//! Tests of the whole protocol. With `--cfg loom` those that try every meeting
//! of threads, else those with real threads.

#[cfg(not(loom))]
mod fork;
#[cfg(loom)]
mod interleavings;
#[cfg(not(loom))]
mod single;
#[cfg(not(loom))]
mod stress;
