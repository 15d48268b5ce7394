//! `heaptap snapshot`: snapshots of a program's heap.
//!
//! - `request`: asks a running program for one; `listing`: the programs that can be asked.
//! - `check`: whether a snapshot is sound, and what is reachable in it.

mod check;
mod listing;
mod request;

use std::ffi::OsString;

use clap::Args;

use crate::exit_status::VerbResult;

/// Take a snapshot of a running program's heap, or check one
///
/// The snapshot has every block of the heap, its pointers, and the roots that hold them. The
/// program stands still only while the kernel copies its page tables, and goes on. It
/// must have been started by `heaptap run`, or with the library loaded and `HEAPTAP_LISTEN=1`
/// in its environment.
///
/// Without PID, the processes that can be asked are listed. With --check, a snapshot is read to its
/// end, and it is checked whether its parts fit together.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap snapshot
  heaptap snapshot 4711
  heaptap snapshot 4711 -o before.heap
  heaptap snapshot --check before.heap --reachable
  heaptap snapshot server --with-strings=64 --timeout 60

Exit status:
  0  the snapshot was taken or is sound, or the processes are listed
  1  with --check: the snapshot is defective
  2  a wrong call, a process that cannot be asked, or no snapshot could be taken")]
pub(crate) struct Snapshot {
    /// The process to take a snapshot of: its number, or the name of its program if no other process
    /// that can be asked runs the same
    #[arg(value_name = "PID")]
    pid: Option<OsString>,

    #[command(flatten)]
    request: request::Request,

    #[command(flatten)]
    check: check::CheckOptions,
}

impl Snapshot {
    pub(crate) fn run(&self) -> VerbResult {
        if let Some(file) = self.check.file() {
            return self.check.run(file);
        }
        match &self.pid {
            Some(process) => self.request.run(process),
            None => listing::run(),
        }
    }
}
