//! How often probes and counters are recorded: at each tick, unless that would take too many bytes.

use heaptap_probes::Spacing;

/// How many bytes of probes are recorded in a second, and at once. That is each tick for 150 probes
/// that change all the time.
const BYTES_A_SECOND: u64 = 64 << 10;
const AT_ONCE: u64 = 2 * BYTES_A_SECOND;

/// Decides at each tick whether rows are recorded. Times are nanoseconds since the epoch.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Bytes that were recorded and are not made up for by time.
    spent: u64,
    last_tick: u64,
    /// When rows were last recorded, and whether some were put off since.
    last_rows: u64,
    is_late: bool,
    /// How far apart the file says that its rows are.
    announced: u64,
    /// Everything is recorded once more.
    hurries: bool,
}

/// What is to be recorded at a tick.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DueRows {
    pub(super) probes: bool,
    pub(super) counters: bool,
    /// From when on rows are farther apart than the file has said, and how far.
    pub(super) spacing: Option<(u64, Spacing)>,
}

impl Pace {
    /// The next tick is the last one: everything is recorded.
    pub(super) fn hurry(&mut self) {
        self.hurries = true;
    }

    pub(super) fn is_last(&self) -> bool {
        self.hurries
    }

    /// What is due at this tick. No two rows are to be closer than `least_interval`, unless memory is
    /// short.
    pub(super) fn due(&mut self, time: u64, least_interval: u64, is_urgent: bool) -> DueRows {
        let passed = time.saturating_sub(std::mem::replace(&mut self.last_tick, time));
        let earned = u128::from(passed) * u128::from(BYTES_A_SECOND) / 1_000_000_000;
        self.spent = self.spent.saturating_sub(u64::try_from(earned).unwrap_or(u64::MAX));
        let since = time.saturating_sub(self.last_rows);
        let hurries = std::mem::take(&mut self.hurries);
        let counters = hurries || is_urgent || since >= least_interval;
        let probes = hurries || counters && self.spent < AT_ONCE;
        if !probes {
            self.is_late = true;
            return DueRows { probes, counters, spacing: None };
        }
        let is_apart = std::mem::take(&mut self.is_late) && since > self.announced;
        let spacing = is_apart.then(|| {
            self.announced = since.saturating_mul(2);
            (self.last_rows, Spacing { until: u64::MAX, ns: self.announced })
        });
        self.last_rows = time;
        DueRows { probes, counters, spacing }
    }

    /// So many bytes of probes were recorded.
    pub(super) fn spend(&mut self, bytes: u64) {
        self.spent = self.spent.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 100_000_000;

    /// The bytes of so many ticks, and how far apart rows were said to be.
    fn record(pace: &mut Pace, ticks: std::ops::Range<u64>, row: u64) -> (u64, Vec<u64>) {
        let (mut bytes, mut spacings) = (0, Vec::new());
        for tick in ticks {
            let due = pace.due(tick * TICK, 0, false);
            assert!(due.counters);
            spacings.extend(due.spacing.map(|(_, spacing)| spacing.ns / TICK));
            if due.probes {
                pace.spend(row);
                bytes += row;
            }
        }
        (bytes, spacings)
    }

    #[test]
    fn a_few_probes_are_recorded_at_each_tick() {
        let mut pace = Pace::default();
        assert_eq!(record(&mut pace, 1..1_001, 4_000), (4_000_000, vec![]));
    }

    #[test]
    fn many_probes_take_no_more_bytes_than_are_allowed() {
        let mut pace = Pace::default();
        let (bytes, spacings) = record(&mut pace, 1..6_001, 150_000);
        let allowed = 600 * BYTES_A_SECOND;
        assert!((allowed / 10 * 9..allowed + AT_ONCE + 150_000).contains(&bytes), "{bytes}");
        // A row in 2.3 s.
        let [.., widest] = spacings[..] else { panic!("{spacings:?}") };
        assert!((23..60).contains(&widest) && spacings.len() < 5, "{spacings:?}");
        // Few again, once that is made up for.
        record(&mut pace, 6_001..6_100, 100);
        let (bytes, spacings) = record(&mut pace, 6_100..6_200, 100);
        assert_eq!((bytes, spacings), (10_000, vec![]));
    }

    #[test]
    fn rows_are_as_far_apart_as_they_must_be() {
        let mut pace = Pace::default();
        assert!(pace.due(100 * TICK, 990_000_000, false).probes);
        let rows = (101..200).filter(|tick| pace.due(tick * TICK, 990_000_000, false).counters);
        assert_eq!(rows.count(), 9);
        assert_eq!(pace.announced, 20 * TICK);
        assert!(pace.due(200 * TICK, u64::MAX, true).counters, "memory is short");
        pace.hurry();
        assert!(pace.due(201 * TICK, u64::MAX, false).probes, "at the end");
    }
}
