//! Which of several traces are files of one process that went on from one to the next.
//!
//! A host can continue its trace in another file (`heaptap_tracer_rotate`), or stop tracing and
//! start again. The later file has the blocks that are allocated from then on, and says nothing of
//! those in the file before: neither that they were collected nor that they are still there. So
//! what such files have alive is not what is alive.
//!
//! Nothing in a file says that it was continued. It is taken to be if another one is of the same
//! host, program and process id, and begins after its last event. A file that is cut short is the
//! last of its process.

use std::collections::BTreeMap;

use heaptap_report::TraceEnding;
use heaptap_trace::TraceInfo;

/// Whose trace it is, and when.
pub(crate) struct TraceSpan<'a> {
    pub(crate) info: &'a TraceInfo,
    /// The time of its last event, or its start.
    pub(crate) last_time: u64,
    /// Its end is missing.
    pub(crate) is_cut: bool,
}

/// Host, process id and program.
type Process<'a> = (&'a [u8], u64, &'a [u8]);

/// How each of these traces ends.
pub(crate) fn continued(traces: &[TraceSpan<'_>]) -> Vec<TraceEnding> {
    let mut endings = vec![TraceEnding::Process; traces.len()];
    let mut processes: BTreeMap<Process<'_>, Vec<usize>> = BTreeMap::new();
    for (number, TraceSpan { info, .. }) in traces.iter().enumerate() {
        // Without a number, nothing tells processes apart.
        if info.pid != 0 {
            let process = (&info.host[..], info.pid, &info.executable[..]);
            processes.entry(process).or_default().push(number);
        }
    }
    for mut files in processes.into_values() {
        files.sort_by_key(|&number| traces[number].info.start_time);
        for pair in files.windows(2) {
            let (file, next) = (&traces[pair[0]], &traces[pair[1]]);
            if file.last_time <= next.info.start_time && !file.is_cut {
                endings[pair[0]] = TraceEnding::Continued;
            }
        }
    }
    endings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(pid: u64, start_time: u64) -> TraceInfo {
        TraceInfo {
            sample_rate: 1.0,
            word_size: 64,
            executable: b"/bin/server".to_vec(),
            host: b"host".to_vec(),
            runtime_params: Vec::new(),
            pid,
            context: Vec::new(),
            start_time,
            domain: 0,
        }
    }

    #[test]
    fn a_file_is_continued_in_the_next_one_of_its_process() {
        let infos = [info(7, 200), info(7, 100), info(8, 0), info(7, 300), info(0, 0), info(0, 50)];
        let last = [290, 199, 90, 400, 40, 60];
        let span = |(info, last_time)| TraceSpan { info, last_time, is_cut: false };
        let spans: Vec<_> = infos.iter().zip(last).map(span).collect();
        use TraceEnding::{Continued, Process};
        let expected = [Continued, Continued, Process, Process, Process, Process];
        assert_eq!(continued(&spans), expected);
    }

    #[test]
    fn files_that_overlap_or_are_cut_short_are_not_continued() {
        let infos = [info(7, 100), info(7, 200), info(7, 300)];
        let spans = [
            TraceSpan { info: &infos[0], last_time: 201, is_cut: false },
            TraceSpan { info: &infos[1], last_time: 290, is_cut: true },
            TraceSpan { info: &infos[2], last_time: 310, is_cut: false },
        ];
        assert_eq!(continued(&spans), [TraceEnding::Process; 3]);
    }
}
