//! What any runtime that is traced unmodified needs.
//!
//! A runtime is a folder beside this one that implements [`Runtime`] and is
//! listed in `runtimes/mod.rs`. This folder knows no particular runtime: it
//! detects one, asks it for an [`Attachment`], starts sessions, patches the
//! runtime's functions, and undoes everything when a session stops or a step fails.
//!
//! - `runtime`: the trait, and what a runtime returns from it; `attached`: the
//!   runtime that is traced or can be; `sessions`: starts and stops one while the program runs.
//! - `start`: from the library's constructor to a running session or to one that can be asked for, and
//!   from a call of `heaptap attach` in a program that runs already;
//!   `selection`: whether this process is the one that is to be traced.
//! - `late`: runtimes in libraries that are loaded after `main` has begun.
//! - `symbols`: where the runtime's functions and variables are, and how large;
//!   `image`, `library`, `linked`, `unwinding`: the sources of that.
//! - `patch`: jumps from the runtime's functions to hooks, and what hooks call instead of these
//!   functions; `hook_table`: which hook
//!   replaces which function, checked by the compiler; `refusal`: why a
//!   runtime cannot be traced.
//! - `own_stack`: a stack for hooks of runtimes that leave C code little of
//!   theirs; `thread_pointer`: thread-local variables of the runtime.
//! - `environment`: the variables that children inherit; `limits`: whether
//!   there is memory for a trace, and files can be opened for it; `endings`: `_exit` and
//!   `execve`; `journal`: what the program that started this one wants to know.
//!
//! Dependencies: `{start, sessions} → {late, selection → environment, endings → journal, attached} →
//! {patch, runtime} → refusal → limits`, and `{patch, runtime} → symbols → {image, library, linked, unwinding}`.
//!
//! Most runs before `main` or when a runtime starts, on one thread, or where a runtime that runs
//! calls it, and may allocate. Later run `endings`, which may be called in a signal handler, and `sessions`, on a
//! thread of ours and at safe points.
//!
//! # Who reads ELF
//!
//! `image` reads the dynamic symbols of an object in this process, from memory,
//! by name. `stack/native/modules.rs` finds the unwind tables of an object inside
//! hooks, where the loader's lock must not be taken, so it asks
//! `_dl_find_object`. `crates/symbols` reads files, of other processes too, as
//! untrusted input and without `unsafe`. `heaptap run` only looks at a program's
//! headers to say why it cannot be traced.

pub(crate) mod environment;
pub(crate) mod hook_table;
pub(crate) mod image;
mod journal;
pub(crate) mod library;
pub mod linked;
pub(crate) mod own_stack;
pub(crate) mod patch;
pub(crate) mod refusal;
pub(crate) mod runtime;
pub(crate) mod symbols;
pub(crate) mod thread_pointer;

mod attached;
mod endings;
mod late;
mod limits;
mod selection;
mod sessions;
mod start;
mod unwinding;

pub(crate) use attached::attached;
pub(crate) use own_stack::OwnStack;
pub(crate) use patch::Replacement;
pub(crate) use refusal::Refusal;
pub(crate) use runtime::{Attachment, Lookup, Runtime, SessionHooks};
pub(crate) use start::{at_load, while_running};
