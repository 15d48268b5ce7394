//! Time: cheap stamps on mutators, wall-clock microseconds on the writer.
//!
//! A mutator stamps an event with [`TickSource::now`]: the time-stamp counter if it is
//! reliable, else `CLOCK_MONOTONIC`. The writer converts stamps to microseconds since the
//! Unix epoch with a [`Clock`]. That reads the wall clock once, at its start, and follows
//! `CLOCK_MONOTONIC` from then on: setting back the wall clock does not make the trace run
//! backwards.
//!
//! # How stamps are converted
//! [`Clock::observe`] reads the counter and the monotonic clock at the same time. The
//! conversion is piecewise linear, with one [`Segment`] per observation. Its slope is
//! measured over the longest period in which counter and clock have agreed. A segment never
//! exceeds the time at which the next one starts, and a segment never starts below a time
//! that was already returned. So the result depends on the stamp only, not on when it is
//! converted, and is monotonic. The exception are stamps older than the last 64
//! observations, whose segments are gone.
//!
//! When counter and clock disagree since the last observation (the machine was suspended,
//! or the counter was set), the measurement of the slope starts again.

pub(crate) use super::clock_source::TickSource;
use super::clock_source::{ClockSource, SystemClocks};

/// Counter and clock disagree if they differ by more than a millisecond plus a thousandth
/// of the time between two observations.
const TOLERANCE_NS: u64 = 1_000_000;
const TOLERANCE_DIVISOR: u64 = 1_000;
/// The shortest time to measure a slope over: a reading is accurate to some 100 ns.
const MIN_BASELINE_NS: u64 = 1_000_000;
/// A stamp further ahead of the last observation causes a new one.
const MAX_AHEAD_NS: u64 = 1_000_000_000;
/// How many segments are kept.
const SEGMENTS: usize = 64;
/// How many times both are read, to find a reading without a preemption in between.
const TRIES: usize = 5;

/// Counter and clock at one moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    ticks: u64,
    /// Monotonic nanoseconds.
    ns: u64,
}

/// Counter, clock and wall clock at one moment, from which a [`Clock`] can be started later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) ticks: u64,
    pub(crate) monotonic_ns: u64,
    /// Microseconds since the Unix epoch.
    pub(crate) wall_us: u64,
}

impl Moment {
    /// Async-signal-safe.
    pub(crate) fn now(ticks: TickSource) -> Moment {
        let mut source = SystemClocks::new(ticks);
        let Reading { ticks, ns } = tightest(&mut source);
        Moment { ticks, monotonic_ns: ns, wall_us: source.wall_us() }
    }
}

/// Nanoseconds per tick, as a fixed-point number with 32 fractional bits.
#[derive(Clone, Copy, Debug)]
struct Slope(u64);

impl Slope {
    /// `None` unless both advanced.
    fn between(from: Reading, to: Reading) -> Option<Self> {
        let ticks = to.ticks.checked_sub(from.ticks).filter(|&ticks| ticks > 0)?;
        let ns = to.ns.checked_sub(from.ns).filter(|&ns| ns > 0)?;
        u64::try_from((u128::from(ns) << 32) / u128::from(ticks)).ok().map(Self)
    }

    fn ns(self, ticks: u64) -> u64 {
        u64::try_from((u128::from(ticks) * u128::from(self.0)) >> 32).unwrap_or(u64::MAX)
    }
}

/// A line that applies to stamps after its start, up to and including the next segment's
/// start.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: Reading,
    slope: Slope,
    /// The time at which the next segment starts, which this one never exceeds.
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

/// The part of a segment below its ceiling that the last stamp was in: the next stamp
/// usually is too.
#[derive(Clone, Copy, Debug)]
struct CachedLine {
    /// The segment's start.
    start_ticks: u64,
    /// Its time, nanoseconds since the clock's start.
    ns: u64,
    slope: Slope,
    /// For how many ticks after the start it applies: in the last segment at most
    /// [`MAX_AHEAD_NS`]. 0 if nothing is cached.
    ticks: u64,
}

impl CachedLine {
    const NONE: CachedLine = CachedLine { start_ticks: 0, ns: 0, slope: Slope(0), ticks: 0 };

    /// `NONE` if the segment starts before the clock did.
    fn of(segment: Segment, next: Option<&Segment>, zero_ns: u64) -> CachedLine {
        let Segment { start, slope, ceiling } = segment;
        let Some(ns) = start.ns.checked_sub(zero_ns) else { return CachedLine::NONE };
        let longest = if next.is_some() { u64::MAX } else { MAX_AHEAD_NS };
        let longest = longest.min(ceiling.saturating_sub(start.ns));
        let most = (u128::from(longest) << 32) / u128::from(slope.0.max(1));
        let ticks = next.map_or(u64::MAX, |next| next.start.ticks - start.ticks);
        let ticks = ticks.min(u64::try_from(most).unwrap_or(u64::MAX));
        CachedLine { start_ticks: start.ticks, ns, slope, ticks }
    }

    /// Nanoseconds since the clock's start, if the stamp is within.
    #[inline]
    fn ns(&self, ticks: u64) -> Option<u64> {
        let since = ticks.wrapping_sub(self.start_ticks);
        // The start itself belongs to the segment before.
        let is_within = since.wrapping_sub(1) < self.ticks;
        let ns = || ((u128::from(since) * u128::from(self.slope.0)) >> 32) as u64;
        is_within.then(|| self.ns.wrapping_add(ns()))
    }
}

/// Converts stamps to times. On the writer thread, which lets it observe both clocks now and then.
pub(crate) struct Clock<S = SystemClocks> {
    source: S,
    /// The wall clock at the start, in microseconds.
    wall_us: u64,
    /// The monotonic clock at the start, in nanoseconds.
    zero_ns: u64,
    /// The earliest observation since which counter and clock have agreed: the slope is
    /// measured from here.
    baseline: Reading,
    /// The newest observation.
    last: Reading,
    /// By start, oldest first; empty before the first observation.
    segments: Vec<Segment>,
    /// Part of one of `segments`, or nothing.
    cached: CachedLine,
    /// The latest time that was returned, in nanoseconds since the start.
    latest_ns: u64,
}

impl Clock<SystemClocks> {
    /// Reads the wall clock. The slope is known from the first
    /// [`observe`](Self::observe) on.
    pub(crate) fn start(ticks: TickSource) -> Self {
        Self::with_source(SystemClocks::new(ticks))
    }

    /// As if it had been started at that moment.
    pub(crate) fn started_at(ticks: TickSource, moment: Moment) -> Self {
        Self::from_moment(SystemClocks::new(ticks), moment)
    }
}

impl<S: ClockSource> Clock<S> {
    pub(super) fn with_source(mut source: S) -> Self {
        let Reading { ticks, ns } = tightest(&mut source);
        let moment = Moment { ticks, monotonic_ns: ns, wall_us: source.wall_us() };
        Self::from_moment(source, moment)
    }

    pub(super) fn from_moment(source: S, moment: Moment) -> Self {
        let start = Reading { ticks: moment.ticks, ns: moment.monotonic_ns };
        Self {
            wall_us: moment.wall_us,
            source,
            zero_ns: start.ns,
            baseline: start,
            last: start,
            segments: Vec::with_capacity(SEGMENTS + 1),
            cached: CachedLine::NONE,
            latest_ns: 0,
        }
    }

    /// Compares the counter with the clock. Call it regularly, say 10 times a second, and
    /// before a batch of conversions. The first call sleeps until a millisecond has passed
    /// since the start.
    pub(crate) fn observe(&mut self) {
        self.cached = CachedLine::NONE;
        let mut now = tightest(&mut self.source);
        let Some(&newest) = self.segments.last() else {
            let elapsed = now.ns.saturating_sub(self.baseline.ns);
            if elapsed < MIN_BASELINE_NS {
                self.source.sleep_ns(MIN_BASELINE_NS - elapsed);
                now = tightest(&mut self.source);
            }
            let slope = Slope::between(self.baseline, now).unwrap_or(Slope(1 << 32));
            self.begin(Segment { start: self.baseline, slope, ceiling: u64::MAX });
            return self.advance(now, slope);
        };
        if self.has_agreed(newest.slope, now) {
            let slope = Slope::between(self.baseline, now).unwrap_or(newest.slope);
            self.advance(now, slope);
        } else {
            self.baseline = now;
            if now.ticks <= self.last.ticks {
                // Older and newer stamps can no longer be distinguished.
                self.segments.clear();
            }
            self.advance(now, newest.slope);
        }
    }

    /// Microseconds since the Unix epoch at a stamp.
    #[inline]
    pub(crate) fn micros(&mut self, ticks: u64) -> u64 {
        self.wall_us + self.ns_since_start(ticks) / 1000
    }

    /// Nanoseconds since the Unix epoch at a stamp.
    pub(crate) fn nanos(&mut self, ticks: u64) -> u64 {
        self.wall_us.saturating_mul(1_000) + self.ns_since_start(ticks)
    }

    #[inline]
    fn ns_since_start(&mut self, ticks: u64) -> u64 {
        let ns = self.cached.ns(ticks).unwrap_or_else(|| self.find_ns(ticks));
        self.latest_ns = self.latest_ns.max(ns);
        ns
    }

    /// Nanoseconds since the start at a stamp. Caches the part of the segment it is in.
    #[cold]
    #[inline(never)]
    fn find_ns(&mut self, ticks: u64) -> u64 {
        let newest = self.segments.last();
        let is_past = newest.is_some_and(|newest| ticks <= newest.start.ticks);
        if !is_past && self.is_ahead(ticks) {
            self.observe();
        }
        // A stamp with the tick of an observation may have been converted before it, so it
        // belongs to the segment before.
        let at = self.segments.iter().rposition(|segment| segment.start.ticks < ticks);
        let ns = match at.and_then(|at| Some((at, *self.segments.get(at)?))) {
            // In the future even now: stamped before the counter was set back.
            Some((_, segment)) if !is_past && self.is_ahead(ticks) => segment.start.ns,
            Some((at, segment)) => {
                self.cached = CachedLine::of(segment, self.segments.get(at + 1), self.zero_ns);
                segment.ns(ticks)
            }
            None => self.segments.first().map_or(self.zero_ns, |oldest| oldest.ns(ticks)),
        };
        // Only an old stamp after a disagreement is before the start.
        ns.saturating_sub(self.zero_ns)
    }

    /// The length of `ticks` ticks in nanoseconds; 0 before the first observation.
    pub(crate) fn nanoseconds(&self, ticks: u64) -> u64 {
        self.segments.last().map_or(0, |segment| segment.slope.ns(ticks))
    }

    /// Starts the next segment at `now`.
    fn advance(&mut self, now: Reading, slope: Slope) {
        self.last = now;
        let start = Reading { ns: now.ns.max(self.zero_ns + self.latest_ns), ..now };
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

    /// Whether counter and clock agree since the last observation.
    fn has_agreed(&self, slope: Slope, now: Reading) -> bool {
        let clock = now.ns.saturating_sub(self.last.ns);
        let Some(ticks) = now.ticks.checked_sub(self.last.ticks) else { return false };
        slope.ns(ticks).abs_diff(clock) <= TOLERANCE_NS + clock / TOLERANCE_DIVISOR
    }

    fn is_ahead(&self, ticks: u64) -> bool {
        self.segments.last().is_none_or(|newest| {
            let ahead = ticks.saturating_sub(newest.start.ticks);
            newest.slope.ns(ahead) > MAX_AHEAD_NS
        })
    }
}

/// The reading, of a few, that took the fewest ticks.
fn tightest(source: &mut impl ClockSource) -> Reading {
    let mut best = Reading { ticks: 0, ns: 0 };
    let mut width = u64::MAX;
    for _ in 0..TRIES {
        let before = source.ticks();
        let ns = source.monotonic_ns();
        let taken = source.ticks().saturating_sub(before);
        if taken < width {
            width = taken;
            best = Reading { ticks: before + taken / 2, ns };
        }
    }
    best
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
