//! How a size grows: evenly as of a leak, less and less as of a cache that fills, in steps, or not at all.
//!
//! It is judged on two clocks. A leak in a program that is less busy than before grows less with time, and as before
//! with what the program allocates; a cache that saturates slows on both. A size that grows evenly on either clock
//! grows evenly.

use serde::Serialize;

/// A size at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub seconds: f64,
    /// Bytes that the program had allocated by then, if that is known.
    pub allocated: Option<f64>,
    pub bytes: f64,
}

/// How a size grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum Pace {
    /// About as much in each stretch.
    Even,
    /// By ever larger single blocks, as a buffer or an array that doubles.
    Steps,
    /// In some stretches and not in others, without ever shrinking much.
    Uneven,
    /// Less and less.
    Slows,
    /// It grew, and does not any more.
    Stopped,
    /// What it gains it loses again.
    TurnsOver,
    /// It has not grown.
    Steady,
    /// There are two points: how it grows between them is not known.
    Unknown,
}

impl Pace {
    /// Whether it is that of a leak.
    pub fn keeps_growing(self) -> bool {
        matches!(self, Pace::Even | Pace::Steps | Pace::Uneven)
    }
}

/// Of the growth: to lose more on the way is to turn over.
const MOST_LOST: f64 = 0.3;

/// The pace of a size, by at least two points in the order of time. `in_one_block`: most of it is one block, which
/// grows by being copied to a larger one.
pub fn pace(points: &[Point], in_one_block: bool) -> Pace {
    let ([first, ..], [.., last]) = (points, points) else { return Pace::Steady };
    let growth = last.bytes - first.bytes;
    if growth <= 0.0 {
        return if lost(points) > 0.0 { Pace::TurnsOver } else { Pace::Steady };
    }
    if lost(points) > MOST_LOST * growth {
        return Pace::TurnsOver;
    }
    if stretches(points) < 2 {
        return Pace::Unknown;
    }
    if in_one_block && grows_in_steps(points) {
        return Pace::Steps;
    }
    let by_time = on_clock(points, |point| Some(point.seconds));
    let by_work = on_clock(points, |point| point.allocated);
    match (by_time, by_work) {
        (Some(Pace::Even), _) | (_, Some(Pace::Even)) => Pace::Even,
        (Some(time), None) => time,
        (None, Some(work)) => work,
        (Some(time), Some(work)) if time == work => time,
        (Some(Pace::Slows | Pace::Stopped), Some(Pace::Slows | Pace::Stopped)) => Pace::Slows,
        _ => Pace::Uneven,
    }
}

/// How many stretches are long enough to say something.
fn stretches(points: &[Point]) -> usize {
    let ([first, ..], [.., last]) = (points, points) else { return 0 };
    let least = (last.seconds - first.seconds) / 12.0;
    points.windows(2).filter(|pair| pair[1].seconds - pair[0].seconds >= least).count()
}

/// The most that a size fell below what it had been.
fn lost(points: &[Point]) -> f64 {
    let mut most = f64::MIN;
    let mut lost: f64 = 0.0;
    for point in points {
        most = most.max(point.bytes);
        lost = lost.max(most - point.bytes);
    }
    lost
}

/// Whether all growth is in a few steps, each of which makes it half as large again, the last of them late.
fn grows_in_steps(points: &[Point]) -> bool {
    /// The least of a step, and the most that is none, as shares of the size before.
    const STEP: f64 = 0.3;
    const STILL: f64 = 0.05;
    let change = |pair: &[Point]| (pair[1].bytes - pair[0].bytes) / pair[0].bytes.max(1.0);
    let changes: Vec<f64> = points.windows(2).map(change).collect();
    let is_still = |change: &&f64| change.abs() <= STILL;
    let steps = changes.iter().filter(|change| **change >= STEP).count();
    let still = changes.iter().filter(is_still).count();
    let last = changes.iter().rposition(|change| *change >= STEP).unwrap_or(0);
    steps >= 2 && still >= 1 && steps + still == changes.len() && 2 * (last + 1) >= changes.len()
}

/// The pace on one clock; `None` if it stood still or is not known.
fn on_clock(points: &[Point], clock: impl Fn(&Point) -> Option<f64>) -> Option<Pace> {
    /// Of the mean: slopes between these are even.
    const EVEN: (f64, f64) = (0.4, 2.2);
    /// The growth of the later half for each of the earlier: less is slowing.
    const SLOWING: f64 = 0.8;
    /// Of the mean slope, in the last stretches: less is to have stopped.
    const STOPPED: f64 = 0.08;
    /// A silence at the end that is so much longer than any before is the end of growth.
    const MUCH_LONGER: f64 = 2.0;
    /// How much more a stretch may have than the one before while growth slows.
    const TOLERANCE: f64 = 1.25;
    let times: Vec<f64> = points.iter().map(clock).collect::<Option<_>>()?;
    let (begin, end) = (*times.first()?, *times.last()?);
    let growth = points.last()?.bytes - points.first()?.bytes;
    let mean = growth / (end - begin);
    if !mean.is_finite() || mean <= 0.0 {
        return None;
    }
    let pairs = points.windows(2).zip(times.windows(2));
    // A stretch in which the clock hardly moved says nothing.
    let shortest = (end - begin) / 30.0;
    let slope = |(points, times): (&[Point], &[f64])| {
        let passed = times[1] - times[0];
        (passed > shortest).then(|| (points[1].bytes - points[0].bytes) / passed / mean)
    };
    let slopes: Vec<f64> = pairs.filter_map(slope).collect();
    let (early, late) = halves(points, &times);
    let tail = growth_of_last_quarter(points, &times) / (mean * (end - begin) / 4.0);
    let (silence, longest) = silences(points, &times, STOPPED * mean);
    let falls = slopes.windows(2).all(|pair| pair[1] <= pair[0].max(0.05) * TOLERANCE);
    let slows = late < SLOWING * early && falls;
    let (least, most) = extremes(&slopes)?;
    Some(if tail < STOPPED && silence > MUCH_LONGER * longest {
        Pace::Stopped
    } else if slows {
        Pace::Slows
    } else if least >= EVEN.0 && most <= EVEN.1 {
        Pace::Even
    } else {
        Pace::Uneven
    })
}

/// How long it has not grown at the end, and the longest such time before. To grow by less than `slope` is not to
/// grow.
fn silences(points: &[Point], times: &[f64], slope: f64) -> (f64, f64) {
    let (mut silence, mut longest) = (0.0, 0.0_f64);
    for (points, times) in points.windows(2).zip(times.windows(2)) {
        let passed = times[1] - times[0];
        if points[1].bytes - points[0].bytes < slope * passed {
            silence += passed;
        } else {
            longest = longest.max(silence);
            silence = 0.0;
        }
    }
    (silence, longest)
}

/// What was gained in the earlier half of the time, and in the later half.
pub(super) fn growth_of_halves(points: &[Point]) -> (f64, f64) {
    let times: Vec<f64> = points.iter().map(|point| point.seconds).collect();
    halves(points, &times)
}

fn halves(points: &[Point], times: &[f64]) -> (f64, f64) {
    let ([first, ..], [.., last]) = (points, points) else { return (0.0, 0.0) };
    let ([begin, ..], [.., end]) = (times, times) else { return (0.0, 0.0) };
    let middle = at(points, times, f64::midpoint(*begin, *end));
    (middle - first.bytes, last.bytes - middle)
}

fn extremes(slopes: &[f64]) -> Option<(f64, f64)> {
    let least = slopes.iter().copied().reduce(f64::min)?;
    Some((least, slopes.iter().copied().reduce(f64::max)?))
}

fn growth_of_last_quarter(points: &[Point], times: &[f64]) -> f64 {
    let (Some(begin), Some(end), Some(last)) = (times.first(), times.last(), points.last()) else {
        return 0.0;
    };
    last.bytes - at(points, times, end - (end - begin) / 4.0)
}

/// The size at a time between the points.
fn at(points: &[Point], times: &[f64], time: f64) -> f64 {
    let behind = times.partition_point(|known| *known < time);
    let (Some(next), Some(next_time)) = (points.get(behind), times.get(behind)) else {
        return points.last().map_or(0.0, |point| point.bytes);
    };
    let Some((before, before_time)) =
        behind.checked_sub(1).and_then(|at| Some((points.get(at)?, times.get(at)?)))
    else {
        return next.bytes;
    };
    let passed = (time - before_time) / (next_time - before_time);
    before.bytes + (next.bytes - before.bytes) * passed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_time(sizes: &[f64]) -> Vec<Point> {
        let point = |(at, bytes): (usize, &f64)| Point {
            seconds: 10.0 * at as f64,
            allocated: None,
            bytes: *bytes,
        };
        sizes.iter().enumerate().map(point).collect()
    }

    #[test]
    fn shapes_of_growth_are_told_apart() {
        let cases: [(&[f64], Pace); 11] = [
            (&[10.0, 20.0, 30.0, 40.0, 50.0], Pace::Even),
            (&[100.0, 101.0, 102.2, 103.0], Pace::Even),
            // A cache: new keys are rarer and rarer.
            (&[0.0, 40.0, 60.0, 70.0, 75.0], Pace::Slows),
            (&[0.0, 20.0, 37.0, 51.0, 62.0], Pace::Slows),
            (&[0.0, 20.0, 40.0, 40.0, 40.0], Pace::Stopped),
            // Bursts.
            (&[0.0, 30.0, 30.0, 60.0, 60.0, 90.0], Pace::Uneven),
            // A batch that is dropped.
            (&[0.0, 20.0, 5.0, 25.0], Pace::TurnsOver),
            (&[50.0, 40.0, 30.0], Pace::TurnsOver),
            (&[10.0, 10.0, 10.0], Pace::Steady),
            (&[10.0, 30.0], Pace::Unknown),
            (&[], Pace::Steady),
        ];
        for (sizes, expected) in cases {
            assert_eq!(pace(&by_time(sizes), false), expected, "{sizes:?}");
        }
    }

    #[test]
    fn a_block_that_doubles_grows_in_steps() {
        let doubles = by_time(&[1.0, 1.0, 2.0, 2.0, 4.0, 4.0]);
        assert_eq!(pace(&doubles, true), Pace::Steps);
        // It doubled while the program began.
        assert_eq!(pace(&by_time(&[1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0]), true), Pace::Stopped);
        assert_eq!(pace(&by_time(&[4.0, 4.0, 8.0, 8.0]), true), Pace::Uneven);
    }

    /// A program that is less busy leaks less in the same time, and as much of what it allocates.
    #[test]
    fn growth_that_is_even_on_either_clock_is_even() {
        let busy = [0.0, 100.0, 150.0, 170.0];
        let mut points = by_time(&busy.map(|allocated| 10.0 + allocated / 10.0));
        assert_eq!(pace(&points, false), Pace::Slows);
        for (point, allocated) in points.iter_mut().zip(busy) {
            point.allocated = Some(allocated);
        }
        assert_eq!(pace(&points, false), Pace::Even);
    }

    #[test]
    fn clocks_that_stand_still_or_go_back_are_no_evidence() {
        let mut points = by_time(&[1.0, 2.0, 3.0, 4.0]);
        points.iter_mut().for_each(|point| point.allocated = Some(7.0));
        assert_eq!(pace(&points, false), Pace::Even);
        points.iter_mut().for_each(|point| point.seconds = 0.0);
        assert_eq!(pace(&points, false), Pace::Uneven);
        points.iter_mut().for_each(|point| point.seconds = f64::NAN);
        assert_eq!(pace(&points, false), Pace::Unknown);
    }
}
