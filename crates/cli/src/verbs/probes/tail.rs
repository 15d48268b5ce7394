//! The log of a program while it runs.

use std::io::stdin;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use heaptap_probes::History;
use heaptap_report::figures::probes::figures::{ProbeClock, ProbeLine};

use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::live_sidecar::LiveSidecar;
use crate::io::notices::say;
use crate::io::output::print;
use crate::io::sidecar::ReadSidecar;
use crate::io::trace_files::shown;
use crate::verbs::probes::text::log_line;

/// How often the file is looked at.
const PACE: Duration = Duration::from_millis(100);

/// Prints lines as they are written. The sidecar may not be there yet; on standard input it ends
/// with that.
pub(crate) fn log(file: &Path, wanted: &dyn Fn(&str) -> bool) -> VerbResult {
    let mut last: Option<LogLine> = None;
    if file.as_os_str() == "-" {
        let (name, mut read) = (shown(file), ReadSidecar::default());
        let print_more = |read: &ReadSidecar| print_new(&read.history, &mut last, wanted);
        read.take_all(stdin().lock(), print_more, &name)?;
        let (finding, verdict) = read.finding();
        finding.iter().for_each(|finding| say(&format!("{name}: {finding}")));
        return Ok(verdict);
    }
    let mut sidecar = LiveSidecar::of(file);
    loop {
        // Looked at first: what was written before the end is then read, too.
        let has_ended = sidecar.has_ended();
        sidecar.poll(Instant::now() + PACE);
        print_new(&sidecar.read.history, &mut last, wanted)?;
        if let Some(damage) = sidecar.read.damage() {
            say(&format!("{}: {damage}", shown(file)));
            return Ok(Verdict::Defective);
        }
        if has_ended {
            return Ok(Verdict::Sound);
        }
        thread::sleep(PACE);
    }
}

/// Prints the lines after the last one that was printed.
fn print_new(
    history: &History,
    last: &mut Option<LogLine>,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<(), Failure> {
    let clock = ProbeClock::of(history);
    let new = lines_after(&history.log, last.as_ref());
    for (time, text) in new.iter().filter(|(_, text)| wanted(text)) {
        let line = ProbeLine { time_us: clock.micros(*time), text: text.clone() };
        print(format!("{}\n", log_line(&line)).as_bytes())?;
    }
    if let Some(line) = new.last() {
        *last = Some(line.clone());
    }
    Ok(())
}

/// A line and its time.
type LogLine = (u64, String);

/// The lines after this one. The file may be another one by now, which has it or not: its older lines
/// are left out if they are many, and another trace may have taken its place.
fn lines_after<'a>(log: &'a [LogLine], last: Option<&LogLine>) -> &'a [LogLine] {
    let Some(last) = last else { return log };
    let known = log.iter().rposition(|line| line == last).map(|at| at + 1);
    let later = || log.iter().position(|(time, _)| *time > last.0).unwrap_or(log.len());
    &log[known.unwrap_or_else(later)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_printed_once_whatever_becomes_of_the_file() {
        let line = |time: u64| (time, format!("line {time}"));
        let log: Vec<LogLine> = (1..=5).map(line).collect();
        let after = |log: &[LogLine], last: u64| lines_after(log, Some(&line(last))).to_vec();
        assert_eq!(lines_after(&log, None), log);
        assert_eq!(after(&log, 3), log[3..]);
        assert_eq!(after(&log, 5), []);
        // It was thinned: the last printed line is gone with the older ones, or not read again yet.
        assert_eq!(after(&log[3..], 2), log[3..]);
        assert_eq!(after(&log[..2], 3), []);
        // Another trace.
        assert_eq!(after(&[line(90)], 5), [line(90)]);
    }
}
