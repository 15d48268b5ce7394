//! Tests of the whole protocol: under loom with `--cfg loom`, else with real threads.

#[cfg(not(loom))]
mod fork;
#[cfg(loom)]
mod interleavings;
#[cfg(not(loom))]
mod single;
#[cfg(not(loom))]
mod stress;
