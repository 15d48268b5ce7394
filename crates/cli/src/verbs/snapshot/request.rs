//! Asks a running program for a snapshot of its heap.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use heaptap_figures::units::{bytes, count};
use heaptap_settings::control;

use super::client::{Answer, PACE, Target};
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::notices::say;
use crate::io::output::print;
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
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(control::MAX_STRING_BYTES)))]
    with_strings: Option<u32>,

    /// The longest wait, in seconds, until the program can be interrupted: such as 60 or 0.5, at most
    /// 3600
    #[arg(long, value_name = "SECONDS", default_value = "10", requires = "pid")]
    #[arg(value_parser = timeout)]
    timeout: Duration,
}

fn timeout(text: &str) -> Result<Duration, String> {
    control::seconds(text).filter(|wait| !wait.is_zero()).ok_or_else(|| {
        format!(
            "expected seconds above 0 and up to {}, such as 60 or 0.5",
            control::MAX_WAIT_SECONDS
        )
    })
}

/// How long a program that has closed its control socket may take to open it again.
const LONGEST_REOPENING: Duration = Duration::from_secs(2);

impl Request {
    pub(super) fn run(&self, pid: u32) -> VerbResult {
        let target = Target::find(pid)?;
        let file = self.file(&target)?;
        let mut connection = target.connect(Instant::now() + LONGEST_REOPENING)?;
        let command = self.command(&file);
        let mut waiting = Waiting::new(pid);
        let mut answer = connection.ask(&command, || waiting.progress());
        let deadline = Instant::now() + LONGEST_REOPENING;
        while answer.is_lost() && Instant::now() < deadline {
            std::thread::sleep(PACE);
            let Ok(again) = target.connect(deadline) else { break };
            connection = again;
            answer = connection.ask(&command, || waiting.progress());
        }
        match answer {
            Answer::Done(words) => {
                print(summary(&file, &words).as_bytes())?;
                Ok(Verdict::Sound)
            }
            Answer::Refused(why) => Err(target.trouble(&format!("no snapshot was taken: {why}"))),
            Answer::None(error) => Err(target.trouble(&no_answer(&answer_error(&error)))),
        }
    }

    /// The absolute name of the file: the program may be in another directory.
    fn file(&self, target: &Target) -> Result<PathBuf, Failure> {
        let unknown = |error| {
            Failure::Trouble(format!(
                "the current directory is unknown: {error}; give an absolute name with -o"
            ))
        };
        match &self.output {
            Some(file) if matches!(file.as_os_str().as_encoded_bytes(), b"" | b"-") => {
                let message = "-o: the program writes the snapshot: give the name of a file";
                Err(Failure::Trouble(message.into()))
            }
            Some(file) => std::path::absolute(file).map_err(unknown),
            None => {
                let directory = std::env::current_dir().map_err(unknown)?;
                Ok(free_name(&directory, &target.program(), target.pid))
            }
        }
    }

    fn command(&self, file: &Path) -> String {
        let mut command = format!("snapshot {}", control::encode_os(file));
        if self.sync {
            command += " sync";
        }
        if let Some(bytes) = self.with_strings {
            command += &format!(" strings={bytes}");
        }
        command + &format!(" wait={}", self.timeout.as_secs_f64())
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

fn answer_error(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
            "it does not answer".into()
        }
        std::io::ErrorKind::UnexpectedEof => "it ended or closed the connection".into(),
        _ => format!("the connection was lost: {error}"),
    }
}

fn no_answer(reason: &str) -> String {
    format!("{reason}; no snapshot is known to have been taken: is it stopped, or does it end?")
}

/// The line for standard output.
fn summary(file: &Path, words: &[u8]) -> String {
    let number = |key| -> u64 {
        let value: Option<OsString> = control::value(control::words(words), key);
        value.and_then(|value| value.to_str()?.parse().ok()).unwrap_or(0)
    };
    let heap_bytes = number("words") as f64 * 8.0;
    let pause = number("pause_us") as f64 / 1000.0;
    format!(
        "{}: {} in {} of heap, {}, {} of file; the program stood still for {pause:.1} ms\n",
        escape::path(file),
        count(number("blocks"), "block", "blocks"),
        bytes(heap_bytes),
        count(number("roots"), "root", "roots"),
        bytes(number("bytes") as f64),
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
        let text = summary(
            Path::new("/t/a b"),
            b"blocks=12 words=1280 roots=3 bytes=2048 pause_us=1500 method=copy-on-write",
        );
        let expected = "12 blocks in 10.0 KiB of heap, 3 roots, 2.0 KiB of file; the program stood still \
                        for 1.5 ms\n";
        assert_eq!(text, format!("{}: {expected}", escape::path(Path::new("/t/a b"))));
    }
}
