//! Hooks of collections: what became of the blocks.

use crate::blocks::{Fate, Generation, Generations};
use crate::queue::EndWord;
use crate::stack::native::Registers;
use crate::tracer::failure::Failure;
use crate::tracer::mutator::Mutator;
use crate::tracer::options::Tracking;
use crate::tracer::recorder::Recorder;

impl Mutator {
    /// Young: after a minor collection. Major: after marking or compaction.
    pub(crate) fn sweep(
        &mut self,
        generation: Generation,
        fate: impl FnMut(usize) -> Fate,
    ) -> Result<(), Failure> {
        self.check_tracking(Tracking::Sweeps)?;
        let mut hook = self.enter(Registers::NONE);
        self.recorder.sweep(&mut hook, generation, fate);
        self.leave(&hook);
        Ok(())
    }

    /// The addresses of the major blocks, for a collector that updates them
    /// itself. They do not move until the mutator is used again.
    pub(crate) fn major_addresses(&mut self) -> impl Iterator<Item = &mut usize> {
        let Recorder { blocks, tags, .. } = &mut self.recorder;
        blocks.major_addresses().chain(tags.iter_mut().flat_map(Generations::major_addresses))
    }

    /// The address and id of every block that is tracked in sweeps. Ids are for
    /// [`Session::identify`](crate::tracer::Session::identify).
    pub(crate) fn tracked(&self) -> impl Iterator<Item = (usize, u64)> {
        self.recorder.blocks.tracked().map(|(address, id)| (address, id.to_bits()))
    }

    pub(super) fn check_tracking(&self, tracking: Tracking) -> Result<(), Failure> {
        if !self.is_live() {
            return Err(Failure::Off);
        }
        if self.session.options.tracking == tracking { Ok(()) } else { Err(Failure::Order) }
    }

    pub(super) fn record_end(&mut self, end: EndWord) {
        if self.is_live() {
            let mut hook = self.enter(Registers::NONE);
            self.recorder.record_end(&mut hook, end);
            self.leave(&hook);
        }
    }
}
