//! What is known of this process, and how its snapshots are taken.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use heaptap_settings::Trigger;

use super::names::SnapshotNames;
use super::sessions::Sessions;
use super::settings::Settings;
use crate::safe_point;
use crate::snapshot::{self, Method, Order, Reason, SnapshotError, Taken};
use crate::sys::race_once::RaceOnce;
use crate::sys::thread::{self, JoinOutcome};
use crate::tracer::{self, say};

/// What can be done with the runtime of this process.
#[derive(Clone)]
pub(crate) struct RuntimeSupport {
    /// The runtime, as messages name it.
    pub(crate) runtime: &'static str,
    /// Why its heap cannot be walked, if it cannot.
    pub(crate) refusal: Option<String>,
    /// Starts and stops sessions, or why that is not possible.
    pub(crate) sessions: Result<&'static dyn Sessions, String>,
}

impl RuntimeSupport {
    /// Of a host that links this library: it has registered its heap, or will.
    pub(super) fn of_host() -> RuntimeSupport {
        let sessions = Err("a program that links heaptap starts and stops its traces itself, by \
                            heaptap_tracer_start and heaptap_tracer_stop"
            .to_owned());
        RuntimeSupport { runtime: "", refusal: None, sessions }
    }

    /// Of a runtime without sessions.
    #[cfg(test)]
    pub(super) fn of_test(refusal: Option<&str>) -> RuntimeSupport {
        let refusal = refusal.map(str::to_owned);
        RuntimeSupport { runtime: "test", refusal, sessions: Err("this is a test".to_owned()) }
    }

    fn is_of_host(&self) -> bool {
        self.runtime.is_empty()
    }
}

/// [`snapshot::take`], or what a test has in its place.
pub(super) type TakeSnapshot = fn(&Order) -> Result<Taken, SnapshotError>;

/// This process. Made once, and never freed.
pub(super) struct Process {
    /// A forked child has another one.
    pub(super) pid: u32,
    pub(super) triggers: Vec<Trigger>,
    /// Whether forked children take commands, too.
    pub(super) listens_in_forks: bool,
    pub(super) support: RuntimeSupport,
    names: SnapshotNames,
    take: TakeSnapshot,
    /// Commands and triggers that are being carried out.
    in_progress: AtomicUsize,
    /// The program exits: no more are begun.
    is_ending: AtomicBool,
}

/// Nobody waits for it: the program may fork while a thread makes it.
static PROCESS: RaceOnce<Process> = RaceOnce::new();

/// Records what is known of this process, the first time.
pub(super) fn record(settings: &Settings, support: RuntimeSupport) -> Option<&'static Process> {
    PROCESS.set(Process::new(settings, support, snapshot::take)).ok()
}

/// A forked child that takes commands; NULL in other processes.
static CHILD: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

/// This process, if [`record`] was called in it or in a parent that has forked.
pub(super) fn recorded() -> Option<&'static Process> {
    // SAFETY: NULL, or from `Box::leak`.
    let child = unsafe { CHILD.load(Ordering::Acquire).as_ref() };
    child.or_else(|| PROCESS.get())
}

/// Records that this process is a forked child of the one that was recorded. No snapshots are taken
/// in it by themselves.
pub(super) fn record_child() -> Option<&'static Process> {
    let parent = recorded().filter(|parent| !parent.is_current())?;
    let child = &*Box::leak(Box::new(Process {
        pid: std::process::id(),
        triggers: Vec::new(),
        listens_in_forks: parent.listens_in_forks,
        support: parent.support.clone(),
        names: parent.names.for_child(),
        take: parent.take,
        in_progress: AtomicUsize::new(0),
        is_ending: AtomicBool::new(false),
    }));
    CHILD.store(std::ptr::from_ref(child).cast_mut(), Ordering::Release);
    Some(child)
}

/// When a program's thread has its snapshot taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// At once: this thread can come to a safe point.
    Here,
    /// When another thread comes to a safe point.
    NextSafePoint,
}

/// A snapshot that the program asks for.
#[derive(Clone, Debug)]
pub(crate) struct ProgramOrder {
    /// Absolute or relative to the current directory; `None` for the names of the settings.
    pub(crate) file: Option<PathBuf>,
    pub(crate) moment: Moment,
    pub(crate) method: Method,
    pub(crate) string_bytes: u32,
    pub(crate) patience: Duration,
}

/// Takes a snapshot on a thread of the program, which has called us. Returns the
/// file's name; an error says what to do.
pub(crate) fn take_from_program(wanted: ProgramOrder) -> Result<PathBuf, String> {
    let process = of_program()?;
    let ProgramOrder { file, moment, method, string_bytes, patience } = wanted;
    let path = match file {
        Some(file) => std::path::absolute(&file).map_err(|error| error.to_string())?,
        None => process.next_name(),
    };
    let order = Order { method, string_bytes, patience, ..Order::new(path, Reason::Program) };
    let taken = match moment {
        Moment::Here => process.take_here(order),
        Moment::NextSafePoint => process.take(&order),
    };
    taken.map(|taken| taken.path)
}

/// This process, for a thread of the program that asks for something.
pub(super) fn of_program() -> Result<&'static Process, String> {
    if PROCESS.get().is_none() && snapshot::walkable_runtime().is_err() {
        return Err("the program is neither traced nor does it take commands; start it by \
                    `heaptap run`, or register its heap if it links heaptap"
            .into());
    }
    let host = || std::env::current_dir().unwrap_or_default();
    Ok(recorded().unwrap_or_else(|| recorded_or_host(&PROCESS, host)))
}

/// This process. If nothing was recorded of it, it is that of a host that links this library and has asked for
/// nothing else.
fn recorded_or_host(process: &RaceOnce<Process>, directory: impl FnOnce() -> PathBuf) -> &Process {
    process.get_or_init(|| {
        let settings = Settings { directory: directory(), ..Settings::default() };
        Process::new(&settings, RuntimeSupport::of_host(), snapshot::take)
    })
}

impl Process {
    pub(super) fn new(settings: &Settings, support: RuntimeSupport, take: TakeSnapshot) -> Process {
        let Settings { triggers, pattern, directory, listen, listen_forks } = settings.clone();
        Process {
            pid: std::process::id(),
            triggers,
            listens_in_forks: listen && listen_forks,
            support,
            names: SnapshotNames::new(pattern, directory),
            take,
            in_progress: AtomicUsize::new(0),
            is_ending: AtomicBool::new(false),
        }
    }

    /// Whether this is the process itself, and not a forked child.
    pub(super) fn is_current(&self) -> bool {
        self.pid == std::process::id()
    }

    fn next_name(&self) -> PathBuf {
        self.names.next(tracer::live_session().map(|session| session.file()).as_deref())
    }

    /// Takes a snapshot at the next safe point, after one that is being taken. On threads of
    /// ours.
    pub(super) fn take(&self, order: &Order) -> Result<Taken, String> {
        if let Some(refusal) = &self.support.refusal {
            return Err(refusal.clone());
        }
        let start = Instant::now();
        // After the last one there is no other moment to try again.
        let waiting = match order.reason {
            Reason::Exit => order.patience.max(LONGEST_TURN),
            _ => order.patience,
        };
        loop {
            let is_early = start.elapsed() < order.patience.min(LONGEST_START);
            match (self.take)(order) {
                Err(SnapshotError::Busy)
                    if start.elapsed() < waiting && !order.cancellation.is_cancelled() =>
                {
                    std::thread::sleep(PACE);
                }
                // A host listens before it registers its heap.
                Err(SnapshotError::Unsupported(_))
                    if is_early && snapshot::walkable_runtime().is_err() =>
                {
                    std::thread::sleep(PACE);
                }
                taken => return taken.map_err(|error| error.to_string()),
            }
        }
    }

    /// Takes a snapshot while a thread of the program waits for it, which has called us or `exit`.
    fn take_here(&'static self, order: Order) -> Result<Taken, String> {
        here("heaptap-snap", move || self.take(&order))
    }

    /// Takes a snapshot that a trigger asks for. A failure is reported, and the program goes on.
    pub(super) fn take_automatically(&self, reason: Reason) {
        self.report(reason, self.take(&Order::new(self.next_name(), reason)));
    }

    /// The same when the program exits, on the thread that has called `exit`.
    pub(super) fn take_at_exit(&'static self) {
        if self.support.is_of_host() {
            // Only the host knows whether its heap can still be walked.
            let advice = "a program that links heaptap takes it itself, by \
                          heaptap_snapshot_take before it frees its heap";
            return self.report(Reason::Exit, Err(advice.into()));
        }
        let order = Order::new(self.next_name(), Reason::Exit);
        self.report(Reason::Exit, self.take_here(order));
    }

    fn report(&self, reason: Reason, taken: Result<Taken, String>) {
        if let Err(error) = taken {
            say(format_args!("no snapshot was taken ({}): {error}", reason.name()));
        }
    }

    /// Whether nothing is in progress.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.in_progress.load(Ordering::SeqCst) == 0
    }

    /// Counts as in progress until the result is dropped. `None` when the program exits.
    pub(super) fn begin(&self) -> Option<InProgress<'_>> {
        self.in_progress.fetch_add(1, Ordering::SeqCst);
        let in_progress = InProgress(self);
        // Whoever is counted before the program exits is waited for.
        (!self.is_ending.load(Ordering::SeqCst)).then_some(in_progress)
    }

    /// At exit: lets what is in progress end, so that no half-written file is left. On the thread
    /// that has called `exit`.
    pub(super) fn finish(&self, longest: Duration) {
        self.is_ending.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + longest;
        while self.in_progress.load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
            safe_point::come_to_safe_point();
            std::thread::sleep(PACE);
        }
    }
}

/// Does something while a thread of the program waits for it, which has called us or `exit`, and
/// comes to a safe point meanwhile.
///
/// It is done on a thread of ours: the program's may have little stack left.
pub(super) fn here<R: Send + 'static>(
    thread: &str,
    work: impl FnOnce() -> Result<R, String> + Send + 'static,
) -> Result<R, String> {
    let mut worker = thread::start(thread, move |_| work())
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    loop {
        safe_point::come_to_safe_point();
        worker = match worker.join(PACE) {
            JoinOutcome::Done(done) => return done,
            JoinOutcome::Panicked(message) => return Err(defect(&message)),
            JoinOutcome::Running(worker) => worker,
        };
    }
}

/// For a snapshot that has ended by a panic.
pub(super) fn defect(message: &str) -> String {
    format!("a defect in heaptap, please report it: {message}")
}

/// How long a host may take to register its heap once it listens.
const LONGEST_START: Duration = Duration::from_secs(1);
/// How long a snapshot at exit waits for the one that is being taken: on a busy machine its copy has little time.
const LONGEST_TURN: Duration = Duration::from_secs(120);

/// Between two looks at what another thread does.
const PACE: Duration = Duration::from_millis(2);

/// A command or a trigger that is being carried out.
pub(super) struct InProgress<'a>(&'a Process);

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
