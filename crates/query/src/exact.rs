//! Requests that are answered from a reading of the trace with the filter itself, for
//! `heaptap serve`: which traces to read, and how.

use heaptap_report::Metric;
use serde_json::Value;

use crate::request::{Filter, Request, TraceRequest};

/// A request, and the readings that it needs.
#[derive(Debug)]
pub struct ExactRequest {
    traces: Vec<usize>,
    of: TraceRequest,
    renumbered: Vec<u8>,
}

impl ExactRequest {
    /// Reads a request; fails if it is none, or if no reading can answer it.
    pub fn parse(request: &[u8]) -> Result<ExactRequest, String> {
        let not_one = |error: serde_json::Error| format!("the request is not one: {error}");
        let mut json: Value = serde_json::from_slice(request).map_err(not_one)?;
        let parsed: Request = serde_json::from_value(json.clone()).map_err(not_one)?;
        let (traces, of) = match parsed {
            Request::Report { of, .. }
            | Request::Table { of, .. }
            | Request::Timeline { of, .. }
            | Request::HeatMap { of, .. }
            | Request::Tree { of, .. }
            | Request::Site { of, .. }
            | Request::Leaks { of }
            | Request::Hot { of, .. }
            | Request::Source { of, .. } => (vec![of.trace], of),
            Request::Diff { pair, of, .. } | Request::DiffTree { pair, of, .. } => {
                (vec![pair.before, pair.after], of)
            }
            Request::Info { .. } | Request::Names { .. } => {
                return Err("the page itself answers this".to_owned());
            }
        };
        of.filter.selection()?;
        let numbers: &[&str] = if traces.len() == 1 { &["trace"] } else { &["before", "after"] };
        for (number, name) in numbers.iter().enumerate() {
            json[*name] = number.into();
        }
        Ok(ExactRequest { traces, of, renumbered: json.to_string().into_bytes() })
    }

    /// The traces to read, in the order in which a [`crate::Engine`] is to have them.
    pub fn traces(&self) -> &[usize] {
        &self.traces
    }

    /// The blocks to count.
    pub fn filter(&self) -> &Filter {
        &self.of.filter
    }

    /// The time at which to record what is alive.
    pub fn at(&self) -> Option<u64> {
        self.of.at.map(|at| at as u64).filter(|_| self.of.metric == Metric::At)
    }

    /// The request for an engine that has only [`ExactRequest::traces`].
    pub fn renumbered(&self) -> &[u8] {
        &self.renumbered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_the_readings_that_it_needs() {
        let parse = |text: &str| ExactRequest::parse(text.as_bytes());
        let one = parse(r#"{"q":"report","trace":3,"metric":"at","at":7.5}"#).unwrap();
        assert_eq!((one.traces(), one.at()), (&[3][..], Some(7)));
        let renumbered: Value = serde_json::from_slice(one.renumbered()).unwrap();
        assert_eq!((&renumbered["trace"], &renumbered["at"]), (&0.into(), &7.5.into()));
        let two = parse(r#"{"q":"diff","before":4,"after":2,"at":7,"filter":{"domains":[1]}}"#);
        let two = two.unwrap();
        assert_eq!((two.traces(), two.at()), (&[4, 2][..], None));
        assert_eq!(two.filter().domains, [1]);
        let renumbered: Value = serde_json::from_slice(two.renumbered()).unwrap();
        assert_eq!((&renumbered["before"], &renumbered["after"]), (&0.into(), &1.into()));
        for (text, words) in [
            ("", "not one"),
            (r#"{"q":"info","trace":0}"#, "the page itself"),
            (r#"{"q":"report","filter":{"include":["("]}}"#, "not a regular expression"),
        ] {
            assert!(parse(text).unwrap_err().contains(words), "{text}");
        }
    }
}
