//! The moments at which it is known what was reachable: from the sidecars of traces, if they have
//! the collector's cycles.

use std::path::PathBuf;

use heaptap_probes::History;
use heaptap_report::{Truth, Truths};

use crate::exit_status::Failure;
use crate::io::sidecar::read_sidecar;
use crate::io::sidecar_path::sidecar_path;
use crate::io::trace_files::expand;

/// The moments of the one process whose traces the arguments stand for. None if a sidecar is missing,
/// or if there are several processes: the cycles of one say nothing of the blocks of another.
pub(crate) fn truths(arguments: &[PathBuf]) -> Result<Truths, Failure> {
    let mut histories = Vec::new();
    for file in expand(arguments)? {
        // Without the sidecar of one file, it is not known since when the times of the others count. One
        // that cannot be read says nothing of cycles; `heaptap probes` says why.
        let is_there = sidecar_path(&file.path).is_file();
        let Some(Ok((_, read))) = is_there.then(|| read_sidecar(&file.path)) else {
            return Ok(Truths::default());
        };
        histories.push(read.history);
    }
    let starts = histories.iter().filter_map(|history| history.start.as_ref());
    let Some(begin) = starts.clone().map(|start| start.trace_start).min() else {
        return Ok(Truths::default());
    };
    let mut processes: Vec<(u64, &str)> =
        starts.map(|start| (start.pid, start.host.as_str())).collect();
    processes.dedup();
    if processes.len() != 1 {
        return Ok(Truths::default());
    }
    let moments = histories.iter().flat_map(truths_of);
    let since_start = |ns: u64| (ns / 1000).saturating_sub(begin);
    Ok(Truths::new(moments.map(|(at, known)| Truth {
        at: since_start(at),
        // Rounded up: deaths of that very microsecond are known.
        known: since_start(known).saturating_add(1),
    })))
}

/// When cycles began and when their marking was known to be done, in nanoseconds since the epoch.
fn truths_of(history: &History) -> Vec<(u64, u64)> {
    if !history.cycles.is_empty() {
        // Domains report what is dead one after the other, while all stand still: a later time is as
        // true as an earlier one.
        let known =
            |(marked, began): (u64, u64)| marked.saturating_add(marked.saturating_sub(began) / 16);
        return history.cycles.iter().map(|&cycle| (cycle.1, known(cycle))).collect();
    }
    let mut found = Vec::new();
    // The count of cycles is read now and then: each has ended between two readings.
    let rows = history.heap.points.iter();
    let counts: Vec<(u64, u64)> =
        rows.filter_map(|(time, heap)| Some((*time, heap.major_collections?))).collect();
    // When the cycle before ended, at the earliest.
    let mut ended: Option<u64> = None;
    for pair in counts.windows(2) {
        let [(before, count), (time, next)] = [pair[0], pair[1]];
        if next <= count {
            continue;
        }
        let began = if next - count > 1 { Some(before) } else { ended };
        found.extend(began.map(|began| (began, time)));
        ended = Some(before);
    }
    found
}
