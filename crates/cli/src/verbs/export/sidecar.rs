//! The sidecars of traces that are exported.

use std::cell::RefCell;
use std::io;
use std::path::Path;

use heaptap_export::{Sidecars, TakeSidecar, TraceSidecar};
use heaptap_probes::History;
use heaptap_trace::TraceInfo;

use crate::analysis::several::{Findings, TracePart};
use crate::exit_status::{Failure, Verdict};
use crate::io::sidecar::read_sidecar;
use crate::io::sidecar_path::sidecar_path;
use crate::io::trace_files::shown;

/// What was found beside a trace.
pub(super) struct FoundSidecar {
    /// The time line and the probes, if there is a sidecar that belongs to the trace.
    pub(super) history: Option<History>,
    /// What is wrong with it, with its name.
    pub(super) lines: Vec<String>,
    pub(super) verdict: Verdict,
}

impl FoundSidecar {
    const NONE: FoundSidecar =
        FoundSidecar { history: None, lines: Vec::new(), verdict: Verdict::Sound };

    /// Looks beside the trace at this path. What cannot be read is left out.
    pub(super) fn of(trace: &Path, info: &TraceInfo) -> FoundSidecar {
        FoundSidecar::read(trace, info).unwrap_or_else(|failure| {
            let message = failure.message().unwrap_or("the sidecar cannot be read");
            let lines = vec![format!("{message}; left out")];
            FoundSidecar { lines, verdict: Verdict::LeftOut, ..FoundSidecar::NONE }
        })
    }

    fn read(trace: &Path, info: &TraceInfo) -> Result<FoundSidecar, Failure> {
        let path = sidecar_path(trace);
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

/// The sidecars of the traces of one export.
pub(super) struct FoundSidecars {
    pub(super) traces: Vec<TracePart>,
    /// Whether there are several traces, so that a sidecar needs the name of its own.
    pub(super) are_named: bool,
    /// What is wrong with those that were read.
    pub(super) findings: RefCell<Findings>,
}

impl Sidecars for FoundSidecars {
    fn each(&self, take: &mut TakeSidecar<'_>) -> io::Result<()> {
        for TracePart { path, info } in &self.traces {
            let FoundSidecar { history, lines, verdict } = FoundSidecar::of(path, info);
            self.findings.borrow_mut().add(lines, verdict);
            if let Some(history) = &history {
                let name = self.are_named.then(|| shown(path));
                take(&TraceSidecar { trace: name.as_deref(), info, history })?;
            }
        }
        Ok(())
    }
}
