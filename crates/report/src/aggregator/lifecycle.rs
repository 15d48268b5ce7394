//! Births, promotions and collections of the objects that are followed.

use std::ops::Range;

use heaptap_trace::Source;

use super::Aggregator;
use crate::live::LiveObject;
use crate::tally::{Birth, Follow};

impl Aggregator {
    /// Follows a new object.
    pub(super) fn born(&mut self, birth: &Birth, id: u64) {
        let &Birth { time, path, samples, source, class, .. } = birth;
        let object = LiveObject::new(time, path, samples, source != Source::Minor).of_class(class);
        if let Some(other) = self.live.insert(id, object) {
            self.tally.removed(&self.live.block(id, other));
        }
        self.tally.born(&self.live.block(id, object), self.live.level());
    }

    pub(super) fn promote(&mut self, time: u64, id: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.promoted(id, time);
        }
        if let Some(object) = self.live.get_mut(id)
            && object.promote()
        {
            let object = *object;
            self.tally.promoted(&self.live.block(id, object));
        }
    }

    pub(super) fn collect(&mut self, time: u64, id: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.died(id, time);
        }
        let Some(object) = self.live.remove(id) else { return };
        self.tally.died(&self.live.block(id, object), time);
    }

    /// Takes the end of one of several traces, whose blocks have these ids. Its
    /// process is over, so that what it still has is not alive any more, but it counts as
    /// alive at the end. Takes time in proportion to the live objects.
    pub fn end_trace(&mut self, ids: Range<u64>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.trace_ended(&ids, self.tally.aggregate.end);
        }
        // Survivors are the evidence for leaks.
        let keep = self.options.follow == Follow::LiveSize;
        self.tally.ended(&self.live.end(&ids, keep), keep);
    }

    /// Halves the objects that are followed when there are too many, and counts what
    /// is alive anew from those that are left.
    pub(super) fn thin(&mut self) {
        self.live.thin();
        self.tally.recount(self.live.iter(), self.live.level());
    }
}
