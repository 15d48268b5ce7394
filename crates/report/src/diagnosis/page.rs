//! The diagnosis of a trace as the web page gets it.

use serde::Serialize;

use super::finding::Diagnosis;

/// What there is of it. The field names are those of the JSON.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum PageDiagnosis {
    /// It is still to be made.
    Waiting,
    Ready {
        /// The program runs, and more may be known later.
        so_far: bool,
        diagnosis: Box<Diagnosis>,
    },
    /// It cannot be made.
    Failed { error: String },
}
