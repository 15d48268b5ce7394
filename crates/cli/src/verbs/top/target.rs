//! What to follow: a file, standard input, or the trace that a process writes.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use heaptap_probes::is_sidecar;
use heaptap_trace::{FileKind, TraceOrigin};

use crate::exit_status::Failure;
use crate::io::input::FileIdentity;
use crate::io::live_trace::LiveTrace;
use crate::text::escape;

/// Opens what the argument stands for. A number is a process; a file whose name is a number
/// is given as `./4711`.
pub(super) fn open(argument: &Path) -> Result<LiveTrace, Failure> {
    match argument.to_str().and_then(|text| text.parse().ok()) {
        Some(pid) => LiveTrace::open(&trace_of(pid)?, Some(pid)),
        None => LiveTrace::open(argument, None),
    }
}

/// The trace that a process has open: the one that began last, if there are several.
fn trace_of(pid: u32) -> Result<PathBuf, Failure> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let trouble = |reason: &str| Failure::Trouble(format!("process {pid}: {reason}"));
    if !process.exists() {
        return Err(Failure::Trouble(format!(
            "there is no process {pid}; for a file of that name, give ./{pid}"
        )));
    }
    let entries = fs::read_dir(process.join("fd")).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            trouble("it belongs to another user; run this as that user or as root")
        }
        _ => trouble(&format!("its files cannot be listed: {error}")),
    })?;
    let found = entries.flatten().filter_map(|entry| {
        let link = entry.path();
        origin(&link).map(|origin| (origin.start_time, link))
    });
    let (_, link) = found.max().ok_or_else(|| {
        trouble(
            "it writes no trace; start it by `heaptap run`, or name the file of its trace if \
             that was closed",
        )
    })?;
    Ok(named(&link).unwrap_or(link))
}

/// The beginning of the trace in an open file; `None` if it is something else. Only regular
/// files are opened: opening a pipe would wait for its other end.
fn origin(link: &Path) -> Option<TraceOrigin> {
    if !fs::metadata(link).ok()?.is_file() {
        return None;
    }
    let mut start = Vec::new();
    File::open(link).ok()?.take(TraceOrigin::BYTES as u64).read_to_end(&mut start).ok()?;
    if FileKind::of(&start) != Some(FileKind::Memtrace) || is_sidecar(&start) {
        return None;
    }
    TraceOrigin::of(&start)
}

/// The name of an open file, if the file still has it: a new file of that name is then
/// noticed.
fn named(link: &Path) -> Option<PathBuf> {
    let name = fs::read_link(link).ok()?;
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| FileIdentity::of(&found));
    (identity(&name)? == identity(link)?).then_some(name)
}

/// The name of a program, as a title shows it.
pub(super) fn program_name(executable: &[u8]) -> String {
    let name = executable.rsplit(|&byte| byte == b'/').next().unwrap_or(executable);
    if name.is_empty() { "-".to_owned() } else { escape::Escaped(name).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_of_a_process_is_found_by_its_open_files() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t.ctf");
        let trace = include_bytes!("../../../../trace/tests/data/tiny.v2.ctf");
        fs::write(&path, trace).unwrap();
        let held = File::open(&path).unwrap();
        // A pipe, and a file that is no trace.
        let pipe = io::pipe().unwrap();
        let other = File::open("/proc/self/exe").unwrap();
        let own = std::process::id();
        assert_eq!(trace_of(own).unwrap(), path);
        fs::remove_file(&path).unwrap();
        let link = trace_of(own).unwrap();
        assert!(link.starts_with(format!("/proc/{own}/fd")), "{link:?}");
        drop((held, pipe, other));
        let message = trace_of(own).unwrap_err().message().unwrap().to_owned();
        assert!(message.contains("heaptap run"), "{message}");
    }

    #[test]
    fn a_number_is_a_process() {
        let message = open(Path::new("4294967295")).map(drop).unwrap_err();
        assert!(message.message().unwrap().contains("no process 4294967295"), "{message:?}");
    }

    #[test]
    fn titles_have_the_name_without_its_directory() {
        assert_eq!(program_name(b"/usr/bin/server"), "server");
        assert_eq!(program_name(b""), "-");
        assert!(!program_name(b"a\x1b[2J").contains('\x1b'));
    }
}
