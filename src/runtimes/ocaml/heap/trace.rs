//! The trace that is being taken beside snapshots.

use crate::runtimes::attach::attached;
use crate::snapshot::{TraceFile, TracedBlocks};

/// The trace, if there is one.
pub(in crate::runtimes::ocaml) fn file() -> Option<TraceFile> {
    let attached = attached()?;
    Some(TraceFile { name: attached.session.output_name.clone() })
}

/// The blocks with these numbers in it.
pub(in crate::runtimes::ocaml) fn identify(numbers: &[u64]) -> Option<TracedBlocks> {
    let identified = attached()?.session.identify(numbers)?;
    Some(TracedBlocks { trace_start_us: identified.start_time, ids: identified.ids })
}
