//! Exact figures of thinned traces: the trace is read again with the filter, and answers
//! from that reading.
//!
//! There is one such reading at a time, on a thread of its own. Requests for the same
//! selection wait for it together, others until it is over. A reading for which nobody
//! waits any more is cancelled. The latest [`KEPT`] are kept, since a view asks for
//! several things of one selection.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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

/// A reading that is under way.
struct Reading {
    selected: Selected,
    watch: Arc<Watch>,
    /// The requests that wait for it.
    waiting: usize,
    /// Tells it from the one before, which may have had the same selection.
    number: u64,
}

#[derive(Default)]
struct State {
    /// The latest is the last.
    kept: Vec<(Selected, Arc<Archive>)>,
    running: Option<Reading>,
    /// The last reading that failed, and why.
    failed: Option<(u64, String)>,
    /// How many readings there were.
    started: u64,
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
        let running = state.running.as_ref().filter(|reading| reading.selected.trace == trace);
        running.map(|reading| reading.watch.progress())
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
        let mut joined = None;
        loop {
            if let Some(place) = state.kept.iter().position(|(kept, _)| kept == selected) {
                let kept = state.kept.remove(place);
                let archive = Arc::clone(&kept.1);
                state.kept.push(kept);
                return Ok(Some(archive));
            }
            if let Some((number, message)) = &state.failed
                && joined == Some(*number)
            {
                return Err(Unavailable::Failed(message.clone()));
            }
            match &mut state.running {
                None => joined = Some(self.start(&mut state, traces, selected)?),
                Some(running) if running.selected == *selected => {
                    if joined != Some(running.number) {
                        running.waiting += 1;
                        joined = Some(running.number);
                    }
                }
                Some(_) => {}
            }
            let waited = self.changed.wait_timeout(state, PAUSE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if client.is_gone() {
                state.leave(joined);
                return Ok(None);
            }
        }
    }

    /// Starts a reading, and returns its number.
    fn start(
        self: &Arc<Self>,
        state: &mut State,
        traces: &Arc<Traces>,
        selected: &Selected,
    ) -> Result<u64, Unavailable> {
        // Makes room before, since a reading takes memory of its own.
        if state.kept.len() == KEPT {
            state.kept.remove(0);
        }
        state.started += 1;
        let number = state.started;
        let watch = Arc::new(Watch::default());
        let reading = {
            let (all, traces) = (Arc::clone(self), Arc::clone(traces));
            let (watch, selected) = (Arc::clone(&watch), selected.clone());
            move || {
                let ending = Ending { all, number };
                let Selected { trace, filter, at } = &selected;
                let read = watch.during(|| traces.read_again(*trace, filter, *at));
                ending.all.finish(selected, number, read);
            }
        };
        let started = thread::Builder::new().stack_size(STACK).spawn(reading);
        if started.is_err() {
            let message = "the server cannot start another thread; try again".to_owned();
            return Err(Unavailable::Failed(message));
        }
        let selected = selected.clone();
        state.running = Some(Reading { selected, watch, waiting: 1, number });
        Ok(number)
    }

    fn finish(&self, selected: Selected, number: u64, read: Result<Archive, String>) {
        let mut state = self.state();
        state.running.take_if(|running| running.number == number);
        match read {
            Ok(archive) => {
                state.failed = None;
                state.kept.push((selected, Arc::new(archive)));
            }
            Err(message) => state.failed = Some((number, message)),
        }
        self.changed.notify_all();
    }
}

impl State {
    /// A request does not wait for its reading any more.
    fn leave(&mut self, joined: Option<u64>) {
        if let Some(running) = &mut self.running
            && joined == Some(running.number)
        {
            running.waiting -= 1;
            if running.waiting == 0 {
                running.watch.cancel();
            }
        }
    }
}

/// Ends a reading, also if its thread panics.
struct Ending {
    all: Arc<ExactReadings>,
    number: u64,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let mut state = self.all.state();
        if state.running.take_if(|running| running.number == self.number).is_some() {
            let message = "the reading stopped; please report this with the trace".to_owned();
            state.failed = Some((self.number, message));
            self.all.changed.notify_all();
        }
    }
}

impl Connection {
    /// Whether the client has closed the connection.
    pub(super) fn is_gone(&self) -> bool {
        let stream = &self.stream;
        let peeked = stream
            .set_nonblocking(true)
            .and_then(|()| stream.peek(&mut [0]))
            .map_err(|error| error.kind());
        let restored = stream.set_nonblocking(false);
        restored.is_err() || !matches!(peeked, Ok(1) | Err(io::ErrorKind::WouldBlock))
    }
}
