//! Estimated sizes and shares, in text and in JSON.

use crate::estimate::{Estimate, Sampled, Scale};
use serde::Serialize;

use crate::figures::units::{bytes, percent};

/// An estimated size. The field names are those of the JSON.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Size {
    pub bytes: f64,
    /// `None` if there is no sample, and `high` is all that is known; and where it is only known
    /// to be between `low` and `high`.
    pub error: Option<f64>,
    pub low: f64,
    pub high: f64,
}

impl From<Estimate> for Size {
    fn from(estimate: Estimate) -> Size {
        let Estimate { bytes, error, low, high } = estimate;
        let mut size = Size { bytes, error: Some(error), low, high };
        if size.is_unseen() || !error.is_finite() {
            size.error = None;
        }
        size
    }
}

impl Size {
    /// The size of so many.
    pub(crate) fn times(self, times: f64) -> Size {
        let Size { bytes, error, low, high } = self;
        let error = error.map(|error| error * times);
        Size { bytes: bytes * times, error, low: low * times, high: high * times }
    }

    /// The standard error as a share of the size, if it is known.
    pub fn relative(&self) -> Option<f64> {
        let relative = |error| if self.bytes > 0.0 { error / self.bytes } else { 0.0 };
        self.error.map(relative)
    }

    /// Whether there is no sample, though not every word was sampled.
    pub fn is_unseen(&self) -> bool {
        self.bytes == 0.0 && self.high > 0.0
    }

    /// Whether it is only known to be between two bounds, whatever the samples.
    pub fn is_bounded(&self) -> bool {
        self.error.is_none() && !self.is_unseen()
    }

    /// The size and its relative error for the columns of a table, of 11 and 7 characters.
    pub fn columns(&self) -> (String, String) {
        match self.relative() {
            Some(error) => (bytes(self.bytes), percent(error)),
            None if self.is_unseen() => (format!("<{}", bytes(self.high)), "-".to_owned()),
            None => (bytes(self.bytes), "?".to_owned()),
        }
    }
}

/// Samples, and the size they stand for. Of several rates, as many samples as have the same relative error
/// at one rate.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Sum {
    pub samples: u64,
    #[serde(flatten)]
    pub size: Size,
    /// What it was estimated from.
    #[serde(skip)]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub sampled: Sampled,
}

impl Sum {
    /// A size that was estimated from this.
    pub fn new(scale: &Scale, sampled: Sampled, size: impl Into<Size>) -> Sum {
        Sum { samples: scale.samples(sampled), size: size.into(), sampled }
    }
}

/// A size with its relative error, or what else is known of it.
pub fn sized(size: &Size) -> String {
    match size.relative() {
        Some(error) => format!("{} ± {}", bytes(size.bytes), percent(error)),
        None if size.is_unseen() => format!("less than {} (no sample)", bytes(size.high)),
        None if size.low == 0.0 => format!("at most {}", bytes(size.high)),
        None => format!("between {} and {}", bytes(size.low), bytes(size.high)),
    }
}

/// A part of a whole, which may be 0.
pub fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sample_is_not_zero() {
        let none = Size::from(Scale::new(1e-4, 8.0).bytes(0));
        assert_eq!(sized(&none), "less than 234.0 KiB (no sample)");
        assert_eq!(none.columns(), ("<234.0 KiB".to_owned(), "-".to_owned()));
        assert_eq!((none.error, none.high), (None, 8.0 * 29_956.0));
        let exact = Size::from(Scale::new(1.0, 8.0).bytes(0));
        assert_eq!(sized(&exact), "0 bytes ± 0 %");
    }

    #[test]
    fn bounds_have_no_error() {
        let estimate = |low| Estimate { bytes: 2048.0, error: f64::INFINITY, low, high: 2048.0 };
        assert_eq!(sized(&estimate(1024.0).into()), "between 1.0 KiB and 2.0 KiB");
        assert_eq!(sized(&estimate(0.0).into()), "at most 2.0 KiB");
        assert_eq!(Size::from(estimate(0.0)).columns(), ("2.0 KiB".to_owned(), "?".to_owned()));
    }
}
