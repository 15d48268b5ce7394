//! Survivors by when they were born.

/// The fewest survivors that are evidence: three windows of a dozen.
pub(super) const FEWEST: u64 = 36;
const PER_WINDOW: u64 = 12;
const MOST_WINDOWS: u64 = 8;

/// The survivors by the window in which they were born, the oldest window first.
pub(super) struct Windows {
    /// Blocks of each, not samples: one large block is one event.
    blocks: Vec<u64>,
    pub(super) samples: Vec<u64>,
    /// How wide all of them are, by their clock.
    span: f64,
}

impl Windows {
    /// Windows that are equal by this clock, with a dozen blocks in each on average; `None`
    /// if there are too few blocks.
    pub(super) fn of(
        survivors: &[(u64, u64)],
        (from, to): (u64, u64),
        clock: impl Fn(u64) -> f64,
    ) -> Option<Self> {
        let within = |&&(birth, _): &&(u64, u64)| (from..to).contains(&birth);
        let all = survivors.iter().filter(within).count() as u64;
        if all < FEWEST {
            return None;
        }
        let windows = (all / PER_WINDOW).min(MOST_WINDOWS) as usize;
        let span = clock(to) - clock(from);
        let width = span / windows as f64;
        let (mut blocks, mut samples) = (vec![0_u64; windows], vec![0_u64; windows]);
        for &(birth, size) in survivors.iter().filter(within) {
            let at = ((clock(birth) - clock(from)) / width) as usize;
            let at = at.min(windows - 1);
            blocks[at] += 1;
            samples[at] = samples[at].saturating_add(size);
        }
        Some(Self { blocks, samples, span })
    }

    /// Whether no window has less than a quarter of the average. Twelve blocks in each make
    /// that certain.
    pub(super) fn is_even(&self) -> bool {
        let (windows, all) = (self.blocks.len() as u64, self.blocks.iter().sum::<u64>());
        self.blocks.iter().all(|&count| count * windows * 4 >= all)
    }

    /// Whether blocks are kept up to the end as they are in the windows: of the last twelve that
    /// are to be expected, a quarter is there. They may be garbage, but if there are none, the
    /// site has stopped growing.
    pub(super) fn last_until(
        &self,
        survivors: &[(u64, u64)],
        end: u64,
        clock: impl Fn(u64) -> f64,
    ) -> bool {
        let all = self.blocks.iter().sum::<u64>() as f64;
        let from = clock(end) - self.span * PER_WINDOW as f64 / all;
        let last = survivors.iter().filter(|&&(birth, _)| clock(birth) >= from).count();
        last as u64 * 4 >= PER_WINDOW
    }

    /// Whether more old objects are kept than new ones.
    pub(super) fn is_slowing(&self) -> bool {
        let (old, new) = self.samples.split_at(self.samples.len() / 2);
        let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len().max(1) as f64;
        2.0 * mean(new) < mean(old)
    }
}
