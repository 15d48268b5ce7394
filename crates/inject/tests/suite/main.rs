//! Real programs, stock compilers' and stock programs, injected into at random moments.
//!
//! What needs a tool that is missing says so and passes; with `HEAPTAP_TEST_ALL=1` it fails.
//! `HEAPTAP_INJECTIONS` and `HEAPTAP_KILLS` are how many of each there are over all programs,
//! some dozen by default; `HEAPTAP_SEED` repeats a run's moments.

mod children;
mod kills;
mod moments;
mod namespaces;
mod programs;
mod refusals;
mod target;
mod text;
mod toolchain;
mod undone;
