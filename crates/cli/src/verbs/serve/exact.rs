//! Exact figures of thinned traces: the trace is read again with the filter, and answers
//! from that reading.
//!
//! There is one such reading at a time, on a thread of its own. Requests for the same
//! selection wait for it together, others until it is over. A reading for which nobody
//! waits any more is cancelled. The latest [`KEPT`] are kept, since a view asks for
//! several things of one selection.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use heaptap_query::{Engine, ExactRequest};
use heaptap_report::Archive;

use super::available::{Unavailable, WaitingRoom};
use super::http::connections::Connection;
use super::traces::Traces;
use crate::io::watch::Watch;

/// The readings that are kept: a comparison needs two.
const KEPT: usize = 2;
/// The most requests that wait.
const MOST_WAITING: usize = 32;
/// How often a request that waits looks whether its client is still there.
const PAUSE: Duration = Duration::from_millis(100);
/// Of the thread that answers: regular expressions may be nested.
const STACK: usize = 8 << 20;

/// What is read.
#[derive(Clone, PartialEq)]
struct Selected {
    trace: usize,
    filter: heaptap_query::Filter,
    at: Option<u64>,
}

/// A reading with a selection.
struct ExactReading {
    selected: Selected,
    watch: Arc<Watch>,
    outcome: OnceLock<Result<Arc<Archive>, String>>,
}

#[derive(Default)]
struct State {
    /// The latest is the last.
    kept: Vec<Arc<ExactReading>>,
    /// The one that is under way, and how many requests wait for it.
    running: Option<(Arc<ExactReading>, usize)>,
}

/// The readings for exact figures.
#[derive(Default)]
pub(super) struct ExactReadings {
    state: Mutex<State>,
    changed: Condvar,
    waiting: WaitingRoom,
}

impl ExactReadings {
    /// The answer to a request, as JSON; `None` if the client is gone.
    pub(super) fn answer(
        self: &Arc<Self>,
        traces: &Arc<Traces>,
        body: &[u8],
        client: &Connection,
    ) -> Result<Option<String>, Unavailable> {
        let request = ExactRequest::parse(body).map_err(Unavailable::Failed)?;
        let _waiting = self.waiting.enter(MOST_WAITING)?;
        let mut archives = Vec::new();
        for &trace in request.traces() {
            let (filter, at) = (request.filter().clone(), request.at());
            let selected = Selected { trace, filter, at };
            let Some(archive) = self.find(traces, &selected, client)? else { return Ok(None) };
            archives.push(archive);
        }
        let answer = move || {
            let mut engine = Engine::default();
            for archive in archives {
                engine.add_reading(archive, request.filter().clone());
            }
            engine.query(request.renumbered())
        };
        let started = thread::Builder::new().stack_size(STACK).spawn(answer);
        let answered = started.ok().and_then(|thread| thread.join().ok());
        answered
            .map(Some)
            .ok_or_else(|| Unavailable::Failed("the server is out of memory".to_owned()))
    }

    /// The progress of the reading of a trace, in bytes, and its size.
    pub(super) fn progress(&self, trace: usize) -> Option<(u64, u64)> {
        let state = self.state();
        let (running, _) = state.running.as_ref()?;
        (running.selected.trace == trace).then(|| running.watch.progress())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The archive of a selection: one that is kept, or a new reading. `None` if the client is gone.
    fn find(
        self: &Arc<Self>,
        traces: &Arc<Traces>,
        selected: &Selected,
        client: &Connection,
    ) -> Result<Option<Arc<Archive>>, Unavailable> {
        let mut state = self.state();
        // The reading that this request waits for.
        let mut joined: Option<Arc<ExactReading>> = None;
        loop {
            if let Some(place) = state.kept.iter().position(|kept| kept.selected == *selected) {
                let kept = state.kept.remove(place);
                state.kept.push(Arc::clone(&kept));
                joined = Some(kept);
            }
            if let Some(outcome) = joined.as_ref().and_then(|reading| reading.outcome.get()) {
                return outcome.clone().map(Some).map_err(Unavailable::Failed);
            }
            match &mut state.running {
                None => joined = Some(self.start(&mut state, traces, selected)?),
                Some((running, waiting)) if joined.is_none() && running.selected == *selected => {
                    *waiting += 1;
                    joined = Some(Arc::clone(running));
                }
                Some(_) => {}
            }
            let waited = self.changed.wait_timeout(state, PAUSE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if client.is_gone() {
                state.leave(joined.as_ref());
                return Ok(None);
            }
        }
    }

    fn start(
        self: &Arc<Self>,
        state: &mut State,
        traces: &Arc<Traces>,
        selected: &Selected,
    ) -> Result<Arc<ExactReading>, Unavailable> {
        // Makes room before, since a reading takes memory of its own.
        if state.kept.len() == KEPT {
            state.kept.remove(0);
        }
        let (watch, outcome) = (Arc::default(), OnceLock::new());
        let reading = Arc::new(ExactReading { selected: selected.clone(), watch, outcome });
        let (all, traces, of_thread) = (Arc::clone(self), Arc::clone(traces), Arc::clone(&reading));
        let started = thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || all.finish(&of_thread, of_thread.read(&traces)));
        if started.is_err() {
            let message = "the server cannot start another thread; try again".to_owned();
            return Err(Unavailable::Failed(message));
        }
        state.running = Some((Arc::clone(&reading), 1));
        Ok(reading)
    }

    fn finish(&self, reading: &Arc<ExactReading>, read: Result<Archive, String>) {
        let mut state = self.state();
        state.running = None;
        if read.is_ok() {
            state.kept.push(Arc::clone(reading));
        }
        // This is the only place that sets it.
        let _ = reading.outcome.set(read.map(Arc::new));
        self.changed.notify_all();
    }
}

impl ExactReading {
    /// Reads the trace. A panic is a failure: requests wait for it.
    fn read(&self, traces: &Traces) -> Result<Archive, String> {
        let Selected { trace, filter, at } = &self.selected;
        let read = || self.watch.during(|| traces.read_again(*trace, filter, *at));
        let stopped = "the reading stopped; please report this with the trace";
        catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(stopped.to_owned()))
    }
}

impl State {
    /// A request is gone, which may have waited for the reading under way.
    fn leave(&mut self, joined: Option<&Arc<ExactReading>>) {
        if let Some((running, waiting)) = &mut self.running
            && joined.is_some_and(|joined| Arc::ptr_eq(joined, running))
        {
            *waiting -= 1;
            if *waiting == 0 {
                running.watch.cancel();
            }
        }
    }
}
