//! Writing OCaml's heap into a snapshot: what OCaml 4 and 5 have in common.
//!
//! - `walker`: the heap of either, as snapshots see it; `code_kind`: native code or bytecode.
//! - `words`: reads the runtime's memory; `regions`: which addresses are in the heap.
//! - `blocks`: one block by its tag; `bigarray`: what those keep outside the heap; `seen`: the kinds of custom blocks that occurred,
//!   each once.
//! - `scan`: the roots that functions of the runtime report.
//! - `bytecode_stack`: the frames of bytecode; `threads`: the threads of the systhreads library.
//! - `bytecode_globals`: the variables of bytecode; `global_blocks`: the blocks that hold them.
//! - `modules`: names of modules; `code_names`: names of code; `release`: of OCaml.
//!
//! Everything but these three runs while the heap stands still, at a safe point or in a copy of
//! the process, and neither allocates nor locks.

mod bigarray;
mod blocks;
pub(super) mod bytecode_globals;
mod bytecode_stack;
mod code_kind;
mod code_names;
pub(super) mod global_blocks;
pub(super) mod modules;
mod regions;
mod release;
pub(super) mod scan;
mod seen;
pub(super) mod threads;
mod walker;
mod words;

use crate::snapshot::WalkError;

pub(super) use blocks::{BlockWriter, FINALISER_WORDS};
pub(super) use bytecode_stack::{BytecodeFrame, BytecodeFrames};
pub(super) use code_kind::CodeKind;
pub(super) use regions::Region;
pub(super) use threads::Thread;
pub(super) use walker::{Globals, OcamlHeap, VersionHeap};
pub(super) use words::Words;

/// There is no memory for what a walk has to remember.
pub(super) const NO_MEMORY: WalkError = WalkError::Write(libc::ENOMEM);
