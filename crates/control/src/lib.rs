//! What a process that heaptap is loaded into and the tools say to each other, as types and
//! with one encoding.
//!
//! - [`Command`] and its answers ([`Taken`], [`Status`], [`Flushed`], [`Started`], [`Stopped`],
//!   [`Marked`], [`Rotated`], [`Budgeted`], [`Recorded`]): the control socket of a process. `docs/control.md` describes it, and
//!   `tests/documented.rs` compares the two.
//! - [`Reply`]: the lines that a client gets. [`socket`]: where the socket is.
//! - [`journal`]: what the processes of `heaptap run` leave for its summary.
//! - [`words`]: how all of them are written, as lines of words.
//!
//! The plugin is one end, so that this crate has no dependencies, and nothing of it connects
//! to anything. The other end is `crates/client`.
//!
//! A new command is a variant of [`Command`] with its line in [`Command::USAGE`], the type of its
//! answer, what the plugin does (`src/control/answer.rs`), and a verb that asks for it.

#![forbid(unsafe_code)]

mod answer;
mod command;
pub mod journal;
pub mod socket;
pub mod words;

pub use answer::*;
pub use command::*;
pub use socket::{CLIENT_SECONDS, MAX_LINE, PROGRESS_SECONDS};
