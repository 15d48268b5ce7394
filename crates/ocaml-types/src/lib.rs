//! The OCaml types of a heap's blocks, from `.cmt` and `.cmi` files that the program's own compiler
//! reads.
//!
//! - `types.ml`: what the compiler's toplevel runs. It prints a JSON document.
//! - `script`: the lines of it that a version of the compiler takes.
//! - `compiler`: finding and running the toplevel.
//! - `document`: from the document to a [`TypeTable`](heaptap_graph::TypeTable).
//! - `naming`: giving the blocks of a graph their types as names, and what is to say about it.
//!
//! The layout of these files changes with each compiler, so that only its own libraries can
//! read them. Nothing has to be installed beside it.

#![forbid(unsafe_code)]

mod compiler;
mod document;
mod naming;
mod script;

pub use compiler::{CompilerFiles, TypesError};
pub use naming::{TypeSummary, name_blocks};
