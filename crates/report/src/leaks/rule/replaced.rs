//! Larger and larger blocks replace each other: a buffer, an array or the table of a hash table that
//! grows. Such blocks are few, so they are no statistics; but the size of each is known well.

use super::super::site_life::SiteLife;
use super::{Span, Trend};
use crate::cohorts::Record;

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
    let is_there = |record: &Record| {
        let same = life.alive_from(record.birth, record.birth.saturating_add(1));
        same.iter().any(|&(_, size)| size.sampled.count >= record.count)
    };
    // The last is there, of those before it two at least are not, and it is most of the rest.
    let (waiting, gone): (Vec<&Record>, Vec<&Record>) =
        records[..records.len() - 1].iter().partition(|record| is_there(record));
    let size = life.at_end().count();
    let garbage: f64 = waiting.iter().map(|record| record.count as f64).sum();
    if !is_there(&last) || gone.len() < 2 || 2.0 * (last.count as f64) < size - garbage {
        return None;
    }
    let factor = last.count as f64 / second.count as f64;
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
