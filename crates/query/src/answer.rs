//! Parts that answers share.

use heaptap_report::figures::{Size, Sum};
use heaptap_report::{Aggregate, Metric};
use serde::Serialize;

/// Why a request has no answer.
#[derive(Serialize)]
pub(crate) struct Refusal {
    pub(crate) error: String,
}

/// Samples of a metric with the size that they stand for.
pub(crate) fn sum(aggregate: &Aggregate, metric: Metric, samples: u64) -> Sum {
    Sum { samples, size: Size::from(aggregate.estimate(metric, samples)) }
}

/// Bytes for each sample.
pub(crate) fn unit(aggregate: &Aggregate) -> f64 {
    aggregate.scale().word_bytes / aggregate.scale().rate
}

/// An answer, and whether it is what a reading of the trace would give.
#[derive(Serialize)]
pub(crate) struct Stated<T> {
    #[serde(flatten)]
    pub(crate) answer: T,
    pub(crate) exact: bool,
}

/// An answer as JSON.
pub(crate) fn json(answer: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(answer).map_err(|error| error.to_string())
}
