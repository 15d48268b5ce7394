//! More comes than goes, first in, first out.

use super::super::site_life::{Seen, SiteLife};
use super::trend::rates_fall;
use super::{CERTAIN, LIKELY, Span, Trend};

/// Where waiting times rise, a queue has a backlog: they are 1.2 times as long at F as at half of it.
const LONGER: f64 = 1.2;
/// From a quarter of F to F: what goes up and down is seen to rise where there are few.
const MOMENTS: usize = 5;

pub(super) fn backlog(life: &SiteLife<'_>, span: &Span) -> Option<Trend> {
    let (moments, sizes) = (life.moments(), life.sizes());
    if moments.iter().filter(|truth| (span.from..=span.until).contains(&truth.at)).count() < MOMENTS
    {
        return None;
    }
    // Where the site is smallest in a part of the time: what goes up and down is down there.
    let floor = |from: f64, to: f64| {
        let until = span.until as f64;
        let inside = |&at: &usize| (from * until..=to * until).contains(&(moments[at].at as f64));
        let all = (0..moments.len()).filter(inside);
        all.min_by(|&one, &other| sizes[one].count().total_cmp(&sizes[other].count()))
    };
    let [first, second, third] = [floor(0.25, 0.5)?, floor(0.5, 0.75)?, floor(0.75, 1.0)?];
    if first >= second || second >= third {
        return None;
    }
    // What goes up and down is as large at its crests as before.
    let crest = |from: f64, to: f64| {
        let until = span.until as f64;
        let inside = moments
            .iter()
            .zip(&sizes)
            .filter(|(truth, _)| (from * until..=to * until).contains(&(truth.at as f64)));
        inside.map(|(_, size)| size).max_by(|one, other| one.count().total_cmp(&other.count()))
    };
    let (early, late) = (crest(0.25, 0.5)?, crest(0.75, 1.0)?);
    if late.count() - early.count() < LIKELY * (late.squares + early.squares).sqrt() {
        return None;
    }
    let seen = Seen::all;
    let (early, late) =
        (life.change(seen(first), seen(second)), life.change(seen(second), seen(third)));
    if !life.change(seen(first), seen(third)).is_growth(CERTAIN) {
        return None;
    }
    let ages = (life.oldest_tenth(span.half) as f64, life.oldest_tenth(span.last) as f64);
    if !early.is_growth(LIKELY) || ages.1 < LONGER * ages.0 {
        return None;
    }
    let time = |from: usize, to: usize| (moments[to].at - moments[from].at) as f64;
    if !late.is_growth(LIKELY) {
        let less = rates_fall((early, time(first, second)), (late, time(second, third)), LIKELY);
        return less.then_some(Trend::Stopped);
    }
    // What fills has a backlog too, up to the day that it is full.
    let slowing = rates_fall((early, time(first, second)), (late, time(second, third)), 0.0);
    Some(if slowing { Trend::Slowing } else { Trend::Steady })
}
