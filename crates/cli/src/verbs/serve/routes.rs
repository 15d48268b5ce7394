//! What the server answers: the page, the state of the traces, their archives, heap snapshots, diagnoses, exact
//! figures, the text of source files and profiles for `go tool pprof`.

use std::sync::Arc;

use super::access::Access;
use super::available::{ReadyTrace, Unavailable};
use super::diagnoses::Diagnoses;
use super::exact::ExactReadings;
use super::go_profiles::GoProfiles;
use super::http::connections::Connection;
use super::http::request::{self, Method, Request};
use super::http::response::Response;
use super::sidecars::Sidecars;
use super::snapshots::{Snapshots, SnapshotsState};
use super::traces::Traces;
use crate::io::source_files::SourceRoots;
use crate::text::json;

/// All that is served.
pub(super) struct Site {
    pub(super) access: Access,
    pub(super) page: Arc<[u8]>,
    pub(super) traces: Arc<Traces>,
    pub(super) snapshots: Arc<Snapshots>,
    pub(super) sidecars: Sidecars,
    pub(super) diagnoses: Arc<Diagnoses>,
    pub(super) sources: SourceRoots,
    pub(super) exact: Arc<ExactReadings>,
    pub(super) go: GoProfiles,
}

impl Site {
    /// Reads the request of a connection and answers it.
    pub(super) fn handle(&self, connection: &Connection) {
        match request::read(connection) {
            Ok(Some(request)) => {
                let Some(response) = self.answer(&request, connection) else { return };
                response.send(connection, request.method == Method::Head);
            }
            Ok(None) => {}
            Err(refusal) => refusal.send(connection, false),
        }
    }

    /// `None`: the client is gone.
    fn answer(&self, request: &Request, client: &Connection) -> Option<Response> {
        if let Err(refusal) = self.access.check(request) {
            return Some(refusal);
        }
        if request.path == "/exact" {
            return self.exact(request, client);
        }
        if request.path == "/debug/pprof" || request.path.starts_with("/debug/pprof/") {
            return self.go.answer(&self.traces, request, client);
        }
        Some(self.content(request).unwrap_or_else(|refusal| refusal))
    }

    /// The figures of a reading with the filter of the request.
    fn exact(&self, request: &Request, client: &Connection) -> Option<Response> {
        match self.exact.answer(&self.traces, &request.body, client) {
            Ok(answer) => answer.map(Response::json),
            Err(Unavailable::Failed(error)) => Some(json_response(&Refused { error })),
            Err(why) => Some(why.into()),
        }
    }

    fn content(&self, request: &Request) -> Result<Response, Response> {
        match request.path.as_str() {
            "/" => Ok(Response::new("text/html; charset=utf-8", Arc::clone(&self.page))),
            "/status" => Ok(json_response(&self.traces.status(|trace| self.exact.progress(trace)))),
            "/source" => self.source(request),
            "/snapshots" => self.snapshots(),
            path if path.starts_with("/probes/") => {
                let number = path.strip_prefix("/probes/").and_then(|text| text.parse().ok());
                let packed = number.and_then(|number| self.sidecars.packed(number));
                let packed = packed.ok_or_else(|| Response::text(404, "there is no such trace"))?;
                Ok(Response::new("application/octet-stream", packed.into()))
            }
            path if path.starts_with("/diagnosis/") => {
                let number = path.strip_prefix("/diagnosis/").and_then(|text| text.parse().ok());
                let latest = number.and_then(|number| self.diagnoses.latest(&self.traces, number));
                let latest = latest.ok_or_else(|| Response::text(404, "there is no such trace"))?;
                Ok(json_response(&*latest))
            }
            path => match path.strip_prefix("/trace/") {
                Some(number) => {
                    let trace = self.trace(Some(number))?;
                    Ok(Response::new("application/octet-stream", trace.gzip))
                }
                None => Err(Response::text(404, "there is nothing here; the page is at /")),
            },
        }
    }

    /// The trace of this number, if it was read.
    fn trace(&self, number: Option<&str>) -> Result<ReadyTrace, Response> {
        let digits = number.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let trace = digits.and_then(|text| text.parse().ok()).and_then(|at| self.traces.get(at));
        let trace = trace.ok_or_else(|| Response::text(404, "there is no such trace"))?;
        Ok(trace.ready()?)
    }

    fn snapshots(&self) -> Result<Response, Response> {
        match self.snapshots.state() {
            SnapshotsState::Ready(gzip) => Ok(Response::new("application/octet-stream", gzip)),
            // Not an error, which a browser would report: the page asks again.
            SnapshotsState::Reading => {
                Ok(Response::text(202, "the snapshots are still being read"))
            }
            SnapshotsState::None => Err(Response::text(404, "there are no snapshots")),
        }
    }

    fn source(&self, request: &Request) -> Result<Response, Response> {
        let trace = self.trace(request.parameter("trace"))?;
        let file = request.parameter("file").unwrap_or("");
        Ok(match self.sources.read(file, &trace.files) {
            Ok(text) => json_response(&text),
            Err(error) => json_response(&Refused { error }),
        })
    }
}

/// Why there is no answer. The page shows it in place of one.
#[derive(serde::Serialize)]
struct Refused {
    error: String,
}

fn json_response(value: &impl serde::Serialize) -> Response {
    let mut text = Vec::new();
    json::put(&mut text, value);
    Response::json(text)
}
