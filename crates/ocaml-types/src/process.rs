//! Running a program for what it prints, for a limited time.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

/// More output is cut off.
const LONGEST_OUTPUT: u64 = 1 << 30;

/// On a machine that is busy with other things a program gets this part of the time.
const BUSY: u32 = 10;

/// Runs a program without input. One that takes more processor time than the limit, or ten times as long, is
/// killed.
///
/// # Errors
/// It cannot be started, or has not ended in time (`TimedOut`).
pub(crate) fn output(command: &mut Command, limit: Option<Duration>) -> io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(limit) = limit {
        let seconds = Some(limit.as_secs().max(1));
        let rlimit = Rlimit { current: seconds, maximum: seconds };
        // If it has ended already, it needs no limit.
        let _ = prlimit(Pid::from_child(&child).into(), Resource::Cpu, rlimit);
    }
    let stdout = child.stdout.take().map(reader);
    let stderr = child.stderr.take().map(reader);
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if limit.is_some_and(|limit| start.elapsed() > limit * BUSY) {
            // It may have ended by now.
            let _ = child.kill();
            child.wait()?;
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    let killed = [Signal::KILL, Signal::XCPU].map(Signal::as_raw).map(Some);
    if limit.is_some() && killed.contains(&status.signal()) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let text = |reader: Option<thread::JoinHandle<Vec<u8>>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    Ok(Output { status, stdout: text(stdout), stderr: text(stderr) })
}

fn reader(from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is what there is.
        let _ = from.take(LONGEST_OUTPUT).read_to_end(&mut bytes);
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_returned() {
        let said = output(Command::new("echo").arg("hello"), None).unwrap();
        assert_eq!(said.stdout, b"hello\n");
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let start = Instant::now();
        let said = output(Command::new("sleep").arg("60"), Some(Duration::from_millis(50)));
        assert_eq!(said.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn a_program_that_only_computes_is_killed() {
        let mut command = Command::new("sh");
        let said =
            output(command.args(["-c", "while :; do :; done"]), Some(Duration::from_secs(1)));
        assert_eq!(said.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
