//! Commands to a process while it runs, and the heap snapshots that are taken by themselves.
//!
//! Nothing here runs unless the environment asks for it
//! ([`LISTEN`](heaptap_settings::LISTEN), [`SNAPSHOT`](heaptap_settings::SNAPSHOT)).
//! Then there are up to two threads, which block all signals: `heaptap-control` answers
//! clients on a Unix socket, and `heaptap-trigger` takes snapshots when a time has passed, a signal has come, a number of collections is reached or memory runs
//! short. Neither touches the heap of the program: `snapshot` waits for a safe point.
//!
//! - `settings`: what the environment asks for; `names`: the files of snapshots.
//! - `process`: what is known of this process and shared by both threads.
//! - `sessions`: what a runtime offers so that sessions can be started and stopped; `lease`: sessions that
//!   end by themselves.
//! - `answer`: what each command does. The protocol is `crates/control` and `docs/control.md`.
//! - `socket`: the directory and the socket; `server`: the thread `heaptap-control`;
//!   `connection`: one client; `jobs`: commands that take time, on threads of their own.
//! - `trigger`: the thread `heaptap-trigger`; `signal`: the signal that wakes it.
//! - `start`: starts the threads; exit and fork.
//!
//! A forked child has none of the threads. It closes its parent's socket, and neither
//! answers on it nor removes its name. If it is to take commands too, it opens one of its own at the
//! first minor collection, or when it enters a blocking section (`start`).

#![allow(unsafe_code, reason = "registers handlers for exit, fork and a signal")]

mod answer;
mod connection;
mod jobs;
mod lease;
mod names;
mod process;
mod server;
mod sessions;
mod settings;
mod signal;
mod socket;
mod start;
mod trigger;

pub(crate) use answer::command_from_program;
pub(crate) use process::{Moment, ProgramOrder, RuntimeSupport, take_from_program};
pub(crate) use sessions::{Sessions, StartOrder, StoppedSession, Wait};
pub(crate) use settings::Settings;
pub(crate) use start::{
    OpenSocket, listens, may_start_in_child, settings_of_host, start, start_for_host,
};
pub(crate) use trigger::note_major_collections;
