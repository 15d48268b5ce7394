//! Reading and writing: traces come in through [`input`], results leave through
//! [`output`], and everything said on the way goes to standard error
//! ([`notices`], [`progress`]).
//!
//! From trace to trace: [`copy`] keeps the file's order and ids, [`renumber`]
//! sorts by time and numbers objects anew. Both write through [`rewrite`], which
//! knows what an encoder accepts.

pub(crate) mod copy;
pub(crate) mod input;
pub(crate) mod notices;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod renumber;
pub(crate) mod rewrite;
