//! Survivors by when they were born.

use crate::estimate::Sampled;

/// The fewest survivors that are evidence: three windows of a dozen.
pub(super) const FEWEST: u64 = 36;
const PER_WINDOW: u64 = 12;
const MOST_WINDOWS: u64 = 8;

/// The survivors by the window in which they were born, the oldest window first.
pub(super) struct Windows {
    /// Blocks of each, not samples: one large block is one event. Of several rates, as many as
    /// would have been sampled at the lowest.
    blocks: Vec<f64>,
    pub(super) samples: Vec<Sampled>,
    /// How wide all of them are, by their clock.
    span: f64,
}

impl Windows {
    /// Windows that are equal by this clock, with a dozen blocks in each on average; `None`
    /// if there are too few blocks.
    pub(super) fn of(
        survivors: &[(u64, Sampled)],
        (from, to): (u64, u64),
        lowest: u64,
        clock: impl Fn(u64) -> f64,
    ) -> Option<Self> {
        let within = |&&(birth, _): &&(u64, Sampled)| (from..to).contains(&birth);
        let events = |&(_, size): &(u64, Sampled)| events_of(size, lowest);
        let all: f64 = survivors.iter().filter(within).map(events).sum();
        if all < FEWEST as f64 {
            return None;
        }
        let windows = (all as u64 / PER_WINDOW).min(MOST_WINDOWS) as usize;
        let span = clock(to) - clock(from);
        let width = span / windows as f64;
        let (mut blocks, mut samples) = (vec![0.0; windows], vec![Sampled::default(); windows]);
        for &(birth, size) in survivors.iter().filter(within) {
            let at = ((clock(birth) - clock(from)) / width) as usize;
            let at = at.min(windows - 1);
            blocks[at] += events_of(size, lowest);
            samples[at] = samples[at].plus(size);
        }
        Some(Self { blocks, samples, span })
    }

    /// Whether no window has less than a quarter of the average. Twelve blocks in each make
    /// that certain.
    pub(super) fn is_even(&self) -> bool {
        let (windows, all) = (self.blocks.len() as f64, self.blocks.iter().sum::<f64>());
        self.blocks.iter().all(|&count| count * windows * 4.0 >= all)
    }

    /// Whether blocks are kept up to the end as they are in the windows: of the last twelve that
    /// are to be expected, a quarter is there. They may be garbage, but if there are none, the
    /// site has stopped growing.
    pub(super) fn last_until(
        &self,
        survivors: &[(u64, Sampled)],
        end: u64,
        lowest: u64,
        clock: impl Fn(u64) -> f64,
    ) -> bool {
        let all = self.blocks.iter().sum::<f64>();
        let from = clock(end) - self.span * PER_WINDOW as f64 / all;
        let last = survivors.iter().filter(|&&(birth, _)| clock(birth) >= from);
        last.map(|&(_, size)| events_of(size, lowest)).sum::<f64>() * 4.0 >= PER_WINDOW as f64
    }

    /// Whether more old objects are kept than new ones.
    pub(super) fn is_slowing(&self) -> bool {
        let (old, new) = self.samples.split_at(self.samples.len() / 2);
        let sum = |part: &[Sampled]| part.iter().copied().sum::<Sampled>().count as f64;
        let mean = |part: &[Sampled]| sum(part) / part.len().max(1) as f64;
        2.0 * mean(new) < mean(old)
    }
}

/// How often a block would have been sampled at the lowest rate, whose samples count `lowest`: at most
/// once, so that the sum over blocks varies no more than a number of such blocks would.
fn events_of(size: Sampled, lowest: u64) -> f64 {
    (size.count as f64 / lowest as f64).min(1.0)
}
