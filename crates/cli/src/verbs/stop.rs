//! `heaptap stop`: ends the trace of a running program.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use heaptap_control::{Command, StopRequest, Stopped};
use heaptap_report::figures::units::{bytes, count};

use crate::exit_status::{VerbResult, Verdict};
use crate::io::output::print;
use crate::io::running;
use crate::text::escape;

/// End the trace of a running program
///
/// The program runs on, as if it had never been traced. A later `heaptap start` begins another
/// trace.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap stop 4711
  heaptap stop server --timeout 60

Exit status:
  0  the trace is complete
  2  a wrong call, a process that cannot be asked or is not traced, or the trace goes on")]
pub(crate) struct Stop {
    /// The process: its number, or the name of its program if no other process that can be asked
    /// runs the same
    #[arg(value_name = "PID")]
    pid: OsString,

    /// The longest wait, in seconds, until the program can be interrupted: such as 60 or 0.5, at most
    /// 3600
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = running::timeout)]
    timeout: Duration,
}

impl Stop {
    pub(crate) fn run(&self) -> VerbResult {
        let process = running::find(&self.pid)?;
        let command = Command::Stop(StopRequest { wait: Some(self.timeout) });
        let stopped = running::ask(process, &command, "the trace was not ended")?;
        print(summary(&stopped).as_bytes())?;
        Ok(Verdict::Sound)
    }
}

/// The line for standard output.
fn summary(stopped: &Stopped) -> String {
    let Stopped { file, bytes: size, samples, lost, words } = stopped;
    let mut text = format!(
        "{}: {}, {} of file",
        escape::path(file),
        count(*samples, "sampled word", "sampled words"),
        bytes(*size as f64)
    );
    if *words > 0 {
        let allocated = bytes(*words as f64 * 8.0);
        text += &format!("; the program has allocated {allocated} meanwhile");
    }
    if *lost > 0 {
        text +=
            &format!("; {} lost, since the writer fell behind", count(*lost, "block", "blocks"));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_what_was_lost() {
        let all = Stopped { file: "/t/a".into(), bytes: 2048, samples: 12, lost: 1, words: 1280 };
        let text = summary(&all);
        let expected = "/t/a: 12 sampled words, 2.0 KiB of file; the program has allocated 10.0 KiB \
                        meanwhile; 1 block lost, since the writer fell behind\n";
        assert_eq!(text, expected);
        let plain = summary(&Stopped { lost: 0, words: 0, ..all });
        assert!(plain.ends_with("2.0 KiB of file\n"), "{plain}");
    }
}
