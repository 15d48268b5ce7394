//! The trace files that arguments stand for: a file stands for itself, a directory for
//! the traces in it.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use heaptap_trace::FileKind;

use crate::exit_status::Failure;
use crate::text::escape;

/// What messages and pages call the trace at this path.
pub(crate) fn shown(path: &Path) -> String {
    if path.as_os_str() == "-" {
        "standard input".to_owned()
    } else {
        escape::path(path).to_string()
    }
}

/// A file to read.
pub(crate) struct TraceFile {
    /// `-` is standard input.
    pub(crate) path: PathBuf,
    /// It was found in a directory, and not named.
    pub(crate) found: bool,
}

/// The files that arguments stand for, in their order. Those of a directory are in the
/// order of their names.
pub(crate) fn expand(arguments: &[PathBuf]) -> Result<Vec<TraceFile>, Failure> {
    let mut files = Vec::new();
    for argument in arguments {
        if argument.as_os_str() == "-" || !argument.is_dir() {
            files.push(TraceFile { path: argument.clone(), found: false });
            continue;
        }
        let found = traces_in(argument)?;
        if found.is_empty() {
            return Err(Failure::Trouble(format!(
                "{}: is a directory without a trace in it; name the directory with the trace \
                 files itself: those below are not searched",
                escape::path(argument)
            )));
        }
        files.extend(found.into_iter().map(|path| TraceFile { path, found: true }));
    }
    Ok(files)
}

/// The traces of a directory, not of those below it, in the order of their names.
pub(crate) fn traces_in(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| {
        let name = escape::path(directory);
        Failure::Trouble(format!("{name}: the directory cannot be read: {error}"))
    };
    let mut traces = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_trace(&path) {
            traces.push(path);
        }
    }
    traces.sort();
    Ok(traces)
}

/// Whether a file begins like a trace. One that is called a trace is, too, even if it is
/// empty, damaged, compressed or unreadable, so that it is not overlooked. A hidden file
/// may still be being written.
fn is_trace(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    if name.starts_with(b".") || !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return false;
    }
    let mut start = Vec::new();
    let read = File::open(path)
        .and_then(|file| file.take(FileKind::LONGEST_MAGIC as u64).read_to_end(&mut start));
    let kind = read.ok().and_then(|_| FileKind::of(&start));
    let is_called_so = name.ends_with(b".ctf");
    let is_compressed =
        matches!(kind, Some(FileKind::Gzip | FileKind::Zstd | FileKind::Xz | FileKind::Bzip2));
    kind == Some(FileKind::Memtrace)
        || is_called_so
        || is_compressed && name.windows(5).any(|part| part == b".ctf.")
}
