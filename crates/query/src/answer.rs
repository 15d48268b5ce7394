//! Parts that answers share.

use heaptap_report::figures::Sum;
use heaptap_report::{Aggregate, Metric, Sampled};
use serde::Serialize;

/// Why a request has no answer.
#[derive(Serialize)]
pub(crate) struct Refusal {
    pub(crate) error: String,
}

/// Samples of a metric with the size that they stand for.
pub(crate) fn sum(aggregate: &Aggregate, metric: Metric, sampled: Sampled) -> Sum {
    Sum::new(&aggregate.scale(), sampled, aggregate.estimate(metric, sampled))
}

/// Bytes for each sample; of several rates, for a count of one.
pub(crate) fn unit(aggregate: &Aggregate) -> f64 {
    aggregate.scale().unit_bytes()
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
