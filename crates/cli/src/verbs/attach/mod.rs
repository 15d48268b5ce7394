//! `heaptap attach`: traces a program that was not started for it.
//!
//! `watch` waits until the trace is to end, and ends it.

mod watch;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use heaptap_client::{NotFound, Process};
use heaptap_control::{Command, SnapshotRequest, StartRequest, Started, Taken};
use heaptap_report::figures::units::{bytes, count, short_duration};

use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::attaching::interruption::Interruption;
use crate::io::attaching::place::{self, Place};
use crate::io::attaching::{GRACE, listening};
use crate::io::notices::say;
use crate::io::running;
use crate::io::trace_options::TraceOptions;

use watch::Watch;

/// Trace a program that runs already, and was not started for it
///
/// The program can be any dynamically linked one of OCaml 4.12 to 4.14 with glibc 2.34 or later, native
/// or bytecode. heaptap's library is loaded into it, at a point where the runtime itself calls:
/// its threads stand still for less than a millisecond, no register is changed, and what is written is taken
/// back. Then the trace begins as by `heaptap start`. At its end the program's code is as in its file, and the library
/// stays in it, idle; a second attach needs no more than its socket.
///
/// Needed is the right to debug the program: be its user, where ptrace is not restricted, or root. The program
/// writes the trace, with its own rights. Of one that runs in a container, the file is inside the container.
///
/// The trace lasts for the time of --for, until Ctrl-C, or until the program ends. If this command is killed,
/// a trace with --for still ends in time; one without goes on, `heaptap ps` shows it, and `heaptap stop` ends
/// it.
///
/// What the program allocated before is not in the trace; --snapshot takes a heap snapshot first, which has it.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap attach 4711 --for 30s
  heaptap attach 4711 -o leak.ctf -r 1e-4 --snapshot
  sudo heaptap attach 4711 -o /var/tmp/leak.ctf --for 10m --detach

Exit status:
  0  the trace is complete; with --detach, it has begun
  2  a wrong call, a program that cannot be attached to or is traced already, or a trace that lacks its
     end or goes on")]
pub(crate) struct Attach {
    /// The number of the process
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: u32,

    /// The trace, which the program writes, with `%p`, `%e` and `%t` as in `heaptap run`. Default: PROGRAM-PID.ctf
    /// in the current directory, or in a container in its /tmp. A second trace of the same process gets a number
    /// behind its name
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    #[command(flatten)]
    trace: TraceOptions,

    /// How long to trace: such as 30s, 5m or 1h. Default: until Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = running::span)]
    span: Option<Duration>,

    /// Take a heap snapshot first, into FILE.heap beside the trace: it has what was there before, and
    /// `heaptap report` shows that
    #[arg(long)]
    snapshot: bool,

    /// Begin the trace and leave: it ends after the time of --for, or by `heaptap stop`
    #[arg(long)]
    detach: bool,

    /// Attach to a program with a filter of system calls (seccomp), as containers have it. A filter that kills
    /// for a call that it does not know, such as those that systemd sets, may kill the program: the library
    /// maps memory, opens files and a socket, and starts threads
    #[arg(long)]
    despite_seccomp: bool,

    /// The longest wait, in seconds, until the program allocates, and until it can be interrupted:
    /// such as 60 or 0.5, at most 3600
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = running::timeout)]
    timeout: Duration,
}

impl Attach {
    pub(crate) fn run(&self) -> VerbResult {
        let none = || Failure::Trouble(NotFound::Number(self.pid).to_string());
        let process = Process::of(self.pid).ok_or_else(none)?;
        let place = Place::of(process, self.output.as_deref())?;
        let interruption = Interruption::begin()?;
        let left = listening::ensure(process, self.timeout, self.despite_seccomp, &interruption)?;
        let snapshot = self.take_snapshot(process, &place)?;
        interruption.check("no trace was started")?;
        let started = self.start(process, &place)?;
        if let Some(snapshot) = snapshot {
            place.put_beside(&snapshot, &started.file);
        }
        say(&self.began(&place, &started));
        if self.detach {
            return Ok(Verdict::Sound);
        }
        let watch = Watch { process, place, span: self.span, timeout: self.timeout };
        let ended = watch.run(&started, &interruption);
        left.clear(process);
        ended
    }

    /// Takes a snapshot, if one is asked for. Returns its name, as the program knows it.
    fn take_snapshot(&self, process: Process, place: &Place) -> Result<Option<PathBuf>, Failure> {
        if !self.snapshot {
            return Ok(None);
        }
        let file = place::beside(place.file());
        let wait = Some(self.timeout);
        let request = SnapshotRequest { file, wait, ..SnapshotRequest::default() };
        let lacks = "no snapshot was taken, and no trace was started";
        let taken: Taken = running::ask(process, &Command::Snapshot(request), lacks)?;
        say(&format!(
            "{}: {} in {} of heap; the program stood still for {:.1} ms",
            place.shown(&taken.file),
            count(taken.blocks, "block", "blocks"),
            bytes(taken.words as f64 * 8.0),
            taken.pause_us as f64 / 1000.0,
        ));
        Ok(Some(taken.file))
    }

    fn start(&self, process: Process, place: &Place) -> Result<Started, Failure> {
        let request = StartRequest {
            file: place.pattern().to_owned(),
            span: self.span.map(|span| span + GRACE),
            wait: Some(self.timeout),
            ..self.trace.request()
        };
        running::ask(process, &Command::Start(request), "no trace was started")
    }

    fn began(&self, place: &Place, started: &Started) -> String {
        let end = match (self.span, self.detach) {
            (Some(span), _) => format!("for {}", short_duration(span.as_micros() as f64)),
            (None, false) => "until Ctrl-C".to_owned(),
            (None, true) => format!("until `heaptap stop {}`", self.pid),
        };
        format!("tracing into {} at rate {}, {end}", place.shown(&started.file), started.rate)
    }
}
