//! Ruby 3.1: everything that is known about it. Programs for amd64 are traced unmodified.
//!
//! Ruby has event hooks of its own for objects and collections. The library is preloaded; once
//! `ruby_setup` has made the heap, the layout is proved in the live process and a hook is added, as a
//! C extension would add one. The only code that is changed is the beginning of `ruby_setup`.
//!
//! - `detect`: which release a program holds; `start`: waits until it has a heap.
//! - `symbols`: what is used of the runtime; `layout`: where it keeps what; `proof`: that it does.
//! - `sessions`: how a session begins and ends; `hooks`: what the runtime calls; `host`: the state behind that.
//! - `gate`: keeps allocations that are far from the next sample on the runtime's fast path; `hook_list`: who else
//!   wants to see them.
//! - `stack`: backtraces; `names`: of their functions, which outlive these.
//! - `values`: strings, classes and methods in memory; `runtime`: all that as a [`Runtime`].
//!
//! Facts about the runtime are from the source of Ruby 3.1.2 unless said otherwise.
//!
//! # Locks
//!
//! Hooks run under the lock of the virtual machine, one at a time, on any thread: there is one mutator.
//! That holds as long as there is one ractor; the trace ends before there is a second one. A hook
//! allocates no object and does not release the lock.
//!
//! # Death, age and place
//!
//! An object is dead if it has no mark when the collector has marked, old if its age bits say so, and
//! moved only while references are updated, where the collector calls the function of an object of ours.
//!
//! [`Runtime`]: crate::runtimes::attach::Runtime

mod detect;
mod gate;
mod hook_list;
mod hooks;
mod host;
mod layout;
mod names;
mod proof;
mod runtime;
mod sessions;
mod stack;
mod start;
mod symbols;
mod values;

pub(super) use runtime::RUBY;
