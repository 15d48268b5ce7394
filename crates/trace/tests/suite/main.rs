//! What crosses the modules of the crate: whole traces, written, read, damaged.
//!
//! The map:
//!
//! - [`script`]: what a traced program did, as a list of steps, and the
//!   performing of it with the encoder. [`debug_info`]: the program's names.
//!   [`generate`]: arbitrary scripts.
//! - [`reading`]: a trace read to its end, from a slice or through a pipe.
//! - [`oracle`]: a second, slow writer and reader that do nothing clever; what
//!   the crate writes and reads is held equal to what they do.
//! - [`forge`]: packets put together by hand, right or wrong.
//! - [`traces`]: the traces to be damaged, real and generated.
//!
//! The rest are tests. `PROPTEST_CASES` raises the number of cases; each
//! failure prints what reproduces it.

mod debug_info;
mod forge;
mod generate;
mod oracle;
mod reading;
mod script;
mod traces;

mod batches;
mod bit_flips;
mod corners;
mod damage;
mod defects;
mod elided;
mod limits;
mod merged;
mod names;
mod original;
mod refusals;
mod round_trip;
mod tailing;
mod tiny;
mod truncation;
