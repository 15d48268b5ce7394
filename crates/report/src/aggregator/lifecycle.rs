//! Births, promotions and collections of the objects that are followed.

use heaptap_trace::{Allocation, Source};

use super::{Aggregator, Follow};
use crate::live::LiveObject;
use crate::peak::parts;

impl Aggregator {
    /// Follows a new object.
    pub(super) fn born(&mut self, time: u64, path: u32, allocation: &Allocation<'_>, samples: u64) {
        let (id, old) = (allocation.id, allocation.source != Source::Minor);
        let object = LiveObject::new(time, path, samples, old);
        let samples = object.samples();
        let level = self.live.level_of(samples);
        if let Some(other) = self.live.insert(id, object) {
            self.remove(id, &other);
        }
        let counts = &mut self.aggregate.paths.counts[path as usize];
        counts.settle(self.aggregate.peak.number());
        counts.live = counts.live.wrapping_add(samples << level);
        self.aggregate.peak.add(
            samples << level,
            parts(id, samples, level),
            time,
            self.live.level(),
        );
        self.record_live_size(time);
    }

    pub(super) fn promote(&mut self, id: u64) {
        if let Some(object) = self.live.get_mut(id)
            && object.promote()
        {
            let (samples, path) = (object.samples(), object.path());
            let samples = samples << self.live.level_of(samples);
            let counts = &mut self.aggregate.paths.counts[path as usize];
            counts.promoted = counts.promoted.saturating_add(samples);
            self.aggregate.promoted = self.aggregate.promoted.saturating_add(samples);
        }
    }

    pub(super) fn collect(&mut self, time: u64, id: u64) {
        let Some(object) = self.live.remove(id) else { return };
        let samples = self.remove(id, &object);
        let lifetime = time.saturating_sub(object.time());
        let counts = &mut self.aggregate.paths.counts[object.path() as usize];
        counts.died = counts.died.saturating_add(samples);
        counts.lifetime += samples as f64 * lifetime as f64;
        self.aggregate.lifetimes.died(lifetime, samples);
        if self.options.follow == Follow::LiveSize && object.is_old() {
            self.aggregate.growth.old_died(time);
        }
        self.record_live_size(time);
    }

    /// Removes an object from the live counts and returns the samples it counted for.
    fn remove(&mut self, id: u64, object: &LiveObject) -> u64 {
        let level = self.live.level_of(object.samples());
        let samples = object.samples() << level;
        let counts = &mut self.aggregate.paths.counts[object.path() as usize];
        counts.settle(self.aggregate.peak.number());
        counts.live = counts.live.wrapping_sub(samples);
        self.aggregate.peak.remove(samples, parts(id, object.samples(), level));
        samples
    }

    fn record_live_size(&mut self, time: u64) {
        let live = self.aggregate.peak.live();
        let bucket = self.aggregate.timeline.at(time);
        bucket.live = live;
        bucket.most_live = bucket.most_live.max(live);
    }

    /// Halves the objects that are followed when there are too many, and counts what
    /// is alive anew from those that are left.
    pub(super) fn thin(&mut self) {
        self.live.thin();
        self.aggregate.paths.settle(self.aggregate.peak.number());
        for counts in &mut self.aggregate.paths.counts {
            counts.live = 0;
        }
        let (mut all, mut all_parts) = (0_u64, [0_u64; 3]);
        let (mut thinned, mut squares) = (0.0, 0.0);
        for (id, object) in self.live.iter() {
            let level = self.live.level_of(object.samples());
            if level > 0 {
                thinned += object.samples() as f64;
                squares += (object.samples() as f64).powi(2);
            }
            let samples = object.samples() << level;
            let counts = &mut self.aggregate.paths.counts[object.path() as usize];
            counts.live = counts.live.wrapping_add(samples);
            all = samples.wrapping_add(all);
            let parts = parts(id, object.samples(), level);
            for (sum, part) in all_parts.iter_mut().zip(parts) {
                *sum = sum.wrapping_add(part);
            }
        }
        self.aggregate.peak.recount(all, all_parts);
        self.aggregate.cluster = if thinned > 0.0 { squares / thinned } else { 1.0 };
    }
}
