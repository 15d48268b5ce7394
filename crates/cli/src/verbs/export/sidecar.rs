//! The sidecar of a trace that is exported.

use std::path::{Path, PathBuf};

use heaptap_probes::{History, sidecar_name};
use heaptap_trace::TraceInfo;

use crate::exit_status::{Failure, Verdict};
use crate::io::sidecar::read_sidecar;

/// What was found beside a trace.
pub(super) struct FoundSidecar {
    /// The time line and the probes, if there is a sidecar that belongs to the trace.
    pub(super) history: Option<History>,
    /// What is wrong with it, with its name.
    pub(super) lines: Vec<String>,
    pub(super) verdict: Verdict,
}

impl FoundSidecar {
    pub(super) const NONE: FoundSidecar =
        FoundSidecar { history: None, lines: Vec::new(), verdict: Verdict::Sound };

    /// Looks beside the trace at this path.
    pub(super) fn of(trace: &Path, info: &TraceInfo) -> Result<FoundSidecar, Failure> {
        let path = PathBuf::from(sidecar_name(trace.as_os_str()));
        if trace.as_os_str() == "-" || !path.is_file() {
            return Ok(FoundSidecar::NONE);
        }
        let (name, mut read) = read_sidecar(&path)?;
        let start = read.history.start.as_ref().map(|start| start.trace_start);
        if start.is_some_and(|start| start != info.start_time) {
            let lines = vec![format!("{name}: belongs to another trace; left out")];
            return Ok(FoundSidecar { lines, ..FoundSidecar::NONE });
        }
        let (finding, verdict) = read.finding();
        let lines = finding.into_iter().map(|finding| format!("{name}: {finding}")).collect();
        Ok(FoundSidecar { history: Some(read.history), lines, verdict })
    }
}
