//! What a probe was when it was last recorded, and the event that says what it is now.

use heaptap_probes::{Event, ProbeKind, TagSize};

use super::cell::Cell;
use super::timer::TimerState;

/// A probe, as sidecars have it.
pub(super) struct Recorded {
    cell: &'static Cell,
    /// What was recorded last.
    state: Option<State>,
    /// Of a tag: marks before this session began, and values that have died.
    before: u64,
    dead: u64,
}

/// What a probe measures, in the session's ticks.
#[derive(Clone, Debug, PartialEq)]
enum State {
    Count(u64),
    Timer(TimerState),
    /// The last, the least and the greatest.
    Value([f64; 3]),
    Text(String),
    Tag {
        live: u64,
        marked: u64,
        size: TagSize,
    },
}

impl Recorded {
    /// A probe of which nothing but its name is recorded.
    pub(super) fn new(cell: &'static Cell) -> Recorded {
        Recorded { cell, state: None, before: 0, dead: 0 }
    }

    /// A probe of the process that this one was forked from: its quantities go on from there, but
    /// what it has marked this process does not track.
    pub(super) fn inherited(cell: &'static Cell) -> Recorded {
        let state = match cell.kind {
            ProbeKind::Count => Some(State::Count(cell.total())),
            ProbeKind::Timer => used_timer(cell).map(State::Timer),
            ProbeKind::Value => cell.value.last().map(|last| State::Value([last; 3])),
            ProbeKind::Text => cell.text.seen().map(State::Text),
            ProbeKind::Tag => None,
        };
        let before = if cell.kind == ProbeKind::Tag { cell.total() } else { 0 };
        Recorded { cell, state, before, dead: 0 }
    }

    /// A value that carries this tag has died.
    pub(super) fn count_dead(&mut self) {
        self.dead += 1;
    }

    /// Asks a function of the program for the value, if there is one.
    pub(super) fn observe(&self) {
        self.cell.observe();
    }

    /// The event that says what was recorded last: what another file begins with.
    pub(super) fn last(&self, ns: impl Fn(u64) -> u64) -> Option<Event> {
        let state = match self.state.clone()? {
            // The extremes were those of an interval that has ended.
            State::Value([last, ..]) => State::Value([last; 3]),
            state => state,
        };
        Some(state.event(self.cell.number, ns))
    }

    /// The event that says what the probe is, if that has changed.
    pub(super) fn change(&mut self, ns: impl Fn(u64) -> u64) -> Option<Event> {
        let state = match self.cell.kind {
            ProbeKind::Count => self.unless_same(State::Count(self.cell.total())),
            ProbeKind::Timer => self.unless_same(State::Timer(used_timer(self.cell)?)),
            ProbeKind::Value => self.cell.value.take().map(State::Value),
            ProbeKind::Text => self.cell.text.take().map(State::Text),
            ProbeKind::Tag => self.unless_same(self.tag()),
        }?;
        self.state = Some(state.clone());
        Some(state.event(self.cell.number, ns))
    }

    fn unless_same(&self, state: State) -> Option<State> {
        (self.state.as_ref() != Some(&state)).then_some(state)
    }

    fn tag(&self) -> State {
        let marked = self.cell.total().saturating_sub(self.before);
        // A value's end may be read before the mark is: the next tick has both.
        let live = marked.saturating_sub(self.dead);
        // Nothing reaches nothing: that needs no measurement.
        let size = if live == 0 { TagSize::Exactly(0) } else { self.cell.size.get() };
        State::Tag { live, marked, size }
    }
}

/// What a timer has measured, if it ever ran.
fn used_timer(cell: &Cell) -> Option<TimerState> {
    cell.timer().filter(|state| state.runs != 0 || state.running != 0)
}

impl State {
    fn event(self, probe: u32, ns: impl Fn(u64) -> u64) -> Event {
        match self {
            State::Count(total) => Event::Count { probe, total },
            State::Timer(TimerState { ticks, runs, running }) => {
                Event::Timer { probe, total_ns: ns(ticks), runs, running }
            }
            State::Value([last, least, greatest]) => Event::Value { probe, last, least, greatest },
            State::Text(text) => Event::Text { probe, text },
            State::Tag { live, marked, size } => Event::Tag { probe, live, marked, size },
        }
    }
}
