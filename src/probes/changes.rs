//! What a probe was when it was last recorded, and the event that says what it is now.

use heaptap_probes::{Event, ProbeKind, TagSize};

use super::cell::Cell;
use super::timer::TimerState;

/// A probe, as the sidecar has it.
pub(super) struct Recorded {
    cell: &'static Cell,
    /// What was recorded of a timer.
    timer: Option<TimerState>,
    /// Passes, or marks of a tag.
    total: u64,
    /// Of a tag: marks before this sidecar's process began, and values that have died.
    before: u64,
    dead: u64,
    size: TagSize,
    /// Whether the file has the last total.
    written: bool,
}

impl Recorded {
    /// A probe of which nothing but its name is recorded.
    pub(super) fn new(cell: &'static Cell) -> Recorded {
        let before = 0;
        let (total, dead, size) = (0, 0, TagSize::Unknown);
        Recorded { cell, timer: None, total, before, dead, size, written: false }
    }

    /// Marks before now belong to the process that this one was forked from: it follows those
    /// values, this one does not.
    pub(super) fn forget_marks(&mut self) {
        self.before = self.cell.total();
    }

    /// Another file begins, which knows nothing of it.
    pub(super) fn say_again(&mut self) {
        self.timer = None;
        self.written = false;
    }

    /// A value that carries this tag has died.
    pub(super) fn count_dead(&mut self) {
        self.dead += 1;
        self.written = false;
    }

    /// The event that says what the probe is, if that has changed.
    pub(super) fn change(&mut self, ns: impl Fn(u64) -> u64) -> Option<Event> {
        let probe = self.cell.number();
        match self.cell.kind() {
            ProbeKind::Count => {
                let total = self.cell.total();
                self.replace_total(total).then_some(Event::Count { probe, total })
            }
            ProbeKind::Timer => {
                let state = self.cell.timer()?;
                let idle = state.runs == 0 && state.running == 0;
                if idle || self.timer.replace(state) == Some(state) {
                    return None;
                }
                let TimerState { ticks, runs, running } = state;
                Some(Event::Timer { probe, total_ns: ns(ticks), runs, running })
            }
            ProbeKind::Value => {
                let [last, least, greatest] = self.cell.take_value()?;
                Some(Event::Value { probe, last, least, greatest })
            }
            ProbeKind::Text => Some(Event::Text { probe, text: self.cell.take_text()? }),
            ProbeKind::Tag => self.tag_change(probe),
        }
    }

    fn tag_change(&mut self, probe: u32) -> Option<Event> {
        let marked = self.cell.total().saturating_sub(self.before);
        // A value's end may be read before the mark is: the next tick has both.
        let live = marked.saturating_sub(self.dead);
        // Nothing reaches nothing: that needs no measurement.
        let size = if live == 0 { TagSize::Exactly(0) } else { self.cell.size() };
        let changed = self.replace_total(marked) | (self.size != size);
        self.size = size;
        changed.then_some(Event::Tag { probe, live, marked, size })
    }

    fn replace_total(&mut self, total: u64) -> bool {
        let changed = std::mem::replace(&mut self.total, total) != total || !self.written;
        self.written = true;
        changed
    }
}
