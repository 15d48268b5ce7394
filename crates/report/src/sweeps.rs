//! When old blocks were collected, by some clock: microseconds, or samples allocated.
//!
//! The run is divided into at most [`SLOTS`] slots and one that is not over. When it outgrows
//! them, they are joined in pairs, so that its length need not be known.

/// The most slots that are over.
pub(crate) const SLOTS: usize = 64;

/// Whether something old was collected in each slot.
#[derive(Default)]
pub(crate) struct Sweeps {
    width: u64,
    /// Nothing was in the slots beyond the end.
    slots: Vec<bool>,
}

impl Sweeps {
    /// Slots that are this wide at first, of a clock at 0.
    pub(crate) fn new(width: u64) -> Self {
        Sweeps { width, slots: Vec::new() }
    }

    /// Something old was collected at this time of the clock, in any order.
    pub(crate) fn record(&mut self, at: u64) {
        self.widen(at);
        let index = (at / self.width) as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, false);
        }
        self.slots[index] = true;
    }

    /// Joins slots until this time is in one of them.
    fn widen(&mut self, at: u64) {
        while at / self.width > SLOTS as u64 {
            self.width *= 2;
            self.slots = self.slots.chunks(2).map(|pair| pair.contains(&true)).collect();
        }
    }

    /// The part of a run in which survivors are evidence, if it ends at this time of the clock:
    /// from a tenth on, up to where everything has been through two collections. `None` if that
    /// is in the first half, or if nothing old was ever collected.
    pub(crate) fn evidence_until(&self, end: u64) -> Option<(u64, u64)> {
        let mut whole = Sweeps { width: self.width, slots: self.slots.clone() };
        whole.widen(end);
        // Two longest waits before the end, and the slots that are not over.
        let wait = whole.longest_wait(end)?.saturating_add(whole.width);
        let met = end.saturating_sub(wait.saturating_mul(2));
        (met > end / 2).then(|| (end / 10, met.min(end / 10 * 9)))
    }

    /// The longest time in which nothing old was collected, from the first sixteenth of the run
    /// on; `None` if nothing old ever was.
    fn longest_wait(&self, end: u64) -> Option<u64> {
        let all = (end / self.width) as usize + 1;
        let (mut wait, mut longest) = (0_u64, 0);
        for index in all / 16..all {
            let swept = self.slots.get(index).copied().unwrap_or(false);
            wait = if swept { 0 } else { wait + 1 };
            longest = longest.max(wait);
        }
        self.slots.contains(&true).then(|| longest.saturating_mul(self.width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_collections_does_not_matter() {
        let at: Vec<u64> = (1..40).map(|number: u64| number * number * 37).collect();
        let of = |times: &mut dyn Iterator<Item = &u64>| {
            let mut sweeps = Sweeps::new(1);
            times.for_each(|&time| sweeps.record(time));
            (sweeps.width, sweeps.slots)
        };
        assert_eq!(of(&mut at.iter()), of(&mut at.iter().rev()));
    }

    #[test]
    fn evidence_ends_two_waits_before_the_end() {
        let mut sweeps = Sweeps::new(1);
        (0..1000).step_by(100).for_each(|time| sweeps.record(time));
        // Slots of 16: at most 6 of them pass between collections, and one is not over.
        assert_eq!(sweeps.evidence_until(1000), Some((100, 1000 - 2 * 7 * 16)));
        // A third of the run without any is too long.
        assert_eq!(sweeps.evidence_until(1500), None);
        assert_eq!(Sweeps::new(1).evidence_until(1000), None);
    }

    #[test]
    fn no_time_is_too_late() {
        let mut sweeps = Sweeps::new(1);
        sweeps.record(u64::MAX);
        assert_eq!(sweeps.evidence_until(u64::MAX), None);
        sweeps.record(0);
        assert_eq!(sweeps.evidence_until(u64::MAX), None);
    }
}
