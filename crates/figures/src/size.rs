//! Estimated sizes and shares, in text and in JSON.

use heaptap_report::Estimate;
use serde::Serialize;

use crate::units::{bytes, percent};

/// An estimated size. The field names are those of the JSON.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Size {
    pub bytes: f64,
    pub error: f64,
    pub low: f64,
    pub high: f64,
}

impl From<Estimate> for Size {
    fn from(estimate: Estimate) -> Size {
        let Estimate { bytes, error, low, high } = estimate;
        Size { bytes, error, low, high }
    }
}

impl Size {
    /// The standard error as a share of the size.
    pub fn relative(&self) -> f64 {
        if self.bytes > 0.0 { self.error / self.bytes } else { 0.0 }
    }
}

/// Samples, and the size they stand for.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sum {
    pub samples: u64,
    #[serde(flatten)]
    pub size: Size,
}

/// A size with its relative error.
pub fn sized(size: &Size) -> String {
    format!("{} ± {}", bytes(size.bytes), percent(size.relative()))
}

/// A part of a whole, which may be 0.
pub fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}
