//! The log of a program while it runs.

use std::io::stdin;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use heaptap_probes::History;

use crate::analysis::probes::figures::{ProbeClock, ProbeLine};
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::notices::say;
use crate::io::output::print;
use crate::io::sidecar::{LiveSidecar, ReadSidecar};
use crate::io::trace_files::shown;
use crate::verbs::probes::text::log_line;

/// How often the file is looked at.
const PACE: Duration = Duration::from_millis(100);

/// Prints lines as they are written. The sidecar may not be there yet; on standard input it ends
/// with that.
pub(crate) fn log(file: &Path, wanted: &dyn Fn(&str) -> bool) -> VerbResult {
    let mut printed = 0;
    if file.as_os_str() == "-" {
        let (name, mut read) = (shown(file), ReadSidecar::default());
        let print_more = |read: &ReadSidecar| print_new(&read.history, &mut printed, wanted);
        read.take_all(stdin().lock(), print_more, &name)?;
        let (finding, verdict) = read.finding();
        finding.iter().for_each(|finding| say(&format!("{name}: {finding}")));
        return Ok(verdict);
    }
    let mut sidecar = LiveSidecar::of(file);
    loop {
        // Looked at first: what was written before the end is then read, too.
        let has_ended = sidecar.has_ended();
        let had = sidecar.read.history.logged();
        sidecar.poll(Instant::now() + PACE);
        if sidecar.read.history.logged() < had {
            printed = 0;
        }
        print_new(&sidecar.read.history, &mut printed, wanted)?;
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

/// Prints the lines that were not printed yet.
fn print_new(
    history: &History,
    printed: &mut u64,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<(), Failure> {
    let new = usize::try_from(history.logged() - *printed).unwrap_or(usize::MAX);
    let clock = ProbeClock::of(history);
    // Lines that came and went between two looks are gone.
    let kept = history.log.len().saturating_sub(new);
    for (time, text) in history.log.iter().skip(kept).filter(|(_, text)| wanted(text)) {
        let line = ProbeLine { time_us: clock.micros(*time), text: text.clone() };
        print(format!("{}\n", log_line(&line)).as_bytes())?;
    }
    *printed = history.logged();
    Ok(())
}
