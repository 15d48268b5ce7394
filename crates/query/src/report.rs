//! The figures of `heaptap report` and `heaptap hot`.

use heaptap_report::Depth;
use heaptap_report::figures::{Figures, TableOptions, fragments};
use heaptap_report::rows::By;

use crate::answer::{Stated, json};
use crate::request::TraceRequest;
use crate::traces::Traces;

/// The share of the metric that makes a fragment hot, unless asked otherwise.
const THRESHOLD: f64 = 0.03;

pub(crate) fn report(
    traces: &mut Traces,
    of: &TraceRequest,
    top: usize,
    callers: Option<usize>,
) -> Result<String, String> {
    let found = traces.find(of)?;
    let options = TableOptions { view: of.view(), top, callers };
    json(&Stated {
        answer: Figures::of(&traces.figures(of, &found)?, &options),
        exact: found.exact,
    })
}

pub(crate) fn hot(
    traces: &mut Traces,
    of: &TraceRequest,
    threshold: Option<f64>,
) -> Result<String, String> {
    needs_frames(of.by)?;
    let threshold = threshold.unwrap_or(THRESHOLD);
    if !(threshold > 0.0 && threshold <= 1.0) {
        return Err(format!("a threshold of {threshold} is not between 0 and 1"));
    }
    let found = traces.find(of)?;
    let (answer, _) = fragments(&traces.figures(of, &found)?, &of.view(), threshold, true);
    json(&Stated { answer, exact: found.exact })
}

/// Fails unless rows are frames.
pub(crate) fn needs_frames(by: By) -> Result<(), String> {
    match by.depth(Depth::Whole) {
        Depth::Whole => Ok(()),
        _ => Err("calls have no label, domain or source; filter by them instead".to_owned()),
    }
}
