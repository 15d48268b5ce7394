//! When memory runs short: below a limit of the process's control groups, as whoever looks ten
//! times a second sees it. On threads of ours.

use std::time::{Duration, Instant};

use super::process_stats::{GroupUsage, ProcessStats};

/// Memory is short below this part of the limit, or if the rest is used up this soon.
const SHORT: u64 = 10;
const SHORT_NS: u64 = 2_000_000_000;

/// After it has become short it is not new for this long. Only that it has become little is, after
/// it grew fast: many programs grow fast while they start, and end later.
const REST_NS: u64 = 300_000_000_000;

/// It is urgent until this long after it was last seen short: a program that grows stands still
/// now and then.
const LINGER_NS: u64 = 1_000_000_000;

/// And no longer than this: a program may live close to its limit.
const LONGEST_URGENT_NS: u64 = 10_000_000_000;

/// Looks at the limit of the process's memory, with or without a time line.
pub(crate) struct MemoryWatch {
    stats: ProcessStats,
    pressure: PressureWatch,
    start: Instant,
    /// When to look next.
    pub(crate) next: Instant,
}

impl MemoryWatch {
    /// Between two looks, which take some microseconds each.
    const PERIOD: Duration = Duration::from_millis(100);

    pub(crate) fn new(now: Instant) -> MemoryWatch {
        let pressure = PressureWatch::default();
        MemoryWatch { stats: ProcessStats::new(), pressure, start: now, next: now }
    }

    /// Whether memory has become short, if it is time to look.
    pub(crate) fn is_short(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + MemoryWatch::PERIOD;
        let time = now.saturating_duration_since(self.start).as_nanos();
        let time = u64::try_from(time).unwrap_or(u64::MAX);
        self.pressure.look(self.stats.group_usage(), time).is_some()
    }
}

/// Decides from usage and limit whether memory is short. Times are nanoseconds of any clock.
#[derive(Default)]
pub(crate) struct PressureWatch {
    /// The time and the usage of the last look.
    previous: Option<(u64, u64)>,
    /// Until when it is not new that memory is little, and that it is short for any reason.
    little_until: u64,
    short_until: u64,
    /// When it became new; `None` while it is not urgent.
    began: Option<u64>,
    last_short: u64,
}

impl PressureWatch {
    /// Looks. Returns the bytes that are left, when they have become few or will be used up soon;
    /// each of them not again for five minutes.
    pub(crate) fn look(&mut self, group: Option<GroupUsage>, now: u64) -> Option<u64> {
        let Shortage { headroom, is_little, is_short } =
            group.map(|group| self.shortage(group, now)).unwrap_or_default();
        let is_new = is_little && now >= self.little_until || is_short && now >= self.short_until;
        if is_short {
            self.last_short = now;
        }
        if is_new {
            let rest = now.saturating_add(REST_NS);
            self.short_until = rest;
            self.little_until = if is_little { rest } else { self.little_until };
            self.began = Some(now);
        }
        let lasts = |began: u64| {
            now.saturating_sub(began) < LONGEST_URGENT_NS
                && now.saturating_sub(self.last_short) < LINGER_NS
        };
        self.began = self.began.filter(|&began| lasts(began));
        is_new.then_some(headroom)
    }

    /// Whether the process may end at any moment: all that is known should be written often.
    pub(crate) fn is_urgent(&self) -> bool {
        self.began.is_some()
    }

    fn shortage(&mut self, group: GroupUsage, now: u64) -> Shortage {
        let GroupUsage { usage, limit } = group;
        let headroom = limit.saturating_sub(usage);
        let before = self.previous.replace((now, usage));
        let is_used_up_soon = before.is_some_and(|(then, before)| {
            let growth = u128::from(usage.saturating_sub(before)) * u128::from(SHORT_NS);
            let elapsed = u128::from(now.saturating_sub(then));
            elapsed != 0 && growth / elapsed > u128::from(headroom)
        });
        let is_little = headroom < limit / SHORT;
        Shortage { headroom, is_little, is_short: is_little || is_used_up_soon }
    }
}

/// What is left below a limit, in bytes.
#[derive(Default)]
struct Shortage {
    headroom: u64,
    is_little: bool,
    is_short: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn used(usage: u64) -> Option<GroupUsage> {
        Some(GroupUsage { usage, limit: 1_000 })
    }

    #[test]
    fn little_memory_is_new_once_in_five_minutes() {
        let mut watch = PressureWatch::default();
        assert_eq!(watch.look(used(600), 0), None);
        assert_eq!(watch.look(used(899), 10 * SECOND), None);
        assert_eq!(watch.look(used(950), 60 * SECOND), Some(50));
        assert_eq!(watch.look(used(960), 70 * SECOND), None);
        assert_eq!(watch.look(used(960), 359 * SECOND), None);
        assert_eq!(watch.look(used(960), 360 * SECOND), Some(40));
    }

    #[test]
    fn fast_growth_is_noticed_before_memory_is_little() {
        let mut watch = PressureWatch::default();
        assert_eq!(watch.look(used(100), 0), None);
        assert_eq!(watch.look(used(110), SECOND / 10), None);
        assert_eq!(watch.look(used(170), SECOND / 5), Some(830));
        assert!(watch.is_urgent());
    }

    #[test]
    fn little_memory_is_new_although_it_grew_fast_before() {
        let mut watch = PressureWatch::default();
        assert_eq!(watch.look(used(0), 0), None);
        assert_eq!(watch.look(used(500), SECOND), Some(500));
        assert_eq!(watch.look(used(800), 2 * SECOND), None, "grows fast");
        assert_eq!(watch.look(used(850), 60 * SECOND), None);
        assert_eq!(watch.look(used(950), 120 * SECOND), Some(50));
        assert!(watch.is_urgent());
        assert_eq!(watch.look(used(100), 121 * SECOND), None);
        assert_eq!(watch.look(used(950), 360 * SECOND), None, "the rest is not kept");
    }

    #[test]
    fn it_is_urgent_while_it_lasts_and_not_for_ever() {
        let mut watch = PressureWatch::default();
        assert!(watch.look(used(950), 0).is_some());
        let mut urgent = |usage: u64, tenths: u64| {
            watch.look(used(usage), tenths * SECOND / 10);
            watch.is_urgent()
        };
        assert!(urgent(950, 20));
        // It stands still for a while.
        assert!(urgent(100, 29));
        assert!(urgent(950, 35));
        assert!(!urgent(100, 45));
        assert!(!urgent(950, 50), "the rest is not kept");
        let mut watch = PressureWatch::default();
        assert!(watch.look(used(950), 0).is_some());
        (1..=99).for_each(|tenth| _ = watch.look(used(950), tenth * SECOND / 10));
        assert!(watch.is_urgent());
        watch.look(used(950), 10 * SECOND);
        assert!(!watch.is_urgent(), "it lasts for ever");
    }

    #[test]
    fn without_a_limit_nothing_is_short() {
        let mut watch = PressureWatch::default();
        assert_eq!(watch.look(None, 0), None);
        assert!(!watch.is_urgent());
    }
}
