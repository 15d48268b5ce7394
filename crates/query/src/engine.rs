//! Opens archives and answers requests.

use std::sync::Arc;

use heaptap_report::{Archive, ArchiveError};

use crate::answer::{Refusal, json};
use crate::evolution::Range;
use crate::request::{Filter, Request};
use crate::traces::Traces;
use crate::{diff, heat_map, info, leaks, report, site, source, table, timeline, tree};

/// The archives that are open, and the latest selections from them.
#[derive(Default)]
pub struct Engine {
    traces: Traces,
}

impl Engine {
    /// Opens the bytes of an archive, and returns the number of the trace.
    pub fn open(&mut self, archive: &[u8]) -> Result<usize, String> {
        let archive = Archive::from_bytes(archive).map_err(|error| error.to_string())?;
        Ok(self.traces.add(archive))
    }

    /// Opens the bytes of an archive in place of that of a trace, which has grown. If they are not of this
    /// version's archives, the old one stays; if they are damaged behind their head, the trace is gone.
    pub fn reopen(&mut self, trace: usize, archive: &[u8]) -> Result<(), String> {
        let wrong = |error: ArchiveError| error.to_string();
        Archive::check_head(archive).map_err(wrong)?;
        self.traces.replace(trace, || Archive::from_bytes(archive).map_err(wrong))
    }

    /// Adds an archive, and returns the number of the trace.
    pub fn add(&mut self, archive: Archive) -> usize {
        self.traces.add(archive)
    }

    /// Adds the archive of a reading with this filter: a request with the same filter is
    /// answered from the reading itself. Returns the number of the trace.
    pub fn add_reading(&mut self, archive: Arc<Archive>, filter: Filter) -> usize {
        self.traces.add_reading(archive, filter)
    }

    /// The answer to a request, both as JSON.
    pub fn query(&mut self, request: &[u8]) -> String {
        let answer = serde_json::from_slice(request)
            .map_err(|error| format!("the request is not one: {error}"))
            .and_then(|request| self.answer(&request));
        answer.unwrap_or_else(|error| refusal(&error))
    }

    fn answer(&mut self, request: &Request) -> Result<String, String> {
        let traces = &mut self.traces;
        match request {
            Request::Info { trace } => info::info(traces, *trace),
            Request::Report { of, top, callers } => report::report(traces, of, *top, *callers),
            Request::Table { of, shape } => table::table(traces, of, shape),
            Request::Timeline { of, top, skip, points, range, within } => {
                let steps = (*points, range.map(micros));
                timeline::timeline(traces, of, (*skip, *top), steps, within.as_ref())
            }
            Request::HeatMap { of, top, points, range } => {
                heat_map::heat_map(traces, of, *top, (*points, range.map(micros)))
            }
            Request::Tree { of, shape } => tree::tree(traces, of, shape),
            Request::Site { of, site, levels } => site::site(traces, of, site, *levels),
            Request::Leaks { of } => leaks::leaks(traces, of),
            Request::Hot { of, threshold } => report::hot(traces, of, *threshold),
            Request::Diff { pair, of, top } => diff::diff(traces, *pair, of, *top),
            Request::DiffTree { pair, of, shape } => diff::diff_tree(traces, *pair, of, shape),
            Request::Source { of, file } => source::source(traces, of, file),
            Request::Names { trace, text, most } => info::names(traces, *trace, text, *most),
        }
    }
}

/// A part of a trace as a request has it, in microseconds.
fn micros((from, to): (f64, f64)) -> Range {
    (from as u64, to as u64)
}

/// The answer to a request that has none.
pub(crate) fn refusal(error: &str) -> String {
    let refusal = Refusal { error: error.to_owned() };
    json(&refusal).unwrap_or_else(|_| r#"{"error":"no answer"}"#.to_owned())
}
