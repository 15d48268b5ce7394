//! The part of a run in which survivors are evidence, and the clock that it is measured by.
//!
//! How long garbage waits for its collection is not known, but between two collections of old
//! blocks no more time passes than in the longest gap between them. So survivors that were born
//! two such gaps before the end have been through two collections.
//!
//! Time is the first clock. It accuses the program of what its machine does: a process that is
//! stopped collects nothing for a while. If the gaps are too long by time, they are measured by
//! what the program allocates, the clock that collectors run on. That one has a blind spot of
//! its own. A server that allocates a lot while it starts, and then little for hours, makes
//! hardly any progress in those hours. So this clock is used only if
//!
//! - the part that is evidence has three tenths of the time too (by time it has four at least);
//! - the program has not come to rest: a hundredth of its allocations is in the last tenth of
//!   the time;
//! - live sizes, which are known at even times, are not too far apart by allocations.
//!
//! And a site must be kept up to the end of the run: what was built up in the beginning is
//! not a leak.

use super::windows::Windows;
use crate::aggregate::Aggregate;
use crate::estimate::Sampled;
use crate::growth::Growth;
use crate::timeline::Progress;

/// The evidence of a run.
pub(super) struct Judged {
    /// The microseconds between which survivors are evidence.
    pub(super) window: (u64, u64),
    clock: Clock,
    progress: Progress,
    end: u64,
    /// What a sample of the lowest rate counts.
    lowest: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    Time,
    Progress,
}

impl Judged {
    /// `None` if old blocks are collected too rarely by both clocks.
    pub(super) fn new(aggregate: &Aggregate, growth: &Growth) -> Option<Self> {
        let (end, allocated) = (aggregate.end, aggregate.allocated.count);
        let progress = aggregate.timeline.progress();
        let lowest = aggregate.rates.weight(0).count;
        if let Some(window) = growth.by_time.evidence_until(end) {
            return Some(Judged { window, clock: Clock::Time, progress, end, lowest });
        }
        let (from, to) = growth.by_progress.evidence_until(allocated)?;
        let window = (progress.time_of(from), progress.time_of(to));
        let judged = Judged { window, clock: Clock::Progress, progress, end, lowest };
        judged.is_seen(growth).then_some(judged)
    }

    /// Whether enough is seen of the time, if the clock is what the program allocates.
    fn is_seen(&self, growth: &Growth) -> bool {
        let (from, to) = self.window;
        let all = self.clock(self.end);
        let last_tenth = all - self.clock(self.end / 10 * 9);
        to.saturating_sub(from) >= self.end / 10 * 3
            && last_tenth * 100.0 >= all
            && self.most_between_points(growth) * 6.0 <= all
    }

    /// The most that the clock advances from one point of the live size to the next.
    fn most_between_points(&self, growth: &Growth) -> f64 {
        let points = (0..=growth.len() as u64).map(|point| point * growth.width());
        let clock: Vec<f64> = points.chain([self.end]).map(|time| self.clock(time)).collect();
        clock.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
    }

    /// This time by the clock.
    fn clock(&self, time: u64) -> f64 {
        match self.clock {
            Clock::Time => time as f64,
            Clock::Progress => self.progress.at(time),
        }
    }

    /// The survivors in windows, if they are kept evenly over the run, and whether fewer and
    /// fewer are.
    pub(super) fn windows(&self, survivors: &[(u64, Sampled)]) -> Option<(Windows, bool)> {
        let clock = |time| self.progress.at(time);
        let by_time = Windows::of(survivors, self.window, self.lowest, |time| time as f64)?;
        let by_progress = Windows::of(survivors, self.window, self.lowest, clock)?;
        let slowing = by_time.is_slowing() && by_progress.is_slowing();
        // The leak of a program that pauses, or that is slowed down by its machine, is
        // even over its allocations, not over time.
        let even = match self.clock {
            Clock::Time => [by_time, by_progress].into_iter().find(Windows::is_even),
            Clock::Progress => Some(by_progress).filter(|windows| {
                windows.is_even() && windows.last_until(survivors, self.end, self.lowest, clock)
            }),
        };
        even.map(|windows| (windows, slowing))
    }

    /// The least live size in the first third of the run, from point `first` on, and in the last.
    /// It depends less on chance than the live size at a point.
    pub(super) fn floors(&self, width: u64, series: &[u64], first: usize) -> Option<(f64, f64)> {
        let at = |point: usize| self.clock((point as u64 + 1).saturating_mul(width));
        let (from, to) = (at(first), at(series.len().checked_sub(1)?));
        let floor = |thirds: std::ops::RangeInclusive<f64>| {
            let within = |&point: &usize| thirds.contains(&((at(point) - from) / (to - from)));
            let third = (first..series.len()).filter(within).map(|point| series[point]);
            third.min().map(|least| least as f64)
        };
        Some((floor(0.0..=1.0 / 3.0)?, floor(2.0 / 3.0..=1.0)?))
    }
}
