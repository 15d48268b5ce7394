//! What is alive: births, promotions and ends of the objects that are followed.

use heaptap_trace::{Allocation, Source};

use super::{Follow, Gather};
use crate::live::Object;
use crate::peak::parts;

impl Gather {
    pub(super) fn born(&mut self, time: u64, path: u32, allocation: &Allocation<'_>, samples: u64) {
        let (id, old) = (allocation.id, allocation.source != Source::Minor);
        let object = Object::new(time, path, samples, old);
        let samples = object.samples();
        let level = self.live.level_of(samples);
        if let Some(other) = self.live.insert(id, object) {
            self.remove(id, &other);
        }
        let counts = &mut self.paths.counts[path as usize];
        counts.settle(self.peak.number());
        counts.live = counts.live.wrapping_add(samples << level);
        self.peak.add(samples << level, parts(id, samples, level), time, self.live.level());
        self.note_time(time);
    }

    pub(super) fn promote(&mut self, id: u64) {
        if let Some(object) = self.live.get_mut(id)
            && object.promote()
        {
            let (samples, path) = (object.samples(), object.path());
            let samples = samples << self.live.level_of(samples);
            let counts = &mut self.paths.counts[path as usize];
            counts.promoted = counts.promoted.saturating_add(samples);
            self.promoted = self.promoted.saturating_add(samples);
        }
    }

    pub(super) fn collect(&mut self, time: u64, id: u64) {
        let Some(object) = self.live.remove(id) else { return };
        let samples = self.remove(id, &object);
        let lifetime = time.saturating_sub(object.time());
        let counts = &mut self.paths.counts[object.path() as usize];
        counts.died = counts.died.saturating_add(samples);
        counts.lifetime += samples as f64 * lifetime as f64;
        self.lifetimes.died(lifetime, samples);
        if self.options.follow == Follow::LiveSize && object.is_old() {
            self.growth.old_died(time);
        }
        self.note_time(time);
    }

    /// Takes an object from what is alive; the answer is what it counted for.
    fn remove(&mut self, id: u64, object: &Object) -> u64 {
        let level = self.live.level_of(object.samples());
        let samples = object.samples() << level;
        let counts = &mut self.paths.counts[object.path() as usize];
        counts.settle(self.peak.number());
        counts.live = counts.live.wrapping_sub(samples);
        self.peak.remove(samples, parts(id, object.samples(), level));
        samples
    }

    fn note_time(&mut self, time: u64) {
        let live = self.peak.live();
        let bucket = self.timeline.at(time);
        bucket.live = live;
        bucket.most_live = bucket.most_live.max(live);
    }

    /// Too much is alive: half of the objects stand for all.
    pub(super) fn thin(&mut self) {
        self.live.thin();
        self.paths.settle(self.peak.number());
        for counts in &mut self.paths.counts {
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
            let counts = &mut self.paths.counts[object.path() as usize];
            counts.live = counts.live.wrapping_add(samples);
            all = samples.wrapping_add(all);
            let parts = parts(id, object.samples(), level);
            for (sum, part) in all_parts.iter_mut().zip(parts) {
                *sum = sum.wrapping_add(part);
            }
        }
        self.peak.recount(all, all_parts);
        self.cluster = if thinned > 0.0 { squares / thinned } else { 1.0 };
    }
}
