//! Samples of several rates, brought to the lowest one.
//!
//! A word that was sampled at rate r and is then kept with probability q is a sample at rate r·q,
//! whatever happens to other words. So of a block that was sampled at a higher rate each sample is
//! kept with the quotient of the rates, and what is left is as if the whole program had been
//! sampled at the lowest: unbiased, with the errors of that rate, in every figure.
//!
//! The choice depends on the id of the block alone: each reading of a trace makes the same.

use heaptap_trace::{Allocation, Event, EventKind};
use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::analysis::thinning::Survivors;

/// Brings the samples of blocks to one rate.
pub(super) struct Leveller {
    common: f64,
}

impl Leveller {
    pub(super) fn new(common: f64) -> Leveller {
        Leveller { common }
    }

    /// The event as if its block had been sampled at the common rate, if it had been sampled then.
    /// Ends of blocks that were not are of no block that anybody knows.
    pub(super) fn at_common_rate<'e>(&self, event: Event<'e>, rate: f64) -> Option<Event<'e>> {
        let EventKind::Alloc(allocation) = event.kind else { return Some(event) };
        if rate <= self.common {
            return Some(event);
        }
        let random = Xoshiro256PlusPlus::seed_from_u64(allocation.id);
        let samples = Survivors { share: self.common / rate, random }.of(allocation.samples);
        let kind = EventKind::Alloc(Allocation { samples, ..allocation });
        (samples > 0).then_some(Event { kind, ..event })
    }
}
