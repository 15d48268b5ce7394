//! One trace of this process, from its start to its end.
//!
//! Mutators ([`Mutator`](crate::tracer::Mutator)) are built on top of a session:
//! nothing here knows them, or how they record. Runs on the host's threads,
//! outside of hooks, except for the few methods that say otherwise.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use heaptap_settings::file_name;

use crate::blocks::{AddressFilter, AddressTable};
use crate::probes::{Note, ProbeRegistry, RegistryLock, Sidecar, TimeLine, text};
use crate::queue::{BlockId, Channel};
use crate::sampling::Rate;
use crate::stack::{FrameTables, TablesLock};
use crate::sys::clock::{Clock, Moment, TickSource};
use crate::sys::write_signals::without_write_signals;
use crate::tracer::budget::{BudgetKeeper, Controller, SharedController};
use crate::tracer::cost::CostMeter;
use crate::tracer::counting_output::CountingOutput;
use crate::tracer::failure::Failure;
use crate::tracer::flight_recorder::{self, FlightRecorder, RecorderWatch};
use crate::tracer::frame_locator::FrameLocator;
use crate::tracer::host_names::{HostNames, HostNamesLock};
use crate::tracer::info::{entropy, new_file, now_us, sidecar_owner};
use crate::tracer::labels::{Labels, LabelsLock};
use crate::tracer::message::say;
use crate::tracer::options::Options;
use crate::tracer::registry::{MutatorRegistry, Orphans, SessionStats};
use crate::tracer::series::{self, CurrentFile, Parts};
use crate::tracer::session_clock::SessionClock;
use crate::tracer::start_error::StartError;
use crate::tracer::state::State;
use crate::tracer::stopwatch::Stopwatch;
use crate::tracer::writer_context::WriterContext;
use crate::tracer::writer_thread::{Stop, WriterThread};
use crate::writer::{IdentifiedBlocks, Mailbox, TraceOutput, Writer, open};

/// How long the end of a program waits for what a recorder writes.
const LONGEST_DUMP: Duration = Duration::from_secs(20);

/// A session. Mutators share it, so that a hook that is running when the session
/// ends still has everything it needs.
pub(crate) struct Session {
    pub(crate) options: Options,
    /// The name of the output it began with.
    pub(crate) output_name: OsString,
    /// The file that it writes now.
    current_file: CurrentFile,
    /// The process that started it.
    pid: u32,
    pub(crate) tables: Arc<FrameTables>,
    pub(crate) labels: Arc<Labels>,
    pub(crate) names: Arc<HostNames>,
    pub(crate) probes: Arc<ProbeRegistry>,
    pub(crate) time_line: Arc<TimeLine>,
    /// External blocks, and all others if they are tracked by address.
    pub(crate) by_address: Arc<AddressTable>,
    /// Blocks that carry a tag, if they are tracked by address.
    pub(crate) tagged: Arc<AddressTable>,
    /// Of both.
    pub(crate) filter: Arc<AddressFilter>,
    /// How often something was about to move.
    pub(crate) moving: AtomicUsize,
    pub(crate) state: Arc<State>,
    pub(crate) channel: Arc<Channel>,
    pub(crate) stopwatch: Stopwatch,
    pub(super) writer: WriterThread,
    /// Of a trace that is kept in memory.
    recorder: Option<Arc<FlightRecorder>>,
    registry: Arc<Mutex<MutatorRegistry>>,
    /// Chooses the rate, if there is a budget.
    pub(super) controller: SharedController,
    meter: CostMeter,
    /// Whether the registry has orphans, readable without its lock.
    has_orphans: AtomicBool,
    /// In a forked child, the session that replaced this one; `None` if tracing
    /// could not continue. Set once.
    successor: OnceLock<Option<Arc<Session>>>,
}

impl Session {
    /// Opens the output and starts the writer thread.
    pub(crate) fn start(mut options: Options, shared: Shared) -> Result<Arc<Session>, StartError> {
        let Shared { tables, labels, names, probes, forked } = shared;
        let time_line = Arc::new(TimeLine::new());
        if options.seed == 0 {
            options.seed = entropy();
        }
        if let Some(bytes) = options.rotation.and_then(|limits| limits.bytes) {
            // Of the bytes of a part.
            options.probes_limit = options.probes_limit.min(bytes / 8);
        }
        let recorder = match options.recorder {
            Some(limits) => {
                options.probes_limit = options.probes_limit.min(limits.part_bytes() / 8);
                Some(FlightRecorder::new(&options, limits)?)
            }
            None => None,
        };
        let (channel, consumer) = Channel::new(options.buffers).ok_or(Failure::Memory)?;
        let filter = Arc::new(AddressFilter::new().ok_or(Failure::Memory)?);
        let (stopwatch, clock, start_us) = match forked {
            // The program goes on reading the stopwatch of its parent until now.
            Some(Forked { stopwatch, at }) => {
                probes.forget_notes_before(stopwatch.ticks_until(at.ticks));
                let clock = Clock::started_at(stopwatch.tick_source(), at);
                (stopwatch, clock, at.wall_us)
            }
            None => {
                let stopwatch = Stopwatch::start(TickSource::detect());
                (stopwatch, Clock::start(stopwatch.tick_source()), now_us())
            }
        };
        let state = Arc::new(State::new(options.rate));
        if options.rotation.is_some() || options.budget.is_some() {
            state.allow_many_rates();
        }
        let current_file = CurrentFile::default();
        let parts = match &recorder {
            Some(recorder) => Some(Parts::Memory(recorder)),
            None => options.rotation.map(Parts::Files),
        };
        let (out, parts) = match parts {
            None => {
                let out = open_output(&options.file, &state)?;
                let parts = options.budget.map(|_| series::begin_of_one_file(&out)).transpose()?;
                (out, parts)
            }
            Some(parts) => {
                let (out, parts) = series::begin(&options, &parts, &state, &current_file)?;
                (out, Some(parts))
            }
        };
        let output_name = match &recorder {
            Some(recorder) => recorder.pattern(),
            None => out.name().to_owned(),
        };
        current_file.set(&output_name);
        let mailbox = Arc::new(Mailbox::new());
        let sidecar = Sidecar::new(
            sidecar_owner,
            &probes,
            &time_line,
            options.time_line,
            options.read_heap.clone(),
            options.probes_limit,
        )
        .kept_in(recorder.as_ref().map(|recorder| Arc::clone(&recorder.recording)));
        let orphans = Orphans::new().ok_or(Failure::Memory)?;
        let registry = Arc::new(Mutex::new(MutatorRegistry::new(orphans)));
        let controller = options.budget.map(|budget| Controller::new(budget, options.rate));
        let controller: SharedController = Arc::new(Mutex::new(controller));
        let meter = CostMeter::start();
        let context = WriterContext {
            frames: FrameLocator::new(&options, &tables, &labels, &names),
            clock: SessionClock::new(clock, stopwatch),
            state: Arc::clone(&state),
            sidecar,
            budget: BudgetKeeper::new(
                Arc::clone(&controller),
                Arc::clone(&registry),
                Arc::clone(&state),
            ),
            probes: Arc::clone(&probes),
            recorder: recorder.clone().map(|recorder| RecorderWatch::new(recorder, &options)),
        };
        let first = new_file(out, &options, options.rate, start_us);
        let format = options.format();
        // Writes the first packet, unless the trace info is not complete yet.
        let begin = || Writer::new(consumer, Arc::clone(&mailbox), context, format, first, parts);
        let writer = without_write_signals(begin).map_err(|error| {
            let name = output_name.display();
            StartError::new(Failure::File, format!("cannot write {name}: {error}; not tracing"))
        })?;
        let writer = WriterThread::start(writer, mailbox, Arc::clone(&channel), Arc::clone(&state))
            .map_err(|error| {
                let message = format!("cannot start the writer thread: {error}; not tracing");
                StartError::new(Failure::Thread, message)
            })?;
        recorder.iter().for_each(|it| it.watch_signals(Box::new(writer.urgent_dumps())));
        Ok(Arc::new(Session {
            options,
            current_file,
            output_name,
            pid: std::process::id(),
            tables,
            labels,
            names,
            probes,
            time_line,
            tagged: Arc::new(AddressTable::new(&filter)),
            by_address: Arc::new(AddressTable::new(&filter)),
            filter,
            moving: AtomicUsize::new(0),
            state,
            channel,
            stopwatch,
            writer,
            recorder,
            registry,
            controller,
            meter,
            has_orphans: AtomicBool::new(false),
            successor: OnceLock::new(),
        }))
    }

    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.state.is_live()
    }

    /// Whether an output could not be written to its end.
    pub(crate) fn write_failed(&self) -> bool {
        self.state.write_failed()
    }

    /// Why it is not live.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.state.failure()
    }

    /// The sampling rate now.
    pub(crate) fn rate(&self) -> Rate {
        Rate::from_bits(self.state.rate_bits()).unwrap_or(self.options.rate)
    }

    // --- Mutators ---

    /// Whether ended mutators left blocks that no mutator has adopted. Callable
    /// from hooks.
    #[inline]
    pub(crate) fn has_orphans(&self) -> bool {
        self.has_orphans.load(Ordering::Acquire)
    }

    /// Runs `with` on the blocks that ended mutators left, under the registry's
    /// lock.
    pub(crate) fn with_orphans(&self, with: impl FnOnce(&mut Orphans)) {
        let mut registry = self.registry();
        with(&mut registry.orphans);
        self.has_orphans.store(!registry.orphans.is_empty(), Ordering::Release);
    }

    /// Adds the handle of a mutator, for sweeps over all of them.
    pub(crate) fn enter(&self, handle: usize) {
        self.registry().handles.push(handle);
    }

    /// Removes a handle.
    pub(crate) fn leave(&self, handle: usize) {
        self.registry().handles.retain(|&known| known != handle);
    }

    /// The handle with this index, in the order in which they were added.
    pub(crate) fn mutator_handle(&self, index: usize) -> Option<usize> {
        self.registry().handles.get(index).copied()
    }

    pub(crate) fn registry(&self) -> MutexGuard<'_, MutatorRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file that it writes now; of a recorder, what those will be called that it writes.
    pub(crate) fn file(&self) -> PathBuf {
        match &self.recorder {
            Some(recorder) => recorder.pattern().into(),
            None => self.current_file.get(),
        }
    }

    /// What keeps the trace in memory, if it is not written all the time.
    pub(crate) fn recorder(&self) -> Option<&Arc<FlightRecorder>> {
        self.recorder.as_ref()
    }

    // --- Requests to the writer thread ---

    /// Returns when everything recorded so far is written.
    pub(crate) fn flush(&self) -> Result<(), Failure> {
        self.ask_writer(WriterThread::flush)
    }

    /// [`Session::flush`] without locks or memory, for signal handlers. Waits no
    /// longer than `longest`. Does nothing in another process than the session's
    /// own, even one that shares its memory.
    pub(crate) fn flush_signal_safe(&self, longest: Duration) -> bool {
        self.is_live() && self.is_of_this_process() && self.writer.flush_signal_safe(longest)
    }

    /// Continues in another output. A series goes on by itself, in names of its own:
    /// [`Session::next_part`].
    pub(crate) fn rotate(&self, file: &[u8]) -> Result<(), Failure> {
        self.check_live()?;
        if self.options.rotation.is_some() || self.recorder.is_some() {
            return Err(Failure::Order);
        }
        let out = open_output(file, &self.state).map_err(StartError::report)?;
        let name = out.name().to_owned();
        let new = new_file(out, &self.options, self.rate(), now_us());
        self.ask_writer(|writer| writer.rotate(new))?;
        self.current_file.set(&name);
        Ok(())
    }

    /// Adds a line to the log beside the trace.
    pub(crate) fn log(&self, line: &[u8]) {
        self.probes.note(self.stopwatch.ticks(), Note::Log(text(line)));
    }

    /// What the file that is being written has for blocks that a
    /// [`Mutator`](crate::tracer::Mutator::tracked) tracks. `None` if no file is being written.
    pub(crate) fn identify(&self, blocks: &[u64]) -> Option<IdentifiedBlocks> {
        let blocks = blocks.iter().map(|&bits| BlockId::from_bits(bits)).collect();
        if self.is_live() { self.writer.identify(blocks) } else { None }
    }

    fn check_live(&self) -> Result<(), Failure> {
        if self.is_live() { Ok(()) } else { Err(Failure::Off) }
    }

    fn ask_writer(&self, ask: impl FnOnce(&WriterThread) -> bool) -> Result<(), Failure> {
        self.check_live()?;
        if ask(&self.writer) { Ok(()) } else { Err(self.failure().unwrap_or(Failure::Off)) }
    }

    // --- The end ---

    /// Ends the trace: hooks do nothing from now on, and what they recorded is
    /// written when this returns.
    pub(crate) fn stop(&self) -> Result<(), Failure> {
        self.stop_writer(Stop::Normally)
    }

    /// The same at the end of the process.
    pub(crate) fn stop_at_exit(&self) -> Result<(), Failure> {
        if let Some(recorder) = self.recorder.as_ref().filter(|_| self.is_live()) {
            match flight_recorder::reason_at_exit(&recorder.limits) {
                // What comes of it is told by the writer thread.
                Some(reason) => _ = self.writer.urgent_dumps()(reason, LONGEST_DUMP),
                None => flight_recorder::tell_end(recorder),
            }
        }
        self.stop_writer(Stop::AtExit)
    }

    fn stop_writer(&self, stop: Stop) -> Result<(), Failure> {
        let ended = self.state.end(Failure::Off);
        self.writer.stop(stop);
        self.recorder.iter().for_each(FlightRecorder::retire);
        if !ended {
            return Err(Failure::Off);
        }
        self.report_losses();
        if self.write_failed() { Err(Failure::File) } else { Ok(()) }
    }

    fn report_losses(&self) {
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

    /// Ends the trace at once, without waiting for anything. True for the one
    /// caller that did.
    pub(crate) fn turn_off(&self, why: Failure) -> bool {
        let ended = self.state.end(why);
        self.writer.request_stop(Stop::Normally);
        ended
    }

    /// Everything that is counted.
    pub(crate) fn stats(&self) -> SessionStats {
        let mut stats = self.registry().stats();
        stats.hook_ns = self.state.ticks_ns(stats.totals.hook_ticks);
        stats.cost = self.meter.cost(stats.hook_ns);
        stats.bytes = match &self.recorder {
            Some(recorder) => recorder.recording.bytes(),
            None => self.state.bytes.load(Ordering::Relaxed),
        };
        stats.live_blocks += self.by_address.len() as u64;
        stats
    }

    // --- Around a fork ---

    /// Takes the locks of what a forked child shares. Those that are still held at the
    /// deadline are left out.
    pub(crate) fn lock_shared(&self, deadline: Instant) -> SharedLocks<'_> {
        SharedLocks {
            _tables: self.tables.lock_until(deadline),
            _labels: self.labels.lock_until(deadline),
            _names: self.names.lock_until(deadline),
            _probes: self.probes.lock_until(deadline),
        }
    }

    /// Notes that this process is a child that was forked now: the thread and the output
    /// are the parent's. Async-signal-safe.
    pub(crate) fn set_forked(&self) {
        self.state.set_forked(Moment::now(self.stopwatch.tick_source()));
    }

    pub(crate) fn has_forked(&self) -> bool {
        self.state.has_forked()
    }

    /// Whether this process has started it, and so has its writer thread.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.pid == std::process::id()
    }

    /// The session that replaced this one after forks; else this one.
    pub(crate) fn current(self: &Arc<Self>) -> Arc<Session> {
        match self.successor.get() {
            Some(Some(session)) => session.current(),
            _ => Arc::clone(self),
        }
    }

    /// In a forked child: the session that replaces this one, started by the
    /// first caller. `None`: the child is not traced, because its output would be
    /// the parent's (the name has no `%p`), or because starting failed.
    pub(crate) fn successor(
        self: &Arc<Self>,
        started: impl FnOnce(&Arc<Session>),
    ) -> Option<Arc<Session>> {
        let start = || {
            if !file_name::has_pid(OsStr::from_bytes(&self.options.file)) {
                self.state.end(Failure::Off);
                return None;
            }
            let shared = Shared {
                tables: Arc::clone(&self.tables),
                labels: Arc::clone(&self.labels),
                names: Arc::clone(&self.names),
                probes: Arc::clone(&self.probes),
                forked: self.state.forked_at().map(|at| Forked { stopwatch: self.stopwatch, at }),
            };
            let session = Session::start(self.options.clone(), shared);
            let session = session.map_err(StartError::report).ok()?;
            started(&session);
            Some(session)
        };
        self.successor.get_or_init(start).clone()
    }
}

/// Keeps other threads out of what a forked child shares with its parent.
pub(crate) struct SharedLocks<'a> {
    _tables: Option<TablesLock<'a>>,
    _labels: Option<LabelsLock<'a>>,
    _names: Option<HostNamesLock<'a>>,
    _probes: RegistryLock<'a>,
}

/// What a forked child shares with its parent: the program knows parts of it by number or
/// address.
pub(crate) struct Shared {
    pub(crate) tables: Arc<FrameTables>,
    pub(crate) labels: Arc<Labels>,
    pub(crate) names: Arc<HostNames>,
    pub(crate) probes: Arc<ProbeRegistry>,
    forked: Option<Forked>,
}

/// The time of a forked child. Its trace begins with the fork, although its session starts
/// later.
struct Forked {
    /// Of the parent.
    stopwatch: Stopwatch,
    at: Moment,
}

impl Shared {
    /// What a process begins with.
    pub(crate) fn new() -> Shared {
        Shared::with(Arc::default(), Arc::default())
    }

    /// What a further session of a process begins with.
    pub(crate) fn with(labels: Arc<Labels>, probes: Arc<ProbeRegistry>) -> Shared {
        let (tables, names) = (Arc::new(FrameTables::new()), Arc::default());
        Shared { tables, labels, names, probes, forked: None }
    }
}

/// Opens an output, with its bytes counted.
fn open_output(pattern: &[u8], state: &Arc<State>) -> Result<CountingOutput, StartError> {
    let output = open(OsStr::from_bytes(pattern))
        .map_err(|error| StartError::new(Failure::File, error.to_string()))?;
    Ok(CountingOutput { output, state: Arc::clone(state) })
}
