//! The diagnosis of each trace that is served, or of the snapshots if there is no trace.
//!
//! Those of complete traces are made once, after all was read: the first figures do not wait for them, and memory is that of
//! one reading. That of a program that runs is made when a page asks, on a thread of its own, and again while
//! pages ask, at most every [`APART`]. Nothing is made while nobody looks, and one at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use heaptap_report::diagnosis::PageDiagnosis;

use super::traces::{ServedTrace, Traces};
use crate::analysis::heap::page_snapshots::PageFiles;
use crate::analysis::page_diagnosis::{DiagnosedFiles, DiagnosisOptions};

/// How long a diagnosis of a program that runs is shown at least; longer if it takes long.
const APART: Duration = Duration::from_secs(10);
/// The most of the time that is spent on them.
const SHARE: u32 = 5;

/// All of them, by the number of the trace.
pub(super) struct Diagnoses {
    options: DiagnosisOptions,
    served: Vec<ServedDiagnosis>,
    /// Held while one is made.
    turn: Mutex<()>,
}

struct ServedDiagnosis {
    files: DiagnosedFiles,
    latest: Mutex<Latest>,
}

/// The latest diagnosis of a trace.
#[derive(Default)]
struct Latest {
    made: Option<Made>,
    is_being_made: bool,
}

struct Made {
    diagnosis: Arc<PageDiagnosis>,
    /// Whether the program ran then.
    so_far: bool,
    /// When the next may be made, of a program that still runs.
    next: Instant,
}

impl Latest {
    fn is_due(&self, is_running: bool) -> bool {
        let is_old =
            |made: &Made| made.so_far != is_running || is_running && made.next <= Instant::now();
        !self.is_being_made && self.made.as_ref().is_none_or(is_old)
    }
}

impl ServedDiagnosis {
    fn latest(&self) -> MutexGuard<'_, Latest> {
        // No code that holds the lock can panic.
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Diagnoses {
    pub(super) fn new(files: &PageFiles, options: DiagnosisOptions) -> Diagnoses {
        let served = |files| ServedDiagnosis { files, latest: Mutex::default() };
        let served = DiagnosedFiles::of_page(files).into_iter().map(served).collect();
        Diagnoses { options, served, turn: Mutex::default() }
    }

    /// Makes those of traces that are not tailed.
    pub(super) fn make_complete(&self, traces: &Traces) {
        for number in 0..self.served.len() {
            if !traces.get(number).is_some_and(ServedTrace::is_tailed) {
                self.make(number, false);
            }
        }
    }

    /// The latest diagnosis with this number; begins to make the next if it is due. `None` if there is no such trace.
    pub(super) fn latest(
        self: &Arc<Self>,
        traces: &Traces,
        number: usize,
    ) -> Option<Arc<PageDiagnosis>> {
        let mut latest = self.served.get(number)?.latest();
        if let Some(is_running) = traces.get(number).and_then(ServedTrace::program_runs)
            && latest.is_due(is_running)
        {
            let all = Arc::clone(self);
            let started = thread::Builder::new().spawn(move || all.make(number, is_running));
            latest.is_being_made = started.is_ok();
        }
        let made = latest.made.as_ref().map(|made| Arc::clone(&made.diagnosis));
        Some(made.unwrap_or_else(|| Arc::new(PageDiagnosis::Waiting)))
    }

    fn make(&self, number: usize, is_running: bool) {
        let Some(served) = self.served.get(number) else { return };
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = Instant::now();
        let diagnosis = Arc::new(served.files.in_background(&self.options, is_running));
        drop(turn);
        let next = Instant::now() + APART.max(begin.elapsed() * (SHARE - 1));
        let made = Some(Made { diagnosis, so_far: is_running, next });
        *served.latest() = Latest { made, is_being_made: false };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latest(so_far: bool, next: Instant) -> Latest {
        let diagnosis = Arc::new(PageDiagnosis::Waiting);
        Latest { made: Some(Made { diagnosis, so_far, next }), is_being_made: false }
    }

    #[test]
    fn a_diagnosis_of_a_program_that_runs_is_made_again_now_and_then_and_at_the_end() {
        let now = Instant::now();
        assert!(Latest::default().is_due(true) && Latest::default().is_due(false));
        assert!(latest(true, now).is_due(true), "it is old");
        assert!(!latest(true, now + APART).is_due(true), "it is new");
        assert!(latest(true, now + APART).is_due(false), "the program has ended");
        assert!(!latest(false, now).is_due(false), "nothing changes any more");
        assert!(latest(false, now + APART).is_due(true), "another program writes the file");
        assert!(!Latest { is_being_made: true, ..latest(true, now) }.is_due(true));
    }
}
