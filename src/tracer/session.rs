//! A trace being taken, from its start to its end.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use heaptap_trace::Source;

use crate::blocks::{AddressTable, Generations};
use crate::queue::Channel;
use crate::sampling::Gaps;
use crate::stack::FrameTables;
use crate::sys::clock::{Clock, TickSource};
use crate::sys::{file, name, thread};
use crate::tracer::backtraces::{StackSource, Stacks};
use crate::tracer::counting_output::CountingOutput;
use crate::tracer::failure::Failure;
use crate::tracer::info::{entropy, trace_info};
use crate::tracer::labels::Labels;
use crate::tracer::locate::WriterHost;
use crate::tracer::message::say;
use crate::tracer::mutator::Mutator;
use crate::tracer::options::Options;
use crate::tracer::process::replace_active;
use crate::tracer::recorder::{Followed, Recorder};
use crate::tracer::registry::{MutatorRegistry, SessionStats};
use crate::tracer::state::State;
use crate::writer::{Ended, Mailbox, NextFile, Request, Writer};

/// One trace. Mutators keep it alive, so that a hook which is under way when it
/// ends still has everything it needs.
pub(crate) struct Session {
    pub(crate) options: Options,
    /// The file it began in.
    pub(crate) path: PathBuf,
    /// The process it was begun in.
    pid: u32,
    pub(crate) tables: Arc<FrameTables>,
    pub(crate) labels: Arc<Labels>,
    /// External blocks, and all others if they are followed by address.
    pub(crate) directory: AddressTable,
    state: Arc<State>,
    channel: Arc<Channel>,
    mailbox: Arc<Mailbox<CountingOutput>>,
    pub(crate) stopwatch: Stopwatch,
    worker: Mutex<Option<thread::Worker<()>>>,
    registry: Mutex<MutatorRegistry>,
    /// Says without a lock what the book has.
    pub(crate) has_orphans: AtomicBool,
    /// What goes on in a forked child; `None` if nothing could.
    successor: OnceLock<Option<Arc<Session>>>,
}

/// How long a session has gone on. Each mutator has a copy at hand.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch {
    ticks: TickSource,
    start: u64,
}

impl Stopwatch {
    /// Ticks since the session's start.
    #[inline]
    pub(crate) fn ticks(self) -> u64 {
        self.ticks.now().saturating_sub(self.start)
    }
}

/// How long the end of a process may take us: longer than the writer ever needs
/// for what fits the buffers, short enough for a file system that hangs.
const LONGEST_STOP: Duration = Duration::from_secs(20);

impl Session {
    /// Opens the file and starts the writer. What goes wrong is said.
    pub(crate) fn start(
        mut options: Options,
        tables: Arc<FrameTables>,
        labels: Arc<Labels>,
    ) -> Result<Arc<Session>, Failure> {
        if options.seed == 0 {
            options.seed = entropy();
        }
        let (channel, consumer) = Channel::new(options.buffers).ok_or(Failure::Memory)?;
        let ticks = TickSource::detect();
        let start_ticks = ticks.now();
        let clock = Clock::start(ticks);
        let state = Arc::new(State::new());
        let out = open(&options.file, &state)?;
        let mailbox = Arc::new(Mailbox::new());
        let file = out.out.path().to_owned();
        let path = file.display().to_string();
        let time = (clock, ticks, start_ticks);
        let host = WriterHost::new(&options, &path, (&tables, &labels, &state), time);
        let info = trace_info(&options);
        let lanes = (consumer, Arc::clone(&mailbox));
        let writer = Writer::new(lanes, host, (out, options.format()), &info).map_err(|error| {
            say(format_args!("cannot write {path}: {error}; not tracing"));
            Failure::File
        })?;
        let worker = run(writer, Arc::clone(&state)).map_err(|error| {
            say(format_args!("cannot start the writer thread: {error}; not tracing"));
            Failure::Thread
        })?;
        let orphans = Generations::new().ok_or(Failure::Memory)?;
        Ok(Arc::new(Session {
            options,
            path: file,
            pid: std::process::id(),
            tables,
            labels,
            directory: AddressTable::new(),
            state,
            channel,
            mailbox,
            stopwatch: Stopwatch { ticks, start: start_ticks },
            worker: Mutex::new(Some(worker)),
            registry: Mutex::new(MutatorRegistry::new(orphans)),
            has_orphans: AtomicBool::new(false),
            successor: OnceLock::new(),
        }))
    }

    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.state.is_live()
    }

    /// Why it is not live.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.state.failure()
    }

    /// A new mutator, with the blocks that ended ones have left.
    pub(crate) fn mutator(self: &Arc<Self>, way: StackSource) -> Result<Mutator, Failure> {
        if !self.is_live() {
            return Err(Failure::Off);
        }
        let stacks = Stacks::new(way, self.options.max_frames, self.options.native_frames)
            .ok_or(Failure::Memory)?;
        let blocks = Generations::new().ok_or(Failure::Memory)?;
        let producer = self.channel.producer().ok_or(Failure::Mutators)?;
        let lane = producer.lane();
        if self.options.one_mutator && lane != 0 {
            return Err(Failure::Mutators);
        }
        let (number, stream, counters) = self.lock().begin(lane);
        let gaps = Gaps::new(self.options.rate, self.options.seed, stream);
        let recorder = Recorder {
            session: Arc::clone(self),
            state: Arc::clone(&self.state),
            tables: Arc::clone(&self.tables),
            has_headers: self.options.header_words > 0,
            young_followed: Followed::usually(Source::Minor, self.options.follow),
            counters,
            stacks,
            blocks,
            producer,
            number,
        };
        let mut mutator = Mutator::new(gaps, recorder);
        mutator.adopt_orphans();
        Ok(mutator)
    }

    /// Whether ended mutators have left blocks that nobody has taken over.
    #[inline]
    pub(crate) fn has_orphans(&self) -> bool {
        self.has_orphans.load(Ordering::Acquire)
    }

    /// Notes the handle of a mutator, for sweeps over all of them.
    pub(crate) fn enter(&self, handle: usize) {
        self.lock().handles.push(handle);
    }

    /// Forgets a handle.
    pub(crate) fn leave(&self, handle: usize) {
        self.lock().handles.retain(|&known| known != handle);
    }

    /// The handle with this index, in the order in which they were entered.
    pub(crate) fn mutator_handle(&self, index: usize) -> Option<usize> {
        self.lock().handles.get(index).copied()
    }

    /// Everything recorded so far is in the file afterwards.
    pub(crate) fn flush(&self) -> Result<(), Failure> {
        self.ask(Request::Flush)
    }

    /// The same where neither locks nor memory may be taken, such as in a signal
    /// handler. Waits no longer than that. Nothing happens in another process
    /// than its own, even one that shares its memory.
    pub(crate) fn flush_signal_safe(&self, longest: Duration) -> bool {
        self.is_live()
            && !self.has_forked()
            && self.pid == std::process::id()
            && self.mailbox.flush_signal_safe(longest, || self.channel.wake_writer())
    }

    /// Goes on in another file.
    pub(crate) fn rotate(&self, file: &[u8]) -> Result<(), Failure> {
        if !self.is_live() {
            return Err(Failure::Off);
        }
        let out = open(file, &self.state)?;
        let info = trace_info(&self.options);
        self.ask(|done| Request::Rotate(Box::new(NextFile { out, info }), done))
    }

    fn ask(
        &self,
        request: impl FnOnce(std::sync::mpsc::Sender<()>) -> Request<CountingOutput>,
    ) -> Result<(), Failure> {
        if !self.is_live() {
            return Err(Failure::Off);
        }
        let answered = self.mailbox.ask(request, || self.channel.wake_writer());
        if answered { Ok(()) } else { Err(self.failure().unwrap_or(Failure::Off)) }
    }

    /// Ends the trace: hooks do nothing from now on, and what they told is in
    /// the file afterwards.
    pub(crate) fn stop(&self) -> Result<(), Failure> {
        self.stop_and(Request::Stop, thread::Worker::join)
    }

    /// The same at the end of the process.
    pub(crate) fn stop_at_exit(&self) -> Result<(), Failure> {
        self.stop_and(Request::Leave, thread::Worker::join_at_exit)
    }

    fn stop_and(
        &self,
        how: Request<CountingOutput>,
        join: fn(thread::Worker<()>, Duration) -> thread::JoinOutcome<()>,
    ) -> Result<(), Failure> {
        let ended = self.state.end(Failure::Off);
        self.mailbox.leave(how);
        self.channel.wake_writer();
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            match join(worker, LONGEST_STOP) {
                thread::JoinOutcome::Done(()) => {}
                thread::JoinOutcome::Panicked(message) => {
                    say(format_args!("the defect in the writer thread was: {message}"));
                }
                thread::JoinOutcome::Running(worker) => {
                    say(format_args!(
                        "writing took over {} s; the end of the trace is missing",
                        LONGEST_STOP.as_secs()
                    ));
                    worker.forget();
                }
            }
        }
        if !ended {
            return Err(Failure::Off);
        }
        self.tell_losses();
        Ok(())
    }

    fn tell_losses(&self) {
        let totals = self.stats().totals;
        if totals.dropped != 0 {
            say(format_args!(
                "{} of {} sampled blocks were dropped, since the writer fell behind; a lower rate \
                 or a larger buffer_kib helps",
                totals.dropped,
                totals.sampled_blocks()
            ));
        }
    }

    /// Turns it off at once, without waiting for anything.
    pub(crate) fn turn_off(&self, why: Failure) -> bool {
        let ended = self.state.end(why);
        self.mailbox.leave(Request::Stop);
        self.channel.wake_writer();
        ended
    }

    /// All that is counted.
    pub(crate) fn stats(&self) -> SessionStats {
        let mut numbers = self.lock().stats();
        let tick_ns = self.state.tick_ns.load(Ordering::Relaxed);
        let hook_ns = (u128::from(numbers.totals.hook_ticks) * u128::from(tick_ns)) >> 20;
        numbers.hook_ns = u64::try_from(hook_ns).unwrap_or(u64::MAX);
        numbers.bytes = self.state.bytes.load(Ordering::Relaxed);
        numbers.live_blocks += self.directory.len() as u64;
        numbers
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, MutatorRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // --- After a fork ---

    /// This process is a child now: the thread and the file are the parent's.
    pub(crate) fn forked(&self) {
        self.state.forked();
    }

    pub(crate) fn has_forked(&self) -> bool {
        self.state.has_forked()
    }

    /// The session that goes on where this one ended by a fork; else this.
    pub(crate) fn current(self: &Arc<Self>) -> Arc<Session> {
        match self.successor.get() {
            Some(Some(session)) => session.current(),
            _ => Arc::clone(self),
        }
    }

    /// In a child: the session of its own, if its file has a name of its own.
    pub(crate) fn successor(self: &Arc<Self>) -> Option<Arc<Session>> {
        let begin = || {
            if !name::has_pid(OsStr::from_bytes(&self.options.file)) {
                self.state.end(Failure::Off);
                return None;
            }
            let (tables, labels) = (Arc::clone(&self.tables), Arc::clone(&self.labels));
            let session = Session::start(self.options.clone(), tables, labels).ok()?;
            replace_active(&session);
            Some(session)
        };
        self.successor.get_or_init(begin).clone()
    }
}

/// Starts the writer thread. Should it panic, the session ends, and no mutator
/// waits for it.
fn run(
    writer: Writer<WriterHost, CountingOutput>,
    state: Arc<State>,
) -> std::io::Result<thread::Worker<()>> {
    thread::start("heaptap-writer", move |finish| {
        match catch_unwind(AssertUnwindSafe(|| writer.run())) {
            Ok(Ended::InOrder) => {}
            Ok(Ended::WithTheProcess) => finish.rest(),
            Err(panic) => {
                if state.end(Failure::Panic) {
                    say(format_args!("a defect in the writer thread; tracing ends here"));
                }
                resume_unwind(panic);
            }
        }
    })
}

fn open(pattern: &[u8], state: &Arc<State>) -> Result<CountingOutput, Failure> {
    let pattern = OsStr::from_bytes(pattern);
    let path = name::expand(pattern, name::ProcessFacts::gather).map_err(|error| {
        say(format_args!("cannot trace into {}: {error}", pattern.display()));
        Failure::File
    })?;
    let out = file::create(&path).map_err(|error| {
        say(format_args!("{error}; not tracing"));
        Failure::File
    })?;
    Ok(CountingOutput { out, state: Arc::clone(state) })
}
