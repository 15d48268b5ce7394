//! The reading of a trace, as connections see it: how far it is, what there is of it so far and at
//! the end, or why it failed. There is one for each trace, whether it is read once or tailed.
//!
//! What there is so far of a trace that is read once is packed by the thread that reads, only if a
//! page has asked since, and each time after as long again: opening it is work for the page, too,
//! and delays what it shows at the end.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use heaptap_trace::CutReason;
use serde::Serialize;

use super::available::{ReadyTrace, Unavailable};
use crate::analysis::archive::{Packing, TraceNotes, packed_so_far, source_files};
use crate::analysis::so_far::{FiguresSoFar, Onlooker};
use crate::exit_status::Failure;
use crate::io::watch::Watch;

/// When a trace is first packed, and how long passes at least until the next time.
const FIRST: Duration = Duration::from_millis(400);
const APART: Duration = Duration::from_secs(2);
/// Not if the rest takes less than this.
const REST: Duration = Duration::from_secs(4);

/// The reading of one trace.
pub(super) struct Reading {
    /// Under which the page shows it.
    pub(super) name: String,
    pub(super) packing: Packing,
    /// How far it is, unless it is tailed.
    pub(super) watch: Arc<Watch>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    phase: Phase,
    /// Grows with everything that is read.
    version: u64,
    /// The trace as it was at a version.
    packed: Option<(u64, ReadyTrace)>,
    /// Of a trace that is tailed: bytes read, and those of the file; 0 if that is not known.
    tailed: Option<(u64, u64)>,
    /// Of one that is not: when the reading began, and when to pack next.
    times: Option<(Instant, Instant)>,
    is_asked_for: bool,
}

/// How far a reading is.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// What was there at the beginning is being read, or there is nothing yet.
    #[default]
    Reading,
    /// All was read of a trace that is complete.
    Complete,
    /// All that is written so far was read.
    Live,
    /// A trace that was tailed has ended.
    Ended(Option<CutReason>),
    /// With the message.
    Failed(String),
}

/// The state of a trace. The field names are those of the JSON.
#[derive(Serialize)]
pub(super) struct TraceStatus<'a> {
    name: &'a str,
    state: &'static str,
    /// Bytes.
    read: u64,
    /// Bytes; 0 if that is not known.
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The reading for exact figures, while there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<ExactProgress>,
    /// If there will be more of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<LiveStatus>,
}

#[derive(Serialize)]
struct ExactProgress {
    /// Bytes.
    read: u64,
    /// Bytes; 0 if that is not known.
    size: u64,
}

/// What the page hears about a trace that is tailed, or of which a part was read.
#[derive(Serialize)]
struct LiveStatus {
    /// Another text: there is something new.
    version: String,
    state: &'static str,
    /// Of a trace that is not read to its end: how much of it was, in hundredths.
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<u64>,
}

/// Tells the versions of this server from those of another.
fn server_number() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    // Keyed at random.
    *NUMBER.get_or_init(|| RandomState::new().hash_one(std::process::id()))
}

impl State {
    /// There is a new version of the trace.
    fn replace(&mut self, packed: ReadyTrace) {
        self.version += 1;
        self.packed = Some((self.version, packed));
    }
}

impl Reading {
    pub(super) fn new(name: String, packing: Packing, is_tailed: bool) -> Reading {
        let state = State { tailed: is_tailed.then_some((0, 0)), ..State::default() };
        Reading { name, packing, watch: Arc::default(), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn phase(&self) -> Phase {
        self.state().phase.clone()
    }

    /// A page asks how far it is; `exact` is the progress of the reading for exact figures.
    pub(super) fn status(&self, exact: Option<(u64, u64)>) -> TraceStatus<'_> {
        let mut state = self.state();
        state.is_asked_for = true;
        let is_tailed = state.tailed.is_some();
        let (mut read, size) = state.tailed.unwrap_or_else(|| self.watch.progress());
        let (mut error, mut percent) = (None, None);
        let (text, live) = match &state.phase {
            Phase::Reading if state.packed.is_some() => {
                percent = Some(read.saturating_mul(100).checked_div(size).unwrap_or(0));
                ("ready", Some("partial"))
            }
            Phase::Reading => ("reading", is_tailed.then_some("reading")),
            Phase::Complete => {
                read = read.max(size);
                ("ready", None)
            }
            Phase::Live => ("ready", Some("live")),
            Phase::Ended(None) => ("ready", Some("ended")),
            Phase::Ended(Some(CutReason::Unfinished)) => ("ready", Some("killed")),
            Phase::Ended(Some(CutReason::WriteFailed)) => ("ready", Some("cut")),
            Phase::Failed(message) => {
                error = Some(message.clone());
                ("failed", is_tailed.then_some("failed"))
            }
        };
        let version = state.version;
        let live = live.map(|state| {
            let version = format!("{:x}-{version}", server_number());
            LiveStatus { version, state, percent }
        });
        let exact = exact.filter(|_| !is_tailed).map(|(read, size)| ExactProgress { read, size });
        TraceStatus { name: &self.name, state: text, read, size, error, exact, live }
    }

    /// The trace as it is now; `None` if only an older version is packed.
    pub(super) fn packed(&self) -> Result<Option<ReadyTrace>, Unavailable> {
        let state = self.state();
        match (&state.phase, &state.packed) {
            (Phase::Failed(message), _) => Err(Unavailable::Failed(message.clone())),
            (_, Some((version, packed))) if *version == state.version => Ok(Some(packed.clone())),
            (Phase::Reading, _) => Err(Unavailable::Reading),
            _ => Ok(None),
        }
    }

    /// The reading of a trace begins.
    pub(super) fn begin(&self) {
        let now = Instant::now();
        self.state().times = Some((now, now + FIRST));
    }

    /// A trace was read to its end.
    pub(super) fn complete(&self, packed: ReadyTrace) {
        let mut state = self.state();
        state.replace(packed);
        state.phase = Phase::Complete;
    }

    pub(super) fn fail(&self, failure: &Failure) {
        let mut state = self.state();
        state.phase = Phase::Failed(message_of(failure));
        state.packed = None;
    }

    /// A trace that has ended was read once more.
    pub(super) fn replace(&self, packed: ReadyTrace) {
        self.state().replace(packed);
    }

    /// How far a trace is that is tailed, and whether something is new.
    pub(super) fn note(&self, progress: (u64, u64), phase: Option<Phase>, changed: bool) {
        let mut state = self.state();
        state.version += u64::from(changed);
        state.tailed = Some(progress);
        state.phase = phase.unwrap_or_else(|| state.phase.clone());
    }

    /// Packs the figures so far of a trace that is tailed, or returns what is packed already.
    /// `None` before its first packet.
    pub(super) fn pack(
        &self,
        figures: Option<&FiguresSoFar<'_>>,
        notes: TraceNotes<'_>,
    ) -> Option<ReadyTrace> {
        // No other thread than this changes it.
        let version = self.state().version;
        let Some(figures) = figures else {
            // Another trace took the place of that one, and has no packet yet.
            return self.state().packed.as_ref().map(|(_, packed)| packed.clone());
        };
        let packed = self.packed_so_far(figures, notes);
        self.state().packed = Some((version, packed.clone()));
        Some(packed)
    }

    fn packed_so_far(&self, figures: &FiguresSoFar<'_>, notes: TraceNotes<'_>) -> ReadyTrace {
        let gzip = packed_so_far(figures, &self.name, notes, self.packing.effort).into();
        ReadyTrace { gzip, files: Arc::new(source_files(figures.locations)) }
    }
}

impl Onlooker for Reading {
    fn is_waiting(&self) -> bool {
        let state = self.state();
        let now = Instant::now();
        let is_due = |&(begin, next): &(Instant, Instant)| {
            next <= now && rest(self.watch.progress(), now - begin) >= REST
        };
        state.is_asked_for && state.times.as_ref().is_some_and(is_due)
    }

    fn show(&self, figures: &FiguresSoFar<'_>) {
        let incomplete = Some("the rest of it is still being read");
        let notes = TraceNotes { incomplete, ..TraceNotes::default() };
        let packed = self.packed_so_far(figures, notes);
        let mut state = self.state();
        state.replace(packed);
        state.is_asked_for = false;
        if let Some((begin, next)) = &mut state.times {
            let now = Instant::now();
            *next = now + APART.max(now - *begin);
        }
    }
}

/// Why a trace cannot be read, for the page.
pub(super) fn message_of(failure: &Failure) -> String {
    failure.message().unwrap_or("it cannot be read").to_owned()
}

/// How long the rest of a reading takes, of which this much was done in this time.
fn rest((read, size): (u64, u64), elapsed: Duration) -> Duration {
    // Of a pipe nobody knows.
    if size == 0 {
        return Duration::MAX;
    }
    let share = size.saturating_sub(read) as f64 / read.max(1) as f64;
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * share).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::Read as _;
    use std::path::Path;

    use flate2::read::MultiGzDecoder;
    use heaptap_report::{Archive, MOST_BLOCKS, Selection};

    use super::*;
    use crate::analysis::archive::{Compression, PackedTrace};

    fn reading() -> Reading {
        let packing = Packing {
            selection: Selection::default(),
            most_blocks: MOST_BLOCKS,
            effort: Compression::fast(),
            at: None,
        };
        Reading::new("maps".into(), packing, false)
    }

    /// The version of the figures so far, if there are any.
    fn version(reading: &Reading) -> Option<u64> {
        let live = reading.status(None).live?;
        live.version.rsplit_once('-')?.1.parse().ok()
    }

    /// Waits at every opportunity, and writes down how many events it was shown.
    struct Impatient<'a>(&'a Reading, RefCell<Vec<u64>>);

    impl Onlooker for Impatient<'_> {
        fn is_waiting(&self) -> bool {
            true
        }

        fn show(&self, figures: &FiguresSoFar<'_>) {
            self.1.borrow_mut().push(figures.aggregate.events());
            self.0.show(figures);
        }
    }

    #[test]
    fn the_figures_so_far_are_there_until_the_trace_is_read() {
        let path = "../trace/tests/data/made-maps.v2.ctf";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let reading = reading();
        let packing = &reading.packing;
        reading.begin();
        assert_eq!(version(&reading), None);
        assert!(reading.packed().is_err());
        let impatient = Impatient(&reading, RefCell::default());
        let read =
            PackedTrace::read_with_onlooker(&path, "maps".into(), packing, &impatient).unwrap();
        let undisturbed = PackedTrace::read(&path, "maps".into(), packing).unwrap();
        assert!(read.gzip == undisturbed.gzip, "looking on changes the figures");
        let shown = impatient.1.into_inner();
        assert!(shown.len() > 1 && shown.is_sorted_by(|one, other| one < other), "{shown:?}");
        assert_eq!(version(&reading), Some(shown.len() as u64));
        let mut bytes = Vec::new();
        let packed = reading.packed().ok().flatten().unwrap();
        MultiGzDecoder::new(&packed.gzip[..]).read_to_end(&mut bytes).unwrap();
        let archive = Archive::from_bytes(&bytes).unwrap();
        assert_eq!(Some(&archive.aggregate.events()), shown.last());
        assert_eq!(archive.name, "maps");
        let complete = ReadyTrace::from(read);
        reading.complete(complete.clone());
        assert!(version(&reading).is_none(), "it is not partial any more");
        assert!(reading.packed().ok().flatten().is_some_and(|packed| packed.gzip == complete.gzip));
    }

    #[test]
    fn nothing_is_packed_unless_a_page_asks_and_the_rest_takes_long() {
        let reading = reading();
        assert!(!reading.is_waiting());
        let long_ago = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        reading.state().times = Some((long_ago, long_ago));
        assert!(!reading.is_waiting(), "nobody has asked");
        reading.status(None);
        assert!(reading.is_waiting());
        reading.begin();
        assert!(!reading.is_waiting(), "it has just begun");
    }

    #[test]
    fn the_rest_takes_as_long_as_what_was_read() {
        let second = Duration::from_secs(1);
        assert_eq!(rest((25, 100), second), 3 * second);
        assert_eq!(rest((100, 100), second), Duration::ZERO);
        assert_eq!(rest((0, u64::MAX), Duration::MAX), Duration::MAX);
        assert_eq!(rest((7, 0), second), Duration::MAX);
    }
}
