//! Larger and larger blocks replace each other: a buffer, an array or the table of a hash table that
//! grows. Such blocks are few, so they are no statistics; but the size of each is known well.

use super::super::site_life::SiteLife;
use super::{Span, Trend};

/// The fewest blocks: one that replaces another that has replaced a third.
const FEWEST: usize = 3;

/// What grows evenly and doubles takes twice as long each time. A quarter more than that is too long.
const LATE: f64 = 1.25;

pub(super) fn replacement(life: &SiteLife<'_>, span: &Span) -> Option<Trend> {
    let records = life.records();
    let &[.., third, second, last] = records else { return None };
    if records.len() < FEWEST || last.birth < span.from {
        return None;
    }
    // The last is there, and most of what the site has; those before it are not.
    let alive = life.alive_since(0);
    let size: f64 = alive.iter().map(|&(_, samples)| samples).sum();
    let is_there = |birth: u64, samples: u64| {
        life.alive_from(birth, birth + 1).iter().any(|&(_, size)| size >= samples as f64)
    };
    if !is_there(last.birth, last.samples) || 2.0 * (last.samples as f64) < size {
        return None;
    }
    if is_there(second.birth, second.samples) && is_there(third.birth, third.samples) {
        return None;
    }
    let factor = last.samples as f64 / second.samples as f64;
    let waited = (last.birth - second.birth) as f64;
    let due = last.birth as f64 + waited * factor * LATE;
    let was_due = second.birth as f64 + (second.birth - third.birth) as f64 * factor * LATE;
    // It took longer than even growth takes, or takes longer now.
    let slowing = last.birth as f64 > was_due * LATE;
    Some(match (life.end() as f64 > due, slowing) {
        (true, _) => Trend::Stopped,
        (false, true) => Trend::Slowing,
        (false, false) => Trend::Steady,
    })
}
