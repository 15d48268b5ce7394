//! Time: cheap stamps on mutators, wall-clock microseconds on the writer.
//!
//! A mutator stamps an event with [`TickSource::now`]: the time-stamp counter where
//! it is steady, else `CLOCK_MONOTONIC`. The writer turns stamps into
//! microseconds since the Unix epoch with a [`Clock`], which reads the wall clock
//! once, at its start, and from then on follows `CLOCK_MONOTONIC` only: a wall
//! clock that is set back does not make the trace run backwards.
//!
//! # How stamps are converted
//! [`Clock::observe`] notes what the counter and the monotonic clock show at the
//! same time. Stamps between two observations lie on a line through the earlier
//! one, whose slope is that of the longest steady stretch; the line never
//! rises above what the next observation begins with, and that one never begins
//! below what was already given out. So the conversion is one function of the
//! stamp, whenever it is asked, and never decreasing. Only stamps older than the
//! last 64 observations may come out differently than they would have earlier.
//!
//! When counter and clock disagree over a stretch (the machine was suspended,
//! the counter was set), the slope is measured anew from there.

pub(crate) use super::clock_source::TickSource;
use super::clock_source::{Source, System};

/// How far the line may be from the clock before a stretch counts as broken:
/// a millisecond, and a thousandth of the stretch.
const BREAK_NS: u64 = 1_000_000;
const BREAK_FRACTION: u64 = 1_000;
/// The shortest stretch to take a slope from: pairs are good to some 100 ns.
const SHORTEST_NS: u64 = 1_000_000;
/// A stamp further ahead of the last observation calls for a new one.
const AHEAD_NS: u64 = 1_000_000_000;
/// Observations kept.
const SEGMENTS: usize = 64;
/// Pairs read to find one that no preemption came between.
const TRIES: usize = 5;

/// What the counter and the clock showed at one moment.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ticks: u64,
    /// Monotonic nanoseconds.
    ns: u64,
}

/// Nanoseconds per tick, times 2^32.
#[derive(Clone, Copy, Debug)]
struct Slope(u64);

impl Slope {
    /// None unless both advanced.
    fn between(from: Pair, to: Pair) -> Option<Self> {
        let ticks = to.ticks.checked_sub(from.ticks).filter(|&ticks| ticks > 0)?;
        let ns = to.ns.checked_sub(from.ns).filter(|&ns| ns > 0)?;
        u64::try_from((u128::from(ns) << 32) / u128::from(ticks)).ok().map(Self)
    }

    fn ns(self, ticks: u64) -> u64 {
        u64::try_from((u128::from(ticks) * u128::from(self.0)) >> 32).unwrap_or(u64::MAX)
    }
}

/// A line that holds from behind its start to the next segment's.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: Pair,
    slope: Slope,
    /// Where the next segment begins: nothing before it is above.
    ceiling: u64,
}

impl Segment {
    fn ns(&self, ticks: u64) -> u64 {
        let line = match ticks.checked_sub(self.start.ticks) {
            Some(since) => self.start.ns.saturating_add(self.slope.ns(since)),
            None => self.start.ns.saturating_sub(self.slope.ns(self.start.ticks - ticks)),
        };
        line.min(self.ceiling)
    }
}

/// The part of a segment below its ceiling, if the last stamp lay there: the next
/// one usually does too.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// The segment's start.
    start_ticks: u64,
    /// Its time, nanoseconds since the clock's start.
    ns: u64,
    slope: Slope,
    /// Ticks behind the start that it holds for: if the segment is the last, no
    /// more than [`AHEAD_NS`]. 0: there is no such stretch.
    ticks: u64,
}

impl Stretch {
    const NONE: Stretch = Stretch { start_ticks: 0, ns: 0, slope: Slope(0), ticks: 0 };

    /// Of a segment that the next one, if there is one, ends; none if it begins
    /// before the clock did.
    fn of(segment: Segment, next: Option<&Segment>, zero_ns: u64) -> Stretch {
        let Segment { start, slope, ceiling } = segment;
        let Some(ns) = start.ns.checked_sub(zero_ns) else { return Stretch::NONE };
        let longest = if next.is_some() { u64::MAX } else { AHEAD_NS };
        let longest = longest.min(ceiling.saturating_sub(start.ns));
        let most = (u128::from(longest) << 32) / u128::from(slope.0.max(1));
        let ticks = next.map_or(u64::MAX, |next| next.start.ticks - start.ticks);
        let ticks = ticks.min(u64::try_from(most).unwrap_or(u64::MAX));
        Stretch { start_ticks: start.ticks, ns, slope, ticks }
    }

    /// Nanoseconds since the clock's start, if the stamp lies in it.
    #[inline(always)]
    fn ns(&self, ticks: u64) -> Option<u64> {
        let since = ticks.wrapping_sub(self.start_ticks);
        // The start itself lies in the stretch before.
        let is_within = since.wrapping_sub(1) < self.ticks;
        let ns = || ((u128::from(since) * u128::from(self.slope.0)) >> 32) as u64;
        is_within.then(|| self.ns.wrapping_add(ns()))
    }
}

/// Turns stamps into time. See the module.
pub(crate) struct Clock<S = System> {
    source: S,
    /// The wall clock at the start, in microseconds.
    wall_us: u64,
    /// The monotonic clock at the start, in nanoseconds.
    zero_ns: u64,
    /// Where the steady stretch began that the slope is taken from.
    steady: Pair,
    /// The newest observation.
    last: Pair,
    /// By start, oldest first; empty before the first observation.
    segments: Vec<Segment>,
    /// Of `segments` as they are.
    stretch: Stretch,
    /// The latest time given out, nanoseconds since the start.
    given: u64,
}

impl Clock<System> {
    /// Anchors to the wall clock. The slope is known from the first
    /// [`observe`](Self::observe) on.
    pub(crate) fn start(ticks: TickSource) -> Self {
        Self::with_source(System::new(ticks))
    }
}

impl<S: Source> Clock<S> {
    pub(super) fn with_source(mut source: S) -> Self {
        let start = tightest(&mut source);
        Self {
            wall_us: source.wall_us(),
            source,
            zero_ns: start.ns,
            steady: start,
            last: start,
            segments: Vec::with_capacity(SEGMENTS + 1),
            stretch: Stretch::NONE,
            given: 0,
        }
    }

    /// Compares the counter with the clock. Call it often, 10 times a second
    /// say, and before a batch of conversions. The first call may sleep for what
    /// is missing to a millisecond since the start.
    pub(crate) fn observe(&mut self) {
        self.stretch = Stretch::NONE;
        let mut now = tightest(&mut self.source);
        let Some(&newest) = self.segments.last() else {
            let elapsed = now.ns.saturating_sub(self.steady.ns);
            if elapsed < SHORTEST_NS {
                self.source.sleep_ns(SHORTEST_NS - elapsed);
                now = tightest(&mut self.source);
            }
            let slope = Slope::between(self.steady, now).unwrap_or(Slope(1 << 32));
            self.begin(Segment { start: self.steady, slope, ceiling: u64::MAX });
            return self.advance(now, slope);
        };
        if self.is_steady(newest.slope, now) {
            let slope = Slope::between(self.steady, now).unwrap_or(newest.slope);
            self.advance(now, slope);
        } else {
            self.steady = now;
            if now.ticks <= self.last.ticks {
                // Older stamps cannot be told from newer ones any more.
                self.segments.clear();
            }
            self.advance(now, newest.slope);
        }
    }

    /// Microseconds since the Unix epoch at a stamp.
    #[inline(always)]
    pub(crate) fn micros(&mut self, ticks: u64) -> u64 {
        let ns = self.stretch.ns(ticks).unwrap_or_else(|| self.find_ns(ticks));
        self.given = self.given.max(ns);
        self.wall_us + ns / 1000
    }

    /// Nanoseconds since the start at a stamp, whose stretch it remembers.
    #[cold]
    #[inline(never)]
    fn find_ns(&mut self, ticks: u64) -> u64 {
        let newest = self.segments.last();
        let is_past = newest.is_some_and(|newest| ticks <= newest.start.ticks);
        if !is_past && self.is_ahead(ticks) {
            self.observe();
        }
        // A stamp of the very tick of an observation may have been converted
        // before it, so it lies on the line before.
        let at = self.segments.iter().rposition(|segment| segment.start.ticks < ticks);
        let ns = match at.and_then(|at| Some((at, *self.segments.get(at)?))) {
            // Even now in the future: stamped before the counter was set back.
            Some((_, segment)) if !is_past && self.is_ahead(ticks) => segment.start.ns,
            Some((at, segment)) => {
                self.stretch = Stretch::of(segment, self.segments.get(at + 1), self.zero_ns);
                segment.ns(ticks)
            }
            None => self.segments.first().map_or(self.zero_ns, |oldest| oldest.ns(ticks)),
        };
        // Before the start only by an old stamp after a break.
        ns.saturating_sub(self.zero_ns)
    }

    /// How long `ticks` ticks are. 0 before the first observation.
    pub(crate) fn nanoseconds(&self, ticks: u64) -> u64 {
        self.segments.last().map_or(0, |segment| segment.slope.ns(ticks))
    }

    /// The next segment begins with `now`.
    fn advance(&mut self, now: Pair, slope: Slope) {
        self.last = now;
        let start = Pair { ns: now.ns.max(self.zero_ns + self.given), ..now };
        if let Some(previous) = self.segments.last_mut() {
            previous.ceiling = start.ns;
        }
        self.begin(Segment { start, slope, ceiling: u64::MAX });
    }

    fn begin(&mut self, segment: Segment) {
        if self.segments.len() == SEGMENTS {
            self.segments.remove(0);
        }
        self.segments.push(segment);
    }

    /// Whether the counter moved from the last observation as the clock did.
    fn is_steady(&self, slope: Slope, now: Pair) -> bool {
        let clock = now.ns.saturating_sub(self.last.ns);
        let Some(ticks) = now.ticks.checked_sub(self.last.ticks) else { return false };
        slope.ns(ticks).abs_diff(clock) <= BREAK_NS + clock / BREAK_FRACTION
    }

    fn is_ahead(&self, ticks: u64) -> bool {
        self.segments.last().is_none_or(|newest| {
            let ahead = ticks.saturating_sub(newest.start.ticks);
            newest.slope.ns(ahead) > AHEAD_NS
        })
    }
}

/// The pair, of a few, that took the fewest ticks to read.
fn tightest(source: &mut impl Source) -> Pair {
    let mut best = Pair { ticks: 0, ns: 0 };
    let mut width = u64::MAX;
    for _ in 0..TRIES {
        let before = source.ticks();
        let ns = source.monotonic_ns();
        let taken = source.ticks().saturating_sub(before);
        if taken < width {
            width = taken;
            best = Pair { ticks: before + taken / 2, ns };
        }
    }
    best
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
