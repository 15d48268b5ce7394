//! The trace that is being taken beside snapshots.

use crate::runtimes::attach::attached;
use crate::snapshot::TraceFile;

/// The trace, if there is one.
pub(in crate::runtimes::ocaml) fn file() -> Option<TraceFile> {
    let attached = attached()?;
    Some(TraceFile { name: attached.session.output_name.clone() })
}

/// The ids of blocks in it.
pub(in crate::runtimes::ocaml) fn ids(numbers: &[u64]) -> Vec<Option<u64>> {
    match attached() {
        Some(attached) => attached.session.ids_in_trace(numbers),
        None => vec![None; numbers.len()],
    }
}
