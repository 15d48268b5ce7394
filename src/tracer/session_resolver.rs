//! What the writer thread knows of the session: the clock, and what codes mean.
//!
//! Lives on the writer thread, where it may allocate, read files and call the
//! host's locator.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use heaptap_symbols::{Process, SourceLocation, Symbols};
use heaptap_trace::{Locate, Location, LocationList, WriteError};

use crate::probes::{Sidecar, SidecarClock, TraceAt};
use crate::queue::{Code, Part};
use crate::stack::FrameTables;
use crate::stack::formats::Explained;
use crate::sys::clock::Clock;
use crate::sys::process_memory::ProcessMemory;
use crate::tracer::labels::Labels;
use crate::tracer::message::say;
use crate::tracer::options::{Locator, Namer, Options};
use crate::tracer::part_code_cache::PartCodeCache;
use crate::tracer::state::State;
use crate::tracer::stopwatch::Stopwatch;
use crate::writer::Resolver;

/// The session's [`Resolver`].
pub(crate) struct SessionResolver {
    tables: Arc<FrameTables>,
    labels: Arc<Labels>,
    /// The host's own function, for codes that no frame table explains.
    locator: Option<Locator>,
    namer: Option<Namer>,
    /// The program's own debug information; `None` until it is first needed.
    symbols: Option<Symbols>,
    memory: ProcessMemory,
    state: Arc<State>,
    clock: Clock,
    stopwatch: Stopwatch,
    max_frames: usize,
    parts_have_places: bool,
    part_codes: PartCodeCache,
    sidecar: Sidecar,
}

impl SessionResolver {
    pub(crate) fn new(
        options: &Options,
        tables: &Arc<FrameTables>,
        labels: &Arc<Labels>,
        state: &Arc<State>,
        clock: Clock,
        stopwatch: Stopwatch,
        sidecar: Sidecar,
    ) -> SessionResolver {
        SessionResolver {
            tables: Arc::clone(tables),
            labels: Arc::clone(labels),
            locator: options.locate.clone(),
            namer: options.name.clone(),
            symbols: None,
            memory: ProcessMemory::new(),
            state: Arc::clone(state),
            clock,
            stopwatch,
            max_frames: options.max_frames,
            parts_have_places: options.parts_have_places,
            part_codes: PartCodeCache::new(),
            sidecar,
        }
    }

    /// Runs `with` on the sidecar of this file, now. An error is reported to the user.
    fn with_sidecar(
        &mut self,
        file: &OsStr,
        start_us: u64,
        with: impl FnOnce(&mut Sidecar, TraceAt<'_>, &mut SessionClock<'_>) -> Result<(), String>,
    ) {
        let SessionResolver { clock, stopwatch, sidecar, state, .. } = self;
        let trace = TraceAt { file, start_us, now: stopwatch.ticks(), observes: state.is_live() };
        let mut clock = SessionClock { clock, stopwatch: *stopwatch };
        if let Err(error) = with(sidecar, trace, &mut clock) {
            say(format_args!("{error}"));
        }
    }

    /// A frame of the runtime or of C code: as its frame table explains it, else as
    /// the host does, else by the program's own debug information and symbols.
    fn locate_host(&mut self, code: u64, list: &mut LocationList) {
        let (code, part) = if self.parts_have_places { Part::of_code(code) } else { (code, None) };
        let source = self.tables.source(code);
        let explained = source.map(|source| source.locate(part, &self.memory, list));
        if explained == Some(Explained::Fully) {
            return;
        }
        if let Some(locator) = &self.locator {
            locator(code, list);
            return;
        }
        let only_named = explained == Some(Explained::WithoutDebugInfo);
        if only_named && self.namer.as_ref().is_some_and(|namer| namer(code, list)) {
            return;
        }
        let symbols = self.symbols.get_or_insert_with(own_symbols);
        let mut add = |found: SourceLocation<'_>| add(&found, list);
        if only_named {
            symbols.name(code, &mut add);
        } else {
            symbols.locate(code, &mut add);
        }
    }
}

/// Adds what the program's own debug information says.
fn add(found: &SourceLocation<'_>, list: &mut LocationList) {
    list.add(Location {
        file: found.file,
        line: found.line,
        start_char: found.start_char,
        end_char: found.end_char,
        definition: found.function,
    });
}

/// The program's own debug information.
fn own_symbols() -> Symbols {
    /// The most bytes of it that are kept in the host's memory.
    const LIMIT: u64 = 128 << 20;
    Symbols::of_process(Process::This, LIMIT)
}

/// Adds a frame of heaptap's own, which has only a name.
fn add_own(definition: &[u8], list: &mut LocationList) {
    list.add(Location { file: b"heaptap", line: 0, start_char: 0, end_char: 0, definition });
}

impl Locate for SessionResolver {
    fn locate(&mut self, code: u64, list: &mut LocationList) {
        match Code::from_bits(code) {
            Code::Host(code) => self.locate_host(code, list),
            Code::Label(number) => {
                let name = self.labels.name(number);
                let definition = name.as_deref().unwrap_or(b"(unknown label)");
                let file = b"label";
                list.add(Location { file, line: 0, start_char: 0, end_char: 0, definition });
            }
            Code::LeftOut(count) => {
                add_own(format!("({count} frames left out)").as_bytes(), list);
            }
            Code::BeyondLimit => {
                add_own(format!("(beyond {} frames)", self.max_frames).as_bytes(), list);
            }
            Code::Unknown => add_own(b"(unknown frames)", list),
        }
    }
}

/// The session's ticks as times.
struct SessionClock<'a> {
    clock: &'a mut Clock,
    stopwatch: Stopwatch,
}

impl SidecarClock for SessionClock<'_> {
    fn time_ns(&mut self, ticks: u64) -> u64 {
        self.clock.nanos(self.stopwatch.at(ticks))
    }

    fn length_ns(&self, ticks: u64) -> u64 {
        self.clock.nanoseconds(ticks)
    }
}

impl Resolver for SessionResolver {
    fn observe_time(&mut self) {
        self.clock.observe();
        self.state.tick_ns.store(self.clock.nanoseconds(1 << 20), Ordering::Relaxed);
    }

    fn micros(&mut self, ticks: u64) -> u64 {
        self.clock.micros(self.stopwatch.at(ticks))
    }

    fn now(&mut self) -> u64 {
        let now = self.stopwatch.tick_source().now();
        self.clock.micros(now)
    }

    #[inline]
    fn part_code(&mut self, return_address: u64, part: Part) -> u64 {
        let SessionResolver { tables, part_codes, .. } = self;
        part_codes
            .code(return_address, part, |index| tables.source(return_address)?.part_key(index))
    }

    fn flushed(&mut self, output: &OsStr, start_time: u64) {
        self.with_sidecar(output, start_time, |sidecar, trace, clock| sidecar.tick(trace, clock));
    }

    fn ended(&mut self, output: &OsStr, start_time: u64) {
        self.with_sidecar(output, start_time, |sidecar, trace, clock| sidecar.end(trace, clock));
    }

    fn is_urgent(&self) -> bool {
        self.sidecar.is_urgent()
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
