//! A heap snapshot: every block of a runtime's heap, its pointers, and the roots that
//! hold them, in one file (`crates/heap`).
//!
//! A thread that may block orders a snapshot ([`take()`]). The runtime's next safe point
//! (`safe_point`), a moment at which its heap can be walked, carries the order out: the
//! process is copied by a raw `clone`, the program goes on, and the copy walks the heap.
//! Where the process cannot be copied, or if it is asked for, the heap is walked at the
//! safe point itself. Then the ordering thread adds the names of functions, ends the file
//! and gives it its name. Until then the file has none, or a temporary one.
//!
//! - `order`: what is asked for, what came of it, and why it failed.
//! - `walker`: what a runtime implements so that its heap can be walked.
//! - `host`: what a host reports about its heap, checked.
//! - `take`: from an order to a file.
//! - `walk`: the copy of the process, and the walk in it.
//! - `facts`: what the file says about the process; `names`: of functions;
//!   `tracked`: the blocks that a trace tracks.
//! - `output`: the file, which gets its name when it is complete.
//!
//! What runs at the safe point and in the copy neither allocates nor takes a lock: other
//! threads of the program may be inside malloc, and they do not exist in the copy.

#![allow(unsafe_code, reason = "shares memory with a copy of the process")]

mod facts;
mod host;
mod names;
mod order;
mod output;
mod take;
mod tracked;
mod walk;
mod walker;

pub(crate) use host::{HostBlock, HostFault, HostWalk};
pub(crate) use order::{Method, Order, Reason, SnapshotError, Taken};
pub(crate) use take::take;
pub(crate) use walker::{HeapEncoder, HeapWalker, WalkError, register, walkable_runtime};
