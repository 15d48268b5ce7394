//! What comes stays.

use super::super::site_life::{Seen, SiteLife};
use super::trend::{has_stopped, is_of_all_the_time, is_slowing, rates_fall};
use super::{CERTAIN, LIKELY, Span, Trend};
use crate::timeline::Progress;

/// Of what a site had, no more than this part of what came goes. A steady site loses as much as comes.
const FEW: f64 = 0.25;

/// So many moments show what comes and goes between two of them.
const MOMENTS: usize = 3;

/// The whole site.
pub(super) fn whole(life: &SiteLife<'_>, span: &Span, progress: &Progress) -> Option<Trend> {
    let (from, to) = span.halves();
    let change = life.change(from, to);
    // A site that has stopped may have grown before that only.
    let early = Seen::all(span.quarter.unwrap_or(0));
    let lately = change.is_growth(CERTAIN);
    if !lately && !life.change(early, to).is_growth(CERTAIN) {
        return None;
    }
    // What came and went in between counts as well: it is what goes up and down.
    if life.lost(span.half, span.last, 0) > FEW * change.came.count() {
        return None;
    }
    // Where hardly any moment is between the two, that is not seen; but what is kept of that time is.
    let between = (life.moments()[span.half].at, span.until);
    let is_seen = span.last - span.half >= MOMENTS;
    if lately && !is_seen && !is_of_all_the_time(&life.births(between.0, between.1), between) {
        return None;
    }
    let births = life.births(span.from, span.until);
    if has_stopped(life, &births) {
        return Some(Trend::Stopped);
    }
    let by_time = is_slowing(&births, (span.from, span.until), |time| time as f64);
    let by_progress = is_slowing(&births, (span.from, span.until), |time| progress.at(time));
    Some(if !lately || by_time && by_progress { Trend::Slowing } else { Trend::Steady })
}

/// What is older than a quarter of F.
pub(super) fn old_part(life: &SiteLife<'_>, span: &Span) -> Option<Trend> {
    let moments = life.moments();
    let age = span.until / 4;
    let seen = |at: usize| {
        let since = moments[at].at.checked_sub(age)?;
        let behind = moments.partition_point(|truth| truth.at <= since);
        Some(Seen { at, since: behind.checked_sub(1)? })
    };
    let (half, last) = (seen(span.half)?, seen(span.last)?);
    let change = life.change(half, last);
    if !change.is_growth(CERTAIN) || change.went.count() > FEW * change.came.count() {
        return None;
    }
    // What had become old earlier is still there. Of a batch that is dropped, and of a window that moves on, some is
    // old at any moment that is late enough, and each time it is other blocks.
    let earlier: Vec<Seen> = (span.half..span.last).filter_map(seen).collect();
    let (all, kept) = life.kept_of(&earlier, span.last);
    let is_some = kept.count() > 0.0 && kept.count() >= LIKELY * kept.squares.sqrt();
    if !is_some || kept.count() < (1.0 - FEW) * all.count() {
        return None;
    }
    // By the moments at which they could be seen.
    let middle = (moments[half.at].at + moments[last.at].at) / 2;
    let between = moments.partition_point(|truth| truth.at <= middle).checked_sub(1)?;
    if between <= half.at || between >= last.at {
        return None;
    }
    let between = seen(between)?;
    let (early, late) = (life.change(half, between), life.change(between, last));
    if !late.is_growth(LIKELY) {
        return Some(Trend::Slowing);
    }
    let time = |from: Seen, to: Seen| (moments[to.since].at - moments[from.since].at) as f64;
    let slowing = rates_fall((early, time(half, between)), (late, time(between, last)), 1.0);
    Some(if slowing { Trend::Slowing } else { Trend::Steady })
}
