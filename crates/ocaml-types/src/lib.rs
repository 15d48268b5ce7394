//! The OCaml types of a heap's blocks, from `.cmt` and `.cmi` files that the program's own compiler
//! reads.
//!
//! - `found`: the types of a program whose files nobody has named.
//! - `discovery`: finding those files, and the compiler.
//! - `program`: what the program's own file says about them.
//! - `cache`: what the compiler has printed before.
//! - `types.ml`: what the compiler's toplevel runs. It prints a JSON document.
//! - `script`: the lines of it that a version of the compiler takes.
//! - `compiler`, `process`: running the toplevel.
//! - `document`: from the document to a [`TypeTable`](heaptap_graph::TypeTable).
//! - `naming`: giving the blocks of a graph their types as names, and what is to say about it.
//!
//! The layout of these files changes with each compiler, so that only its own libraries can
//! read them. Nothing has to be installed beside it.

#![forbid(unsafe_code)]

mod cache;
mod compiler;
mod discovery;
mod document;
mod found;
mod naming;
mod process;
mod program;
mod script;

pub use compiler::TypesError;
pub use discovery::{Origin, Surroundings};
pub use found::{FoundFiles, FoundPlace};
pub use naming::{TypeSource, TypeSummary, name_blocks};
