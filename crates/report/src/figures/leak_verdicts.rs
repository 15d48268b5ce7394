//! The verdict on a site by the collector's cycles, in figures and in words.

use serde::Serialize;

use crate::figures::size::Size;
use crate::figures::units::{bytes, short_duration};
use crate::leaks::{ByCycles, JudgedSite, Shape, Verdict};

/// What was reachable when a cycle began.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ReachableAt {
    pub at_us: u64,
    /// When that was known: marking was done.
    pub known_us: u64,
    pub size: Size,
}

pub(crate) fn reachable(by_cycles: &ByCycles) -> Vec<ReachableAt> {
    let moments = by_cycles.reachable.iter();
    moments
        .map(|(truth, size)| ReachableAt {
            at_us: truth.at,
            known_us: truth.known,
            size: (*size).into(),
        })
        .collect()
}

/// The verdict, and the evidence for it.
#[derive(Clone, Serialize)]
pub struct JudgedFigures {
    pub verdict: &'static str,
    /// How the site grows: `kept`, `old part kept`, `backlog` or `replacement`.
    pub shape: Option<&'static str>,
    pub from_us: u64,
    pub until_us: u64,
    /// What was reachable at these moments.
    pub before: Size,
    pub after: Size,
    pub growth_per_second: Size,
    /// The age that a tenth of it had at least.
    pub oldest_tenth_before_us: u64,
    pub oldest_tenth_after_us: u64,
    /// When the oldest of what is alive was allocated.
    pub oldest_allocated_us: u64,
    #[serde(skip)]
    is: Verdict,
    #[serde(skip)]
    grows: Option<Shape>,
}

impl JudgedFigures {
    pub(crate) fn of(judged: &JudgedSite) -> JudgedFigures {
        let judgement = judged.judgement;
        JudgedFigures {
            verdict: verdict_name(judgement.verdict),
            shape: judgement.shape.map(shape_name),
            from_us: judgement.from,
            until_us: judgement.until,
            before: judged.before.into(),
            after: judged.after.into(),
            growth_per_second: judged.growth.into(),
            oldest_tenth_before_us: judgement.ages.0,
            oldest_tenth_after_us: judgement.ages.1,
            oldest_allocated_us: judgement.since,
            is: judgement.verdict,
            grows: judgement.shape,
        }
    }

    /// The verdict.
    pub fn kind(&self) -> Verdict {
        self.is
    }

    /// Another verdict, by what heap snapshots show.
    pub(crate) fn set(&mut self, verdict: Verdict) {
        self.is = verdict;
        self.verdict = verdict_name(verdict);
    }

    /// The time in which growth is stated.
    pub(crate) fn seconds(&self) -> f64 {
        self.until_us.saturating_sub(self.from_us) as f64 / 1e6
    }

    /// The verdict and its evidence in a sentence.
    pub fn sentence(&self) -> String {
        let until = short_duration(self.until_us as f64);
        match self.is {
            Verdict::KeepsGrowing => format!("keeps growing: {}", self.how()),
            Verdict::WasGrowing => format!(
                "was growing up to {until}, and nothing is known since then: {}; take a snapshot",
                self.how()
            ),
            Verdict::Slowing => {
                "grows less and less: perhaps a cache that fills; look again after a longer run"
                    .to_owned()
            }
            Verdict::Stopped => "grew, and has stopped".to_owned(),
            Verdict::TurnsOver => {
                format!("turns over: what is allocated there is freed again ({})", self.sizes())
            }
            Verdict::Waits => format!(
                "most of it is garbage that waits for the collector, or younger than {until}: only {} \
                 was reachable then",
                bytes(self.after.bytes)
            ),
            Verdict::HolderSteady => {
                format!("grows, but what holds it does not ({})", self.sizes())
            }
            Verdict::NotSeen => format!("not seen growing up to {until} ({})", self.sizes()),
        }
    }

    /// In which way it grows.
    fn how(&self) -> String {
        let age = |age: u64| short_duration(age as f64);
        match self.grows {
            Some(Shape::Backlog) => format!(
                "more comes than goes, first in, first out; its oldest tenth was {} old, then {}",
                age(self.oldest_tenth_before_us),
                age(self.oldest_tenth_after_us)
            ),
            Some(Shape::Replacement) => {
                "larger and larger blocks replace each other, as in a buffer or a table that grows"
                    .to_owned()
            }
            Some(Shape::OldPartKept) => {
                "part of what is allocated there is freed, but what has become old stays".to_owned()
            }
            Some(Shape::Kept) | None => "what is kept there is not freed again".to_owned(),
        }
    }

    /// What was reachable, earlier and later.
    pub fn sizes(&self) -> String {
        format!(
            "{} reachable at {}, {} at {}",
            bytes(self.before.bytes),
            short_duration(self.from_us as f64),
            bytes(self.after.bytes),
            short_duration(self.until_us as f64)
        )
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::KeepsGrowing => "keeps growing",
        Verdict::WasGrowing => "was growing",
        Verdict::Slowing => "slowing",
        Verdict::Stopped => "stopped",
        Verdict::TurnsOver => "turns over",
        Verdict::Waits => "garbage that waits",
        Verdict::NotSeen => "not seen growing",
        Verdict::HolderSteady => "holder steady",
    }
}

fn shape_name(shape: Shape) -> &'static str {
    match shape {
        Shape::Kept => "kept",
        Shape::OldPartKept => "old part kept",
        Shape::Backlog => "backlog",
        Shape::Replacement => "replacement",
    }
}
