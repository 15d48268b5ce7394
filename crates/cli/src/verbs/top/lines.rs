//! `top --json`: a line each second, for scripts, with what the screens are made from.

use std::time::{Duration, Instant};

use heaptap_report::figures::{Figures, Totals};
use heaptap_trace::CutReason;
use serde::Serialize;

use super::SLICE;
use super::session::{Query, Session};
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::live_trace::LiveState;
use crate::io::output::print_json;

/// How often a line is printed.
const EVERY: Duration = Duration::from_secs(1);

/// A line. The field names are those of the JSON.
#[derive(Serialize)]
struct Line<'a> {
    /// `live`, and at the end `ended`, `killed`, or `cut` if no more could be written.
    state: &'static str,
    /// How often another trace took the place of the one before.
    replaced: u32,
    /// From the start of the trace to now, if its program is seen to run, else to the last moment
    /// that is known of.
    latest_us: u64,
    events: u64,
    /// How late events are, in milliseconds: the latest, and the latest of all.
    lag_ms: f64,
    worst_lag_ms: f64,
    totals: &'a Totals,
    /// Only at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<&'a Figures>,
}

/// Follows a trace to its end. The first line comes when all was read that was there at the
/// beginning: earlier ones would have old figures, and might call a trace live that has ended.
pub(super) fn print_until_the_end(session: &mut Session, query: &Query) -> VerbResult {
    let (mut due, mut has_caught_up) = (Instant::now(), false);
    loop {
        session.advance(SLICE)?;
        let state = session.live.state();
        has_caught_up |= state == LiveState::Waiting;
        if state == LiveState::Ended || has_caught_up && Instant::now() >= due {
            print_line(session, query)?;
            due = Instant::now() + EVERY;
        }
        match state {
            LiveState::Ended => break,
            LiveState::Waiting => session.live.wait(),
            LiveState::More | LiveState::Replaced | LiveState::Resumed => {}
        }
    }
    Ok(if session.live.is_defective() { Verdict::Defective } else { Verdict::Sound })
}

fn print_line(session: &mut Session, query: &Query) -> Result<(), Failure> {
    let state = match (session.live.state(), session.live.cut_reason()) {
        (LiveState::Ended, None) => "ended",
        (LiveState::Ended, Some(CutReason::Unfinished)) => "killed",
        (LiveState::Ended, Some(CutReason::WriteFailed)) => "cut",
        _ => "live",
    };
    // Before the first packet there is nothing to say.
    let Some(figures) = session.figures(query) else { return Ok(()) };
    let events = session.live.figures().map_or(0, |so_far| so_far.aggregate.events());
    let lag = session.live.lag();
    let line = Line {
        state,
        replaced: session.live.replaced(),
        latest_us: session.live.latest(),
        events,
        lag_ms: lag.last.as_secs_f64() * 1e3,
        worst_lag_ms: lag.worst.as_secs_f64() * 1e3,
        totals: &figures.totals,
        report: (state != "live").then_some(&figures),
    };
    print_json(&line)
}
