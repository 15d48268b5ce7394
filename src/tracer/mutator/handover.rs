//! The end of a mutator, and who takes over its blocks. Takes the registry's lock: when
//! a mutator starts or ends, and in a collection while all mutators are stopped.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::sampling::YoungSamples;
use crate::stack::native::Registers;
use crate::tracer::backtraces::StackSource;
use crate::tracer::failure::Failure;
use crate::tracer::lane_writer::LaneWriter;
use crate::tracer::mutator::Mutator;
use crate::tracer::recorder::Recorder;
use crate::tracer::session::Session;

impl Mutator {
    // --- The end of a mutator ---

    /// Adopts the blocks of another mutator, which ends.
    pub(crate) fn adopt(&mut self, other: &mut Mutator) {
        // Without memory for them the blocks stay alive in the trace.
        self.recorder.blocks.adopt(&mut other.recorder.blocks);
        if let Some(tags) = &mut other.recorder.tags {
            self.recorder.adopt_tags(tags);
        }
        self.recorder.count_blocks();
    }

    /// Adopts the blocks that ended mutators have left.
    pub(crate) fn adopt_orphans(&mut self) {
        if !self.session.has_orphans() {
            return;
        }
        let Mutator { session, recorder, .. } = self;
        session.with_orphans(|orphans| {
            recorder.blocks.adopt(&mut orphans.blocks);
            recorder.adopt_tags(&mut orphans.tags);
        });
        recorder.count_blocks();
    }

    /// Before its end: records the ends that were held back.
    pub(crate) fn settle(&mut self) {
        let mut hook = self.enter(Registers::NONE);
        self.recorder.settle(&mut hook);
    }

    /// Leaves its blocks to the next mutator that starts or adopts orphans.
    pub(crate) fn leave_blocks_to_session(&mut self) {
        let Mutator { session, recorder, .. } = self;
        if recorder.blocks.is_empty() && recorder.tags.is_none() {
            return;
        }
        session.with_orphans(|orphans| {
            orphans.blocks.adopt(&mut recorder.blocks);
            if let Some(tags) = &mut recorder.tags {
                orphans.tags.adopt(tags);
            }
        });
        recorder.count_blocks();
    }

    /// Gives its lane back. What it recorded will be written.
    pub(crate) fn end(self) {
        let Mutator { session, recorder: Recorder { lane, number, .. }, .. } = self;
        session.time_line.domains.fetch_sub(1, Ordering::Relaxed);
        let LaneWriter { producer, counters, .. } = lane;
        if session.has_forked() {
            producer.abandon();
            return;
        }
        session.registry().remove(producer.lane(), number, &counters);
        producer.end();
    }

    /// The mutator that continues this one in a session of a forked child. It has
    /// none of this one's blocks.
    pub(crate) fn restart_in(&mut self, session: &Arc<Session>) -> Result<Mutator, Failure> {
        let source = std::mem::replace(&mut self.recorder.backtraces.source, StackSource::None);
        let mut fresh = Mutator::start(session, source)?;
        fresh.suspended = self.suspended;
        fresh.young = YoungSamples::lost_count(self.young.start());
        fresh.young_blocks.upward = self.young_blocks.upward;
        fresh.set_label(self.recorder.backtraces.label);
        Ok(fresh)
    }
}
