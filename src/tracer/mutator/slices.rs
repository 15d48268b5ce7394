//! The collector's slices and cycles, for the time line beside the trace.

use crate::probes::SliceKind;
use crate::tracer::mutator::Mutator;

impl Mutator {
    /// The collector begins to work for this mutator.
    pub(crate) fn slice_begins(&mut self, kind: SliceKind) {
        let now = self.stopwatch.ticks();
        if let Some(begin) = self.slices.get_mut(usize::from(kind.number())) {
            *begin = Some(now);
        }
    }

    /// The program goes on.
    pub(crate) fn slice_ends(&mut self, kind: SliceKind) {
        let now = self.stopwatch.ticks();
        let begin = self.slices.get_mut(usize::from(kind.number())).and_then(Option::take);
        if let Some(begin) = begin {
            self.session.time_line.slice(kind, self.recorder.lane.producer.lane(), begin, now);
        }
    }

    /// The collector does not mark now.
    pub(crate) fn is_not_marking(&self) {
        self.session.time_line.is_not_marking(self.stopwatch.ticks());
    }

    /// The collector has marked what is alive, and all that is dead was reported. `name` tells this
    /// cycle from the one before.
    pub(crate) fn cycle_marked(&self, name: u64) {
        self.session.time_line.cycle_marked(name, self.stopwatch.ticks());
    }
}
