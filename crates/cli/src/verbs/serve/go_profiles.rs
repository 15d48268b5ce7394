//! Go's addresses for heap profiles, `/debug/pprof/heap` and `/debug/pprof/allocs`, of a
//! trace that is tailed: `go tool pprof` and those who collect profiles ask for them.
//!
//! The parameters are Go's: `seconds=N` for what changes in so many seconds, `debug=0`, and
//! `gc=1`, which has no effect, since nothing here can have the program collect. `trace=N` is
//! ours, for a server that tails several, and so is `final=1`: a program that has ended has no
//! profile any more, and whoever collects profiles is to notice that, but its last one can be had.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use heaptap_export::{ExportInput, HeapProfile, HeapValues, write_heap_profile};
use heaptap_report::{Metric, StackShape};
use heaptap_trace::CutReason;

use super::available::WaitingRoom;
use super::http::connections::Connection;
use super::http::request::Request;
use super::http::response::Response;
use super::live::{LiveHandle, TailedTrace};
use super::reading::Phase;
use super::traces::Traces;
use crate::analysis::archive::{Compression, compressed};
use crate::analysis::so_far::FiguresSoFar;

/// The most seconds that a profile may cover, and the most requests that wait for that.
const MOST_SECONDS: u64 = 3600;
const MOST_WAITING: usize = 16;
/// How often a request that waits looks whether its client is still there.
const PAUSE: Duration = Duration::from_millis(100);

const INDEX: &str = "\
Heap profiles of the program whose trace is followed, for `go tool pprof`:

/debug/pprof/heap      what is alive
/debug/pprof/allocs    what was allocated since the start of the trace

Parameters: seconds=N for what changes in N seconds; gc=1 and debug=0 are taken, too.
When the program has ended, the answer is 410, and final=1 asks for its last profile.
All values are estimates from samples.";

/// The requests that wait.
#[derive(Default)]
pub(super) struct GoProfiles {
    waiting: WaitingRoom,
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    seconds: Option<u64>,
    trace: Option<usize>,
    /// The last profile of a program that has ended will do.
    is_final: bool,
}

/// Reads the parameters; what is not understood is refused rather than ignored.
fn wanted<'a>(parameters: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Wanted, String> {
    let mut wanted = Wanted { seconds: None, trace: None, is_final: false };
    for (name, value) in parameters {
        match (name, value) {
            ("token", _) | ("debug", "0") | ("gc", "0" | "1") => {}
            ("debug", _) => return Err("debug: only 0, the format of pprof, is written".into()),
            ("gc", _) => return Err("gc: 0 or 1".into()),
            ("final", "0" | "1") => wanted.is_final = value == "1",
            ("final", _) => return Err("final: 0 or 1".into()),
            ("seconds", _) => {
                let seconds = number(value).filter(|seconds| (1..=MOST_SECONDS).contains(seconds));
                let refusal = || format!("seconds: a number from 1 to {MOST_SECONDS}");
                wanted.seconds = Some(seconds.ok_or_else(refusal)?);
            }
            ("trace", _) => {
                let trace = number(value).and_then(|number| usize::try_from(number).ok());
                wanted.trace = Some(trace.ok_or("trace: the number of a trace, from 0")?);
            }
            _ => return Err("the parameters are seconds, gc, debug, trace and final".into()),
        }
    }
    Ok(wanted)
}

fn number(text: &str) -> Option<u64> {
    // `parse` would accept a sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl GoProfiles {
    /// The answer to a request; `None` if the client is gone.
    pub(super) fn answer(
        &self,
        traces: &Traces,
        request: &Request,
        client: &Connection,
    ) -> Option<Response> {
        let kind = match request.path.as_str() {
            "/debug/pprof" | "/debug/pprof/" => return Some(Response::text(200, INDEX)),
            "/debug/pprof/heap" => HeapProfile::Heap,
            "/debug/pprof/allocs" => HeapProfile::Allocs,
            _ => {
                let message = "there are only /debug/pprof/heap and /debug/pprof/allocs";
                return Some(Response::text(404, message));
            }
        };
        match self.profile(kind, traces, request, client) {
            Ok(profile) => profile,
            Err(refusal) => Some(refusal),
        }
    }

    fn profile(
        &self,
        kind: HeapProfile,
        traces: &Traces,
        request: &Request,
        client: &Connection,
    ) -> Result<Option<Response>, Response> {
        let wanted =
            wanted(request.parameters()).map_err(|message| Response::text(400, message))?;
        let live = traces.live(wanted.trace).ok_or_else(|| {
            Response::text(
                404,
                "no such trace is followed: start `heaptap serve` while the program runs, or with \
                 --live; of a trace that is complete, `heaptap export FILE --to pprof` writes it",
            )
        })?;
        if !wanted.is_final {
            refuse_ended(live)?;
        }
        let Some(seconds) = wanted.seconds else {
            return profile_of(kind, live, None).map(Some);
        };
        let _waiting = self.waiting.enter(MOST_WAITING)?;
        let before = ask(live, |tailed| {
            let replaced = tailed.trace.replaced();
            tailed.with_input(HeapValues::of).map(|values| (replaced, values))
        })?;
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end && !matches!(live.reading.phase(), Phase::Ended(_)) {
            thread::sleep(PAUSE.min(end.saturating_duration_since(Instant::now())));
            if client.is_gone() {
                return Ok(None);
            }
        }
        profile_of(kind, live, Some(before)).map(Some)
    }
}

/// Fails if the program has ended.
fn refuse_ended(live: &LiveHandle) -> Result<(), Response> {
    let how = match live.reading.phase() {
        Phase::Ended(Some(CutReason::Unfinished)) => "was killed",
        Phase::Ended(Some(CutReason::WriteFailed)) => "could not write its trace any further",
        Phase::Ended(None) => "has ended",
        Phase::Reading | Phase::Complete | Phase::Live | Phase::Failed(_) => return Ok(()),
    };
    let message = format!(
        "the program {how}: there is no profile of it now; its last one can be had with the \
         parameter final=1, or by `heaptap export FILE --to pprof`"
    );
    Err(Response::text(410, message))
}

/// The profile of a trace so far, or since then if it is still the same trace.
fn profile_of(
    kind: HeapProfile,
    live: &LiveHandle,
    since: Option<(u32, HeapValues)>,
) -> Result<Response, Response> {
    let made = ask(live, move |tailed| {
        let now = tailed.trace.replaced();
        let since = match since {
            Some((replaced, _)) if replaced != now => return Some(None),
            since => since.map(|(_, values)| values),
        };
        tailed.with_input(|input, blocks| {
            let mut bytes = Vec::new();
            // Writing to a vector does not fail.
            let _: io::Result<()> =
                write_heap_profile(kind, input, blocks, since.as_ref(), &mut bytes);
            Some(bytes)
        })
    })?;
    let bytes = made.ok_or_else(|| {
        Response::text(503, "another trace took the place of the first meanwhile; try again")
    })?;
    let gzip = compressed(&bytes, Compression::fast());
    Ok(Response::new("application/octet-stream", gzip.into()))
}

/// Has the thread of the trace do something for which it must have a packet.
fn ask<T: Send + 'static>(
    live: &LiveHandle,
    job: impl FnOnce(&mut TailedTrace) -> Option<T> + Send + 'static,
) -> Result<T, Response> {
    live.ask(job)?.ok_or_else(|| Response::text(503, "the trace has no packet yet; try again"))
}

impl TailedTrace {
    /// Passes the trace so far as exporters take it; `None` before its first packet.
    fn with_input<T>(
        &mut self,
        take: impl FnOnce(&ExportInput<'_>, &heaptap_report::BlockTable) -> T,
    ) -> Option<T> {
        let FiguresSoFar { info, aggregate, blocks, locations } = self.trace.figures()?;
        let (metric, shape, sidecars) = (Metric::Live, StackShape::default(), None);
        Some(take(&ExportInput { aggregate, info, locations, metric, shape, sidecars }, blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_go_and_others_are_refused() {
        let read =
            |text: &'static str| wanted(text.split('&').filter_map(|pair| pair.split_once('=')));
        assert_eq!(
            read("token=x&debug=0&gc=1"),
            Ok(Wanted { seconds: None, trace: None, is_final: false })
        );
        let both = Wanted { seconds: Some(30), trace: Some(1), is_final: true };
        assert_eq!(read("seconds=30&trace=1&final=1"), Ok(both));
        for refused in ["seconds=0", "seconds=", "seconds=+1", "seconds=3601", "seconds=1.5"] {
            assert!(read(refused).unwrap_err().contains("from 1 to 3600"), "{refused}");
        }
        for refused in ["debug=1", "debug=2", "gc=2", "final=", "trace=x", "rate=1", "seconds=-1"] {
            assert!(read(refused).is_err(), "{refused}");
        }
    }
}
