//! Tests of the whole crate on real programs, with binutils as the oracle.
//!
//! Tests whose compiler or tool is missing are skipped with a message; with
//! `HEAPTAP_TEST_ALL=1` it is a failure.

mod hostile;
mod names;
mod native;
mod ocaml;
mod process;
mod separate;
mod stripped;
mod toolchain;
