//! The processes that heaptap is loaded into, seen from outside: finds them, and sends them
//! commands.
//!
//! A [`Process`] is found
//!
//! - by its number or the name of its program: [`Process::find`];
//! - by its control socket: [`listening()`] asks all that take commands what they are;
//! - by its trace: [`WriterWatch`] finds out whether somebody still writes a file.
//!
//! Then [`Process::ask`] sends it a [`Command`](heaptap_control::Command), and
//! [`Process::trace`] finds the trace that it has open. What both ends say to each other is
//! `crates/control`; the plugin uses that, and not this crate.

mod connection;
mod listening;
mod open_trace;
mod process;
mod writer;

pub use connection::AskError;
pub use listening::{NotFound, listening};
pub use open_trace::{FileIdentity, NoTrace, origin};
pub use process::{CallFilter, Process};
pub use writer::{NamedWriter, WriterSign, WriterWatch};
