//! A heap snapshot, analysed, for the verbs that show one.
//!
//! - `load`: reads a snapshot and finds what holds what.
//! - `titles`: names of holders and blocks, with what is around them.
//! - `figures`: the tables as values that JSON, CSV and text are made of.
//! - `findings`: the suspects in words.

pub(crate) mod figures;
pub(crate) mod findings;
pub(crate) mod load;
pub(crate) mod titles;
