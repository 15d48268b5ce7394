//! What crosses modules, against real programs and binutils' own answers.
//!
//! A missing compiler or tool is said aloud and its tests are skipped; with
//! `HEAPTAP_TEST_ALL=1` it is a failure.

mod hostile;
mod names;
mod native;
mod ocaml;
mod process;
mod separate;
mod stripped;
mod toolchain;
