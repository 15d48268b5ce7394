//! Blocks that carry a tag: tracked like sampled ones, but not in the trace, where they would
//! bias every estimate. Their ends go to the sidecar.

use std::sync::atomic::Ordering;

use heaptap_trace::Source;

use crate::blocks::{Generations, TrackedId};
use crate::probes::Cell;
use crate::queue::BlockId;
use crate::tracer::failure::Failure;
use crate::tracer::mutator::Mutator;
use crate::tracer::options::Tracking;
use crate::tracer::recorder::Tracked;

impl Mutator {
    /// Marks a block, which is young or not, with a tag. It is counted as live until the
    /// collector reports its end. Not inside a collection. A block that is marked twice counts
    /// twice.
    pub(crate) fn tag(&mut self, probe: &Cell, block: usize, young: bool) -> Result<(), Failure> {
        if !self.is_live() {
            return Err(Failure::Off);
        }
        let tracked = match self.session.options.tracking {
            Tracking::Addresses => Tracked::ByAddress,
            Tracking::Sweeps if young => Tracked::Young,
            Tracking::Sweeps => Tracked::Major,
        };
        let id = BlockId::new(BlockId::TAGGED, u64::from(probe.number));
        // External memory has no promotions either.
        let id = TrackedId::new(id, Source::External);
        if tracked == Tracked::ByAddress {
            if !self.session.tagged.add(block, id) {
                return Err(Failure::Memory);
            }
        } else {
            let tags = self.recorder.tags_to_add_to().ok_or(Failure::Memory)?;
            if !tags.reserve(1) {
                return Err(Failure::Memory);
            }
            match tracked {
                Tracked::Young => tags.add_young(block, id),
                Tracked::Major | Tracked::ByAddress => tags.add_major(block, id),
            }
        }
        probe.mark();
        Ok(())
    }

    /// Whether any block carries a tag.
    pub(crate) fn has_tagged(&self) -> bool {
        self.recorder.tags.as_ref().is_some_and(|tags| !tags.is_empty())
    }

    /// The session's clock.
    pub(crate) fn ticks(&self) -> u64 {
        self.stopwatch.ticks()
    }

    /// How many ticks of the session's clock this many nanoseconds have; as many, before that is
    /// known.
    pub(crate) fn ticks_in(&self, ns: u64) -> u64 {
        let tick_ns = self.session.state.tick_ns.load(Ordering::Relaxed);
        (ns << 20).checked_div(tick_ns).unwrap_or(ns)
    }

    /// The address of every block that carries a tag, with the number of its probe.
    pub(crate) fn tagged(&self) -> impl Iterator<Item = (usize, u64)> {
        let tags = self.recorder.tags.iter().flat_map(Generations::tracked);
        tags.map(|(address, id)| (address, id.number()))
    }
}
