//! `heaptap report --timeline`: the collector and the process over time.

use std::path::{Path, PathBuf};

use heaptap_probes::History;
use heaptap_report::figures::probes::figures::ProbeClock;
use heaptap_report::figures::probes::intervals::{Interval, LiveBuckets, TimeLine, round_width};
use heaptap_report::figures::{Figures, units::utc};
use serde::Serialize;

use crate::exit_status::Failure;
use crate::io::sidecar::{ReadSidecar, read_sidecar};

/// The most intervals, if all are asked for.
const MOST_INTERVALS: usize = 10_000;

/// Everything that is shown. The field names are those of the JSON.
#[derive(Serialize)]
pub(crate) struct TimelineFigures {
    pub(crate) trace: String,
    pub(crate) sidecar: String,
    pub(crate) duration_us: u64,
    pub(crate) interval_us: u64,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) total: Interval,
    /// When memory ran short, and the bytes that were left below the limit.
    pub(crate) pressure: Vec<Pressure>,
    /// Pauses that are in the totals, but not recorded one by one.
    pub(crate) lost_slices: u64,
    /// Filters left blocks out of the live size.
    pub(crate) selected: bool,
    /// Whether the sidecar says that nothing follows.
    pub(crate) complete: bool,
}

#[derive(Serialize)]
pub(crate) struct Pressure {
    pub(crate) time_us: u64,
    pub(crate) headroom_bytes: u64,
}

/// The sidecar of the one trace that was given.
pub(crate) fn sidecar_of(files: &[PathBuf]) -> Result<(String, ReadSidecar), Failure> {
    match files {
        [file] if file.as_os_str() != "-" && !file.is_dir() => {
            if !Path::new(file).exists() {
                return Err(Failure::Trouble(format!(
                    "{}: no such file; check the path",
                    crate::text::escape::path(file)
                )));
            }
            read_sidecar(file)
        }
        _ => Err(Failure::Trouble(
            "--timeline takes one trace, from a file: its collector's time line is in FILE.probes \
             beside it"
                .to_owned(),
        )),
    }
}

impl TimelineFigures {
    /// The time line in at most so many intervals; 0 for as many as are useful. `start` is when the
    /// trace began, in microseconds since the Unix epoch.
    pub(crate) fn of(
        report: &Figures,
        start: u64,
        (sidecar, history): (&str, &History),
        most: usize,
    ) -> Result<TimelineFigures, Failure> {
        if let Some(other) = history.start.as_ref().map(|found| found.trace_start)
            && other != start
        {
            return Err(Failure::Trouble(format!(
                "{sidecar}: belongs to another trace, which began at {}, not at {}",
                utc(other),
                utc(start)
            )));
        }
        let clock = ProbeClock::of(history);
        let last = history.span.map_or(0, |(_, last)| clock.micros(last));
        let duration_us = report.duration_us.max(last).max(1);
        let most = if most == 0 { MOST_INTERVALS } else { most.min(MOST_INTERVALS) };
        let interval_us = round_width(duration_us, most);
        let live = &report.timeline;
        let live = LiveBuckets { bucket_us: live.bucket_us, most_bytes: &live.most_live_bytes };
        let line = TimeLine::new(history, live);
        let pressure = history.pressure.iter().map(|&(time, headroom_bytes)| Pressure {
            time_us: clock.micros(time),
            headroom_bytes,
        });
        Ok(TimelineFigures {
            trace: report.trace.clone(),
            sidecar: sidecar.to_owned(),
            duration_us,
            interval_us,
            intervals: line.intervals(interval_us, duration_us.div_ceil(interval_us) as usize),
            total: line.interval(0, duration_us),
            pressure: pressure.collect(),
            lost_slices: history.lost_slices,
            selected: report.selected,
            complete: history.ended,
        })
    }
}
