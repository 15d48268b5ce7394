//! Asks a running program for a snapshot of its heap.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use heaptap_client::{AskError, NotFound, Process};
use heaptap_control::{Command, MAX_STRING_BYTES, SnapshotRequest, Taken};
use heaptap_report::figures::units::{bytes, count};

use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::notices::say;
use crate::io::output::print;
use crate::io::running;
use crate::text::escape;

/// The bytes of each string that `--with-strings` includes without a number.
const STRING_BYTES: &str = "256";

/// How a snapshot is taken.
#[derive(Args)]
pub(super) struct Request {
    /// The file, which the program writes; one that exists is replaced only if it is a snapshot.
    /// Default: PROGRAM-PID-N.heap in the current directory, with the first N that is free
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "pid")]
    output: Option<PathBuf>,

    /// Walk the heap in the program itself, not in a copy of it. The program stands still for the whole
    /// walk, and no memory is needed for pages that it changes meanwhile
    #[arg(long, requires = "pid")]
    sync: bool,

    /// Include the first N bytes of every string (a whole number from 1 to 4096). Without it a
    /// snapshot has no contents
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, requires = "pid")]
    #[arg(default_missing_value = STRING_BYTES)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_STRING_BYTES)))]
    with_strings: Option<u32>,

    /// The longest wait, in seconds, until the program can be interrupted: such as 60 or 0.5, at most
    /// 3600
    #[arg(long, value_name = "SECONDS", default_value = "10", requires = "pid")]
    #[arg(value_parser = running::timeout)]
    timeout: Duration,
}

impl Request {
    pub(super) fn run(&self, process: &OsStr) -> VerbResult {
        let process = running::find(process)?;
        let pid = process.pid();
        let file = self.file(process)?;
        let command = Command::Snapshot(SnapshotRequest {
            file: file.clone(),
            sync: self.sync,
            string_bytes: self.with_strings.unwrap_or(0),
            wait: Some(self.timeout),
        });
        let mut waiting = Waiting::new(pid);
        match process.ask(&command, || waiting.progress()) {
            Ok(taken) => {
                print(summary(&file, &taken).as_bytes())?;
                Ok(Verdict::Sound)
            }
            Err(AskError::Ended) => Err(Failure::Trouble(NotFound::Number(pid).to_string())),
            Err(error) => Err(Failure::Trouble(format!(
                "process {pid} ({}): {}",
                escape::path(process.name().as_ref()),
                reason(&error)
            ))),
        }
    }

    /// The absolute name of the file: the program may be in another directory.
    fn file(&self, process: Process) -> Result<PathBuf, Failure> {
        match &self.output {
            Some(file) => running::absolute(file),
            None => {
                let directory = running::absolute(Path::new("."))?;
                let program = process.program().unwrap_or_else(|| "program".to_owned());
                Ok(free_name(&directory, &program, process.pid()))
            }
        }
    }
}

/// The first name in a directory that does not exist.
fn free_name(directory: &Path, program: &str, pid: u32) -> PathBuf {
    let names = (1u32..).map(|number| directory.join(format!("{program}-{pid}-{number}.heap")));
    let mut free = names.filter(|name| name.symlink_metadata().is_err());
    // Some number is free.
    free.next().unwrap_or_default()
}

/// Says once that the program lets us wait.
struct Waiting {
    pid: u32,
    since: Instant,
    said: bool,
}

impl Waiting {
    const PATIENCE: Duration = Duration::from_secs(3);

    fn new(pid: u32) -> Waiting {
        Waiting { pid, since: Instant::now(), said: false }
    }

    fn progress(&mut self) {
        if !self.said && self.since.elapsed() > Self::PATIENCE {
            self.said = true;
            say(&format!(
                "waiting for process {}, which is still busy with the snapshot",
                self.pid
            ));
        }
    }
}

/// Why there is no snapshot.
fn reason(error: &AskError) -> String {
    match error {
        AskError::Refused(why) => format!("no snapshot was taken: {}", escape::path(why.as_ref())),
        AskError::Unanswered(_) => format!(
            "{error}; no snapshot is known to have been taken: is it stopped, or does it end?"
        ),
        _ => error.to_string(),
    }
}

/// The line for standard output.
fn summary(file: &Path, taken: &Taken) -> String {
    format!(
        "{}: {} in {} of heap, {}, {} of file; the program stood still for {:.1} ms\n",
        escape::path(file),
        count(taken.blocks, "block", "blocks"),
        bytes(taken.words as f64 * 8.0),
        count(taken.roots, "root", "roots"),
        bytes(taken.bytes as f64),
        taken.pause_us as f64 / 1000.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_name_is_taken() {
        let place = tempfile::tempdir().unwrap();
        let name = |number: u32| place.path().join(format!("server-7-{number}.heap"));
        assert_eq!(free_name(place.path(), "server", 7), name(1));
        std::fs::write(name(1), b"").unwrap();
        std::os::unix::fs::symlink("nowhere", name(2)).unwrap();
        assert_eq!(free_name(place.path(), "server", 7), name(3));
    }

    #[test]
    fn the_summary_has_every_figure() {
        let (words, pause_us) = (1280, 1500);
        let taken =
            Taken { blocks: 12, words, roots: 3, bytes: 2048, pause_us, ..Taken::default() };
        let text = summary(Path::new("/t/a b"), &taken);
        let expected = "12 blocks in 10.0 KiB of heap, 3 roots, 2.0 KiB of file; the program stood still \
                        for 1.5 ms\n";
        assert_eq!(text, format!("{}: {expected}", escape::path(Path::new("/t/a b"))));
    }
}
