//! What the writer thread needs of the session: its clock, what codes mean, and the sidecar.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use heaptap_trace::{Locate, LocationList, WriteError};

use crate::probes::{Note, ProbeRegistry, Sidecar, SidecarClock as _, TraceAt, text};
use crate::queue::Part;
use crate::sampling::Rate;
use crate::tracer::budget::BudgetKeeper;
use crate::tracer::flight_recorder::{RecorderWatch, shown};
use crate::tracer::frame_locator::FrameLocator;
use crate::tracer::message::say;
use crate::tracer::session_clock::SessionClock;
use crate::tracer::state::State;
use crate::writer::{Context, DumpOrder, DumpReason, Dumped};

/// The session's [`Context`]. Lives on the writer thread.
pub(crate) struct WriterContext {
    pub(crate) frames: FrameLocator,
    pub(crate) clock: SessionClock,
    pub(crate) state: Arc<State>,
    pub(crate) sidecar: Sidecar,
    pub(crate) budget: BudgetKeeper,
    pub(crate) probes: Arc<ProbeRegistry>,
    /// Of a trace that is kept in memory.
    pub(crate) recorder: Option<RecorderWatch>,
}

impl WriterContext {
    /// Runs `with` on the sidecar of this file, now. An error is reported to the user.
    fn with_sidecar(&mut self, file: &OsStr, start_us: u64, with: WithSidecar) {
        let WriterContext { clock, sidecar, state, .. } = self;
        let now = clock.ticks();
        let trace = TraceAt { file, start_us, now, observes: state.is_live() };
        if let Err(error) = with(sidecar, trace, clock) {
            say(format_args!("{error}"));
        }
    }
}

type WithSidecar = fn(&mut Sidecar, TraceAt<'_>, &mut SessionClock) -> Result<(), String>;

impl Locate for WriterContext {
    fn locate(&mut self, code: u64, list: &mut LocationList) {
        self.frames.locate(code, list);
    }
}

impl Context for WriterContext {
    fn observe_time(&mut self) {
        self.clock.observe();
        self.state.tick_ns.store(self.clock.length_ns(1 << 20), Ordering::Relaxed);
    }

    fn keep_budget(&mut self) {
        self.budget.look();
    }

    fn rate(&self) -> Option<f64> {
        self.budget.rate().map(Rate::get)
    }

    fn micros(&mut self, ticks: u64) -> u64 {
        self.clock.micros(ticks)
    }

    fn now(&mut self) -> u64 {
        self.clock.now()
    }

    #[inline]
    fn part_code(&mut self, return_address: u64, part: Part) -> u64 {
        self.frames.part_code(return_address, part)
    }

    fn flushed(&mut self, output: &OsStr, start_time: u64) {
        if self.is_urgent() || self.budget.time_line_is_due() {
            let before = self.budget.begin_time_line();
            self.with_sidecar(output, start_time, Sidecar::tick);
            self.budget.end_time_line(before);
        }
    }

    fn ended(&mut self, output: &OsStr, start_time: u64) {
        self.with_sidecar(output, start_time, Sidecar::end);
    }

    fn is_urgent(&self) -> bool {
        self.sidecar.is_urgent()
    }

    fn due_dump(&mut self) -> Option<DumpReason> {
        self.recorder.as_mut().and_then(RecorderWatch::due)
    }

    fn before_dump(&mut self, order: &DumpOrder) {
        if let Some(watch) = &self.recorder {
            let reason = shown(order.reason);
            let covered = watch.recorder.covered().as_secs_f64();
            let line = format!("recorder: written ({reason}), with the last {covered:.1} s");
            self.probes.note(self.clock.ticks(), Note::Log(text(line.as_bytes())));
        }
    }

    fn dump(&mut self, order: &DumpOrder) -> Result<Dumped, String> {
        match &self.recorder {
            Some(watch) => watch.recorder.dump(order),
            None => Err("the trace is not kept in memory".into()),
        }
    }

    fn tagged_ended(&mut self, probe: u64) {
        self.sidecar.count_dead(probe);
    }

    fn truncated(&mut self, output: &OsStr) {
        say(format_args!(
            "{} was truncated while it was being written; what it had is gone, and a new trace \
             begins in it",
            output.display()
        ));
    }

    fn write_failed(&mut self, output: &OsStr, error: &WriteError) {
        if self.state.fail_to_write() {
            let name = output.display();
            say(format_args!("cannot write {name}: {error}; tracing ends here"));
        }
    }
}
