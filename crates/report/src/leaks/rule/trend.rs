//! Whether growth goes on as it was.

use super::super::site_life::{Change, SiteLife};

/// Growth that is less than this part of what it was is slowing.
const LESS: f64 = 0.7;
/// How certain that has to be: the one-sided 97.5 % quantile of Student's distribution for 3 degrees of
/// freedom and more. It is asked once of each site that grows.
const STUDENT: [f64; 8] = [3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
/// The slots in which new survivors are counted, at most and at least, and how many there are in each
/// on average, at least.
const MOST_SLOTS: usize = 12;
const FEWEST_SLOTS: usize = 5;
const PER_SLOT: usize = 9;

/// Whether fewer and fewer blocks are kept, by a clock. The scatter of the slots around a line says how
/// certain that is: what comes in bursts scatters, and is not taken to be slowing for a burst that is
/// missing at the end.
pub(super) fn is_slowing(
    births: &[(u64, f64)],
    (from, to): (u64, u64),
    clock: impl Fn(u64) -> f64,
) -> bool {
    let slots = (births.len() / PER_SLOT).clamp(FEWEST_SLOTS, MOST_SLOTS);
    let (begin, span) = (clock(from), clock(to) - clock(from));
    if span <= 0.0 {
        return false;
    }
    let mut sums = vec![0.0; slots];
    for &(birth, samples) in births {
        let slot = ((clock(birth) - begin) / span * slots as f64) as usize;
        sums[slot.min(slots - 1)] += samples;
    }
    let n = slots as f64;
    let mean = sums.iter().sum::<f64>() / n;
    // Positions from −1 to 1.
    let place = |slot: usize| (2.0 * slot as f64 + 1.0) / n - 1.0;
    let squares: f64 = (0..slots).map(|slot| place(slot).powi(2)).sum();
    let slope = sums.iter().enumerate().map(|(slot, sum)| place(slot) * sum).sum::<f64>() / squares;
    let residual = |(slot, sum): (usize, &f64)| (sum - mean - slope * place(slot)).powi(2);
    let scatter = sums.iter().enumerate().map(residual).sum::<f64>() / (n - 2.0);
    let error = (scatter / squares).sqrt();
    let (first, last) = (mean - slope, mean + slope);
    let least = STUDENT[(slots - FEWEST_SLOTS).min(STUDENT.len() - 1)];
    last < LESS * first && -slope > least * error
}

/// Whether nothing was kept for more than twice as long as ever before.
pub(super) fn has_stopped(life: &SiteLife<'_>, births: &[(u64, f64)]) -> bool {
    let Some(&(first, _)) = births.first() else { return true };
    is_silent(&life.births(first, u64::MAX), life.end(), life.end())
}

/// Whether the last of these was longer ago than twice the longest time between two, and than a twentieth
/// of a run of this length.
fn is_silent(births: &[(u64, f64)], end: u64, length: u64) -> bool {
    let gaps = births.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let longest = gaps.max().unwrap_or(0);
    let silence = births.last().map_or(length, |&(birth, _)| end.saturating_sub(birth));
    silence > 2 * longest && silence > length / 20
}

/// Whether a fifth at least of what was kept of a time is of its first half. Of what goes up and down, there is
/// nothing that old. Of 25 blocks that are kept evenly it is less in one of 2,000 cases.
pub(super) fn is_of_all_the_time(births: &[(u64, f64)], (from, to): (u64, u64)) -> bool {
    let middle = from / 2 + to / 2;
    let sum = |is_late: bool| -> f64 {
        let part = births.iter().filter(|&&(birth, _)| (birth >= middle) == is_late);
        part.map(|&(_, count)| count).sum()
    };
    4.0 * sum(false) >= sum(true)
}

/// Whether blocks were kept all through this time, and up to its end as before.
pub(crate) fn goes_on(births: &[(u64, f64)], (from, to): (u64, u64)) -> bool {
    is_of_all_the_time(births, (from, to))
        && !is_silent(births, to, to.saturating_sub(from))
        && !is_slowing(births, (from, to), |time| time as f64)
}

/// Whether the rate at which something grows has fallen, from one time to the next, by so many standard
/// deviations.
pub(super) fn rates_fall(
    (early, before): (Change, f64),
    (late, after): (Change, f64),
    sigmas: f64,
) -> bool {
    if before <= 0.0 || after <= 0.0 {
        return false;
    }
    let (was, is) = (early.net() / before, late.net() / after);
    let error =
        ((early.noise() / before).powi(2) * LESS * LESS + (late.noise() / after).powi(2)).sqrt();
    is < LESS * was && (was - is) > sigmas * error
}
