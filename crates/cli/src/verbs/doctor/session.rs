//! What a running program is asked for: a trace, unless it is traced already, and snapshots. Only what was begun here is
//! ended here.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use heaptap_client::Process;
use heaptap_control::{
    Command, Flushed, Rotated, SnapshotRequest, StartRequest, Started, Status, StopRequest,
    Stopped, Taken,
};
use heaptap_settings::file_name;

use super::folder::Folder;
use super::options::WatchOptions;
use crate::exit_status::Failure;
use crate::io::attaching::GRACE;
use crate::io::attaching::interruption::Interruption;
use crate::io::attaching::listening::{self, Left};
use crate::io::attaching::words::of_process;
use crate::io::running;
use crate::text::escape;

/// The rate of a program that allocates little, and the bytes a second from which on it is lower.
const USUAL_RATE: f64 = 1e-3;
const MUCH: f64 = 200e6;
const LOWEST_RATE: f64 = 1e-5;

/// How long a program is watched to know how much it allocates.
const LOOK: Duration = Duration::from_secs(1);

/// A program that is watched.
pub(super) struct Session {
    pub(super) process: Process,
    /// The trace, if the program writes one to a file.
    trace: Option<PathBuf>,
    /// The trace was begun here.
    is_own: bool,
    left: Left,
    timeout: Duration,
    /// How much of each string is in the snapshots.
    string_bytes: u32,
}

impl Session {
    /// Has the program traced for a time, unless it is.
    pub(super) fn begin(
        options: &WatchOptions,
        process: Process,
        folder: &Folder,
        span: Duration,
        interruption: &Interruption,
    ) -> Result<Session, Failure> {
        refuse_container(process)?;
        let mut session = Session {
            process,
            trace: None,
            is_own: false,
            left: Left::Nothing,
            timeout: options.timeout(span),
            string_bytes: options.string_bytes(),
        };
        if let Some(status) = listening::status(process)?
            && matches!(&status.state[..], "tracing" | "recording")
        {
            // A recorder has its trace in memory.
            session.trace = (status.state == "tracing").then(|| status.trace.clone());
            return Ok(session);
        }
        session.left =
            listening::ensure(process, session.timeout, options.despite_seccomp, interruption)?;
        interruption.check("no trace was started")?;
        session.is_own = true;
        // It also lasts while snapshots are read.
        let span = span * 2 + Duration::from_secs(60) + GRACE;
        session.start(folder, options.rate.unwrap_or(USUAL_RATE), span)?;
        if options.rate.is_none() {
            session.slow_down()?;
        }
        Ok(session)
    }

    /// A program that was started with a trace.
    pub(super) fn of_launched(options: &WatchOptions, process: Process, trace: PathBuf) -> Session {
        Session {
            process,
            trace: Some(trace),
            is_own: false,
            left: Left::Nothing,
            timeout: options.timeout(Duration::ZERO),
            string_bytes: options.string_bytes(),
        }
    }

    fn start(&mut self, folder: &Folder, rate: f64, span: Duration) -> Result<(), Failure> {
        let file = folder.free_name("trace", "ctf");
        let request = StartRequest {
            file: PathBuf::from(file_name::literal(file.as_os_str())),
            rate: Some(rate),
            span: Some(span),
            timeline: true,
            wait: Some(self.timeout),
            ..StartRequest::default()
        };
        let started: Started =
            running::ask(self.process, &Command::Start(request), "no trace was started")?;
        self.trace = Some(started.file);
        Ok(())
    }

    /// Lowers the rate if the program allocates very much.
    fn slow_down(&self) -> Result<(), Failure> {
        thread::sleep(LOOK);
        let Some(speed) = self.speed().filter(|speed| *speed > MUCH) else { return Ok(()) };
        let rate = (USUAL_RATE * MUCH / speed).max(LOWEST_RATE);
        let _: Rotated = running::ask(self.process, &Command::Rate(rate), "the rate is as it was")?;
        Ok(())
    }

    /// What the program has allocated in each second since the trace began, in bytes, by its samples.
    fn speed(&self) -> Option<f64> {
        const WORD: f64 = 8.0;
        let status: Status = self.process.ask(&Command::Status, || {}).ok()?;
        let words = status.samples as f64 / status.rate;
        Some(words * WORD / LOOK.as_secs_f64()).filter(|speed| speed.is_finite())
    }

    fn stop(&self) -> Result<Stopped, Failure> {
        let request = StopRequest { wait: Some(self.timeout) };
        running::ask(self.process, &Command::Stop(request), "the trace goes on")
    }

    pub(super) fn trace(&self) -> Option<&Path> {
        self.trace.as_deref()
    }

    /// Takes a snapshot.
    pub(super) fn snapshot(&self, file: PathBuf) -> Result<PathBuf, Failure> {
        let wait = Some(self.timeout);
        let string_bytes = self.string_bytes;
        let request = SnapshotRequest { file, wait, string_bytes, ..SnapshotRequest::default() };
        let taken: Taken =
            running::ask(self.process, &Command::Snapshot(request), "no snapshot was taken")?;
        Ok(taken.file)
    }

    /// Ends the trace if it was begun here; else has what is recorded written. Returns what did not go well.
    pub(super) fn end(&self) -> Vec<String> {
        if !self.process.is_running() {
            return Vec::new();
        }
        let mut remarks = Vec::new();
        if self.is_own {
            if let Err(failure) = self.stop() {
                let why = failure.message().unwrap_or_default().to_owned();
                remarks.push(format!("{why}; it ends by itself"));
            }
            self.left.clear(self.process);
        } else {
            // What is not written yet is not seen.
            let _: Result<Flushed, _> = self.process.ask(&Command::Flush, || {});
        }
        remarks
    }
}

fn refuse_container(process: Process) -> Result<(), Failure> {
    if process.other_root().is_none() {
        return Ok(());
    }
    let pid = process.pid();
    let what = format!(
        "it runs in a container, or has another root directory, where its files would be: run `heaptap attach {pid} \
         --snapshot --for 60s` and `heaptap snapshot {pid}`, copy the files from {}, and give them to \
         `heaptap doctor`",
        escape::path(&PathBuf::from(format!("/proc/{pid}/root")))
    );
    Err(Failure::Trouble(of_process(process, &what)))
}
