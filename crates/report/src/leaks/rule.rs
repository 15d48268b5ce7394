//! The verdict on a site, by what the collector found reachable.
//!
//! Moments of truth are the beginnings of cycles whose marking is done ([`Truths`](crate::Truths)).
//! F is the last of them: of what happened later nothing is known but what was allocated and not
//! collected. The rule looks at the time from a quarter of F to F, so that what a program builds up
//! while it starts does not count, in whatever unit its start is.
//!
//! A site grows if the net of what came and went between about half of F and F is five standard
//! deviations. That alone is no leak: a site has grown too that goes up and down, or that
//! fills. So one of four shapes must be there, each of which a steady site does not have:
//!
//! - *kept*: hardly anything goes, so each block that comes stays;
//! - *old part kept*: the same of what is older than a quarter of F. Where a leak shares its site with
//!   blocks that come and go sooner, these are not in it;
//! - *backlog*: everything goes, first in, first out, but the least that is seen in each quarter of the
//!   time rises, and so does the age of the oldest;
//! - *replacement*: a block takes the place of another that was smaller, again and again.
//!
//! Each but the last must go on as it was: new survivors do not become fewer, by the clock of
//! time nor by that of what the program allocates.

mod backlog;
mod kept;
mod replaced;
mod trend;

pub(crate) use trend::goes_on;

use super::site_life::{Change, Seen, SiteLife};
use crate::estimate::Sampled;
use crate::timeline::Progress;

/// The least growth, in standard errors: one of 3.5 million sites that do not grow has it by chance.
/// A program with ten thousand sites, each of which is tried for three shapes, is accused by chance
/// in one of a hundred traces.
pub(super) const CERTAIN: f64 = 5.0;
/// For what is asked only of a site that is certain to have grown.
pub(super) const LIKELY: f64 = 3.0;

/// The part of the run at which F has to be. In a heap that only grows each cycle takes about half as
/// long again as the one before, so F is at half to four fifths of the run there.
const FRESH: f64 = 0.55;

/// If F is earlier than this part of the run, nothing is said: what is seen is how the program starts.
const SEEN: f64 = 1.0 / 3.0;

/// What a site does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It grows, up to the end as far as can be known.
    KeepsGrowing,
    /// It grew up to the last moment at which it is known what was reachable, which is long ago.
    WasGrowing,
    /// It grows less and less.
    Slowing,
    /// It grew, and does not any more.
    Stopped,
    /// What comes goes again.
    TurnsOver,
    /// Much of it is unreachable, and waits for the collector.
    Waits,
    /// It was not seen to grow.
    NotSeen,
    /// It grows, but what holds it does not: heap snapshots have shown that.
    HolderSteady,
}

/// How a site grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// What comes stays.
    Kept,
    /// What has become old stays.
    OldPartKept,
    /// More comes than goes, first in, first out.
    Backlog,
    /// Larger and larger blocks replace each other.
    Replacement,
}

/// The verdict on a site, and what it is based on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// What the site does.
    pub verdict: Verdict,
    /// How it grows, if it does.
    pub shape: Option<Shape>,
    /// The moments between which growth is stated, in microseconds since the start.
    pub from: u64,
    /// The last moment at which it is known what was reachable.
    pub until: u64,
    /// Reachable then.
    pub(crate) before: Sampled,
    pub(crate) after: Sampled,
    /// The standard deviation of the growth, which is the difference.
    pub(crate) noise: f64,
    /// The age that a tenth of it had at least at the first of these moments, and at the last.
    pub ages: (u64, u64),
    /// When the oldest of what is alive was allocated.
    pub since: u64,
}

/// The moments that the rule compares: at about half of F, and F.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// About a quarter of F, if there is a moment.
    pub(super) quarter: Option<usize>,
    pub(super) half: usize,
    pub(super) last: usize,
    /// A quarter of F, and F, in microseconds.
    pub(super) from: u64,
    pub(super) until: u64,
    /// Whether there are enough moments, and enough of the run is known.
    is_seen: bool,
}

impl Span {
    /// `None` if there is no moment at all.
    fn of(life: &SiteLife<'_>) -> Option<Span> {
        let moments = life.moments();
        let last = moments.len().checked_sub(1)?;
        let until = moments[last].at;
        // The last one that is not much later than a part of F.
        let about = |part: f64| {
            let behind = moments.partition_point(|truth| truth.at as f64 <= part * until as f64);
            behind.checked_sub(1)
        };
        let part = |at: usize| moments[at].at as f64 / until as f64;
        // Two snapshots were taken to be compared, wherever they are.
        let snapshot = || {
            let earlier = (0..last).rev().filter(|&at| moments[at].is_snapshot());
            earlier
                .filter(|_| moments[last].is_snapshot())
                .find(|&at| (0.3..0.9).contains(&part(at)))
        };
        let half = about(0.6).filter(|&half| part(half) >= 0.3).or_else(snapshot);
        Some(Span {
            quarter: about(0.3),
            half: half.unwrap_or(last.saturating_sub(1)),
            last,
            from: until / 4,
            until,
            is_seen: half.is_some() && until as f64 >= SEEN * life.end() as f64,
        })
    }

    fn halves(&self) -> (Seen, Seen) {
        (Seen::all(self.half), Seen::all(self.last))
    }
}

/// The verdict; `None` if there are too few moments for any.
pub(super) fn judge(life: &SiteLife<'_>, progress: &Progress) -> Option<Judgement> {
    let span = Span::of(life)?;
    let (from, to) = span.halves();
    let change = life.change(from, to);
    let (before, after) = (life.size(from).sampled, life.size(to).sampled);
    let (verdict, shape) = verdict(life, &span, &change, after.count as f64, progress)?;
    Some(Judgement {
        verdict,
        shape,
        from: life.moments()[span.half].at,
        until: span.until,
        before,
        after,
        noise: change.noise(),
        ages: (life.oldest_tenth(span.half), life.oldest_tenth(span.last)),
        since: life.oldest_birth().unwrap_or(0),
    })
}

/// How growth goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trend {
    Steady,
    Slowing,
    Stopped,
}

/// The shape in which a site grows, and how that goes on.
fn growth(life: &SiteLife<'_>, span: &Span, progress: &Progress) -> Option<(Shape, Trend)> {
    // Its blocks are seen while they are allocated, whatever the collector does.
    if let Some(trend) = replaced::replacement(life, span) {
        return Some((Shape::Replacement, trend));
    }
    if !span.is_seen {
        return None;
    }
    let kept = kept::whole(life, span, progress).map(|trend| (Shape::Kept, trend));
    // Where nothing goes, that says all. The others are for sites of which much goes.
    kept.or_else(|| {
        let others = [
            (Shape::OldPartKept, kept::old_part(life, span)),
            (Shape::Backlog, backlog::backlog(life, span)),
        ];
        let found = others.into_iter().filter_map(|(shape, trend)| Some((shape, trend?)));
        found.clone().find(|(_, trend)| *trend == Trend::Steady).or_else(|| found.clone().next())
    })
}

fn verdict(
    life: &SiteLife<'_>,
    span: &Span,
    change: &Change,
    after: f64,
    progress: &Progress,
) -> Option<(Verdict, Option<Shape>)> {
    if let Some((shape, trend)) = growth(life, span, progress) {
        let is_fresh =
            shape == Shape::Replacement || span.until as f64 >= FRESH * life.end() as f64;
        let verdict = match trend {
            Trend::Slowing => Verdict::Slowing,
            Trend::Stopped => Verdict::Stopped,
            Trend::Steady if is_fresh => Verdict::KeepsGrowing,
            Trend::Steady => Verdict::WasGrowing,
        };
        return Some((verdict, Some(shape)));
    }
    if !span.is_seen {
        return None;
    }
    let (at_end, went) = (life.at_end(), change.went.count());
    let unseen = at_end.count() - after;
    let verdict = if 3.0 * went >= after && went > 0.0 {
        Verdict::TurnsOver
    } else if unseen > after && unseen >= CERTAIN * at_end.squares.sqrt() {
        Verdict::Waits
    } else {
        Verdict::NotSeen
    };
    Some((verdict, None))
}
