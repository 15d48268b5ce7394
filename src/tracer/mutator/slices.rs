//! The collector's slices, for the time line beside the trace.

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
}
