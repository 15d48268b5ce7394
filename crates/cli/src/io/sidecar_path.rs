//! Where the sidecar of a trace is.

use std::path::{Path, PathBuf};

use heaptap_probes::sidecar_name;

/// What gzip and zstd append to the name of a file.
const COMPRESSED: [&str; 2] = ["gz", "zst"];

/// The sidecar beside a trace, whether or not it is there. A trace that was compressed keeps the
/// one of its former name, unless there is one of its own.
pub(crate) fn sidecar_path(trace: &Path) -> PathBuf {
    let own = PathBuf::from(sidecar_name(trace.as_os_str()));
    let is_compressed = trace.extension().is_some_and(|end| COMPRESSED.iter().any(|it| end == *it));
    if !is_compressed || own.exists() {
        return own;
    }
    PathBuf::from(sidecar_name(trace.with_extension("").as_os_str()))
}
