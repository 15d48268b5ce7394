//! What the page shows of a trace that is still being read: the figures so far.
//!
//! They are packed by the thread that reads, only if a page has asked since, and each time after as
//! long again: opening them is work for the page, too, and delays what it shows at the end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::available::ReadyTrace;
use crate::analysis::archive::{Compression, packed_so_far, source_files};
use crate::analysis::so_far::{FiguresSoFar, Onlooker};
use crate::io::watch::Watch;

/// When a trace is first packed, and how long passes at least until the next time.
const FIRST: Duration = Duration::from_millis(400);
const APART: Duration = Duration::from_secs(2);
/// Not if the rest takes less than this.
const REST: Duration = Duration::from_secs(4);

/// The figures so far of one trace.
pub(super) struct Provisional {
    name: String,
    effort: Compression,
    /// How far the trace is read.
    watch: Arc<Watch>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When the reading began, and when to pack next.
    times: Option<(Instant, Instant)>,
    is_asked_for: bool,
    version: u64,
    packed: Option<ReadyTrace>,
}

impl Provisional {
    pub(super) fn new(name: &str, effort: Compression, watch: &Arc<Watch>) -> Provisional {
        let (name, watch) = (name.to_owned(), Arc::clone(watch));
        Provisional { name, effort, watch, state: Mutex::default() }
    }

    /// The reading begins.
    pub(super) fn begin(&self) {
        let now = Instant::now();
        self.state().times = Some((now, now + FIRST));
    }

    /// The reading has ended.
    pub(super) fn end(&self) {
        *self.state() = State::default();
    }

    /// A page asks: the version of what there is.
    pub(super) fn ask(&self) -> Option<u64> {
        let mut state = self.state();
        state.is_asked_for = true;
        state.packed.as_ref().map(|_| state.version)
    }

    /// The trace as far as it was packed.
    pub(super) fn packed(&self) -> Option<ReadyTrace> {
        self.state().packed.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Onlooker for Provisional {
    fn is_waiting(&self) -> bool {
        let state = self.state();
        let now = Instant::now();
        let is_due = |&(begin, next): &(Instant, Instant)| {
            next <= now && rest(self.watch.progress(), now - begin) >= REST
        };
        state.is_asked_for && state.times.as_ref().is_some_and(is_due)
    }

    fn show(&self, figures: &FiguresSoFar<'_>) {
        let gzip = packed_so_far(figures, &self.name, (None, &[]), self.effort).into();
        let files = Arc::new(source_files(figures.locations));
        let mut state = self.state();
        state.packed = Some(ReadyTrace { gzip, files });
        state.version += 1;
        state.is_asked_for = false;
        if let Some((begin, next)) = &mut state.times {
            let now = Instant::now();
            *next = now + APART.max(now - *begin);
        }
    }
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
    use crate::analysis::archive::{PackedTrace, Packing};

    /// Waits at every opportunity, and writes down how many events it was shown.
    struct Impatient<'a>(&'a Provisional, RefCell<Vec<u64>>);

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
        let packing = Packing {
            selection: Selection::default(),
            most_blocks: MOST_BLOCKS,
            effort: Compression::fast(),
            at: None,
        };
        let provisional = Provisional::new("maps", packing.effort, &Arc::default());
        provisional.begin();
        assert_eq!(provisional.ask(), None);
        let impatient = Impatient(&provisional, RefCell::default());
        let read =
            PackedTrace::read_with_onlooker(&path, "maps".into(), &packing, &impatient).unwrap();
        let undisturbed = PackedTrace::read(&path, "maps".into(), &packing).unwrap();
        assert!(read.gzip == undisturbed.gzip, "looking on changes the figures");
        let shown = impatient.1.into_inner();
        assert!(shown.len() > 1 && shown.is_sorted_by(|one, other| one < other), "{shown:?}");
        assert_eq!(provisional.ask(), Some(shown.len() as u64));
        let mut bytes = Vec::new();
        let packed = provisional.packed().unwrap();
        MultiGzDecoder::new(&packed.gzip[..]).read_to_end(&mut bytes).unwrap();
        let archive = Archive::from_bytes(&bytes).unwrap();
        assert_eq!(Some(&archive.aggregate.events()), shown.last());
        assert_eq!(archive.name, "maps");
        provisional.end();
        assert!(provisional.ask().is_none() && provisional.packed().is_none());
    }

    #[test]
    fn nothing_is_packed_unless_a_page_asks_and_the_rest_takes_long() {
        let provisional = Provisional::new("maps", Compression::fast(), &Arc::default());
        assert!(!provisional.is_waiting());
        let long_ago = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        provisional.state().times = Some((long_ago, long_ago));
        assert!(!provisional.is_waiting(), "nobody has asked");
        provisional.ask();
        assert!(provisional.is_waiting());
        provisional.begin();
        assert!(!provisional.is_waiting(), "it has just begun");
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
