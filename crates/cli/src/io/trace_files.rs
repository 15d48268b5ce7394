//! The trace files that arguments stand for: a file stands for itself, a directory for
//! the traces in it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use heaptap_probes::{SIDECAR_START, is_sidecar};
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
pub(crate) struct InputFile {
    /// `-` is standard input.
    pub(crate) path: PathBuf,
    /// It was found in a directory, and not named.
    pub(crate) found: bool,
}

/// The files that arguments stand for, in their order. Those of a directory are in the
/// order of their names.
pub(crate) fn expand(arguments: &[PathBuf]) -> Result<Vec<InputFile>, Failure> {
    let mut files = Vec::new();
    for argument in arguments {
        if argument.as_os_str() == "-" || !argument.is_dir() {
            files.push(InputFile { path: argument.clone(), found: false });
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
        files.extend(found.into_iter().map(|path| InputFile { path, found: true }));
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
    if is_sidecar_file(path).unwrap_or(false) {
        return false;
    }
    let kind = kind(path);
    let is_called_so = name.ends_with(b".ctf");
    let is_compressed =
        matches!(kind, Some(FileKind::Gzip | FileKind::Zstd | FileKind::Xz | FileKind::Bzip2));
    kind.is_some_and(FileKind::is_trace)
        || is_called_so
        || is_compressed && name.windows(5).any(|part| part == b".ctf.")
}

/// Whether a file is a heap snapshot. A pipe is not looked into.
pub(crate) fn is_snapshot(path: &Path) -> bool {
    path.is_file() && kind(path) == Some(FileKind::HeapSnapshot)
}

/// Whether a file is the sidecar of a trace, which begins with the same four bytes.
pub(crate) fn is_sidecar_file(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(SIDECAR_START as u64).read_to_end(&mut start)?;
    Ok(is_sidecar(&start))
}

/// The kind of a file by its first bytes.
fn kind(path: &Path) -> Option<FileKind> {
    let mut start = Vec::new();
    let file = File::open(path).ok()?;
    file.take(FileKind::LONGEST_MAGIC as u64).read_to_end(&mut start).ok()?;
    FileKind::of(&start)
}

/// What a page calls files: without their directories, if that leaves them
/// different. A directory of several traces says how many.
pub(crate) fn page_names(paths: &[PathBuf]) -> Vec<String> {
    let short = |path: &PathBuf| shown(path.file_name().map_or(path, Path::new));
    let mut names: Vec<String> = paths.iter().map(short).collect();
    let distinct: BTreeSet<&String> = names.iter().collect();
    if distinct.len() < names.len() {
        names = paths.iter().map(|path| shown(path)).collect();
    }
    for (name, path) in names.iter_mut().zip(paths) {
        if let Ok(files) = expand(std::slice::from_ref(path))
            && files.len() > 1
        {
            name.push_str(&format!(" ({} traces)", files.len()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_differ() {
        let names = |paths: &[&str]| {
            page_names(&paths.iter().map(PathBuf::from).collect::<Vec<_>>()).join(" ")
        };
        assert_eq!(names(&["/a/one.ctf", "b/two.ctf"]), "one.ctf two.ctf");
        assert_eq!(names(&["a/same.ctf", "b/same.ctf"]), "a/same.ctf b/same.ctf");
        assert_eq!(names(&["-", ".."]), "standard input ..");
    }
}
