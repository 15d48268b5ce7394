//! `--fail-over`: whether a program grew by more than is allowed.
//!
//! It fails if the total is over the limit by more than 1.645 standard errors, so that a program
//! that grew by exactly the limit passes in 19 of 20 runs. A total without a sample has the error
//! of one. Traces that do not have all that their programs did are not compared: a program that
//! was killed early has allocated less, and would pass.

use heaptap_report::figures::Size;
use heaptap_report::figures::units::percent;
use serde::Serialize;

use crate::exit_status::Verdict;
use crate::text::terminal::{Layout, wrap};

/// The excess, in standard errors, that a program without one has in one of 20 runs.
const CERTAIN: f64 = 1.645;

/// The total of one side.
pub(super) struct Side {
    pub(super) size: Size,
    /// The error of a single sample, in bytes.
    pub(super) single: f64,
}

impl Side {
    /// The standard error of the total.
    fn error(&self) -> f64 {
        if self.size.is_unseen() { self.single } else { self.size.error.unwrap_or(f64::INFINITY) }
    }
}

/// Why a gate is open or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// It grew by no more than the limit.
    WithinLimit,
    /// It grew by more, but that may be chance.
    WithinError,
    OverLimit,
    /// A trace does not have all that its program did.
    Incomplete,
    /// What was alive is known within bounds only.
    Unknown,
}

/// Whether a comparison passes. The field names are those of the JSON.
#[derive(Debug, Serialize)]
pub(super) struct Gate {
    limit: f64,
    /// `None` if the total before has no sample, or is not known.
    growth: Option<f64>,
    /// The standard error of the growth.
    growth_error: Option<f64>,
    /// By how many standard errors the total after is over the limit.
    excess: Option<f64>,
    /// False also if nothing can be said.
    passed: bool,
    outcome: Outcome,
    /// Which trace is incomplete, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<String>,
}

impl Gate {
    /// `incomplete`: why the traces must not be compared.
    pub(super) fn of(before: &Side, after: &Side, limit: f64, incomplete: Option<String>) -> Gate {
        let (from, to) = (before.size.bytes, after.size.bytes);
        let excess = to - from * (1.0 + limit);
        let noise = after.error().hypot(before.error() * (1.0 + limit));
        let is_known = noise.is_finite();
        let outcome = match excess {
            _ if incomplete.is_some() => Outcome::Incomplete,
            _ if !is_known => Outcome::Unknown,
            ..=0.0 => Outcome::WithinLimit,
            excess if excess <= CERTAIN * noise => Outcome::WithinError,
            _ => Outcome::OverLimit,
        };
        let relative = |side: &Side| side.error() / side.size.bytes.max(f64::MIN_POSITIVE);
        let is_growth = is_known && from > 0.0;
        let error = (to / from) * relative(before).hypot(relative(after));
        Gate {
            limit,
            growth: is_growth.then(|| to / from - 1.0),
            growth_error: (is_growth && to > 0.0).then_some(error),
            excess: (is_known && noise > 0.0).then(|| excess / noise),
            passed: matches!(outcome, Outcome::WithinLimit | Outcome::WithinError),
            outcome,
            incomplete,
        }
    }

    pub(super) fn verdict(&self) -> Verdict {
        match self.outcome {
            Outcome::WithinLimit | Outcome::WithinError => Verdict::Sound,
            Outcome::OverLimit => Verdict::OverLimit,
            Outcome::Incomplete | Outcome::Unknown => Verdict::Undecided,
        }
    }

    /// What is decided, and why.
    pub(super) fn text(&self, layout: Layout) -> String {
        let growth = match (self.growth, self.growth_error) {
            (Some(growth), Some(error)) if error > 0.0 => {
                format!("{} ± {} of growth", percent(growth), percent(error))
            }
            (Some(growth), _) => format!("{} of growth", percent(growth)),
            (None, _) => "growth from no sample".to_owned(),
        };
        let compared = format!("{growth}, {} allowed", percent(self.limit));
        let excess = format!("{:.1} standard errors", self.excess.unwrap_or(0.0));
        let wrapped = |text: String| wrap(&text, layout.width).join("\n");
        match self.outcome {
            Outcome::WithinLimit => layout.good(&wrapped(format!("passed: {compared}"))),
            Outcome::WithinError => layout.good(&wrapped(format!(
                "passed: {compared}; what is over the limit is within the sampling error \
                 ({excess}, and it takes {CERTAIN} to fail)"
            ))),
            Outcome::OverLimit => layout.bad(&wrapped(format!("failed: {compared}"))),
            Outcome::Incomplete => layout.bad(&wrapped(format!(
                "not decided: {}; --allow-incomplete compares what there is",
                self.incomplete.as_deref().unwrap_or("a trace is incomplete")
            ))),
            Outcome::Unknown => layout.bad(&wrapped(
                "not decided: files that were written one after the other do not say what stayed \
                 alive; trace the program into one file, or compare what was allocated"
                    .to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use heaptap_report::Scale;

    use super::*;

    fn scale() -> Scale {
        Scale::new(1e-2, 8.0)
    }

    fn side(samples: u64) -> Side {
        Side { size: scale().bytes(samples).into(), single: scale().bytes(1).error }
    }

    fn gate(before: u64, after: u64, limit: f64) -> Gate {
        Gate::of(&side(before), &side(after), limit, None)
    }

    #[test]
    fn a_gate_says_why_it_passes() {
        let text = |gate: &Gate| gate.text(Layout::plain(200));
        assert_eq!(text(&gate(1000, 1010, 0.02)), "passed: 1.0 % ± 4.5 % of growth, 2.0 % allowed");
        let lucky = gate(1000, 1040, 0.02);
        assert_eq!(
            text(&lucky),
            "passed: 4.0 % ± 4.6 % of growth, 2.0 % allowed; what is over the limit is within the \
             sampling error (0.4 standard errors, and it takes 1.645 to fail)"
        );
        assert_eq!(lucky.verdict(), Verdict::Sound);
        let over = gate(1000, 1200, 0.02);
        assert!(text(&over).starts_with("failed: 20.0 % ± 5.1 % of growth"), "{}", text(&over));
        assert_eq!(over.verdict(), Verdict::OverLimit);
    }

    #[test]
    fn an_incomplete_trace_is_not_compared() {
        let cut = Gate::of(&side(1000), &side(0), 0.05, Some("b.ctf: it is cut short".to_owned()));
        assert_eq!((cut.verdict(), cut.passed), (Verdict::Undecided, false));
        assert!(cut.text(Layout::plain(200)).starts_with("not decided: b.ctf: it is cut short; "));
        let bounds = Size { error: None, ..side(1000).size };
        let rotated = Side { size: bounds, single: 1.0 };
        let unknown = Gate::of(&rotated, &side(10), 0.05, None);
        assert_eq!((unknown.verdict(), unknown.growth), (Verdict::Undecided, None));
    }

    #[test]
    fn a_few_samples_where_none_was_are_chance() {
        assert_eq!(gate(0, 2, 0.0).verdict(), Verdict::Sound);
        assert_eq!(gate(0, 20, 0.0).verdict(), Verdict::OverLimit);
        assert_eq!(gate(0, 0, 0.0).verdict(), Verdict::Sound);
        let exact =
            |samples| Side { size: Scale::new(1.0, 8.0).bytes(samples).into(), single: 0.0 };
        assert_eq!(Gate::of(&exact(0), &exact(1), 0.1, None).verdict(), Verdict::OverLimit);
        assert_eq!(Gate::of(&exact(0), &exact(0), 0.1, None).verdict(), Verdict::Sound);
    }
}
