//! A trace that has begun: waits until it is to end, and ends it.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use heaptap_client::{AskError, Process};
use heaptap_control::{Command, Started, Status, StopRequest, Stopped};
use heaptap_report::figures::units::{bytes, count};

use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::attaching::interruption::Interruption;
use crate::io::attaching::place::Place;
use crate::io::attaching::words::of_process;
use crate::io::notices::say;
use crate::io::output::print;
use crate::io::running;
use crate::text::escape;

/// How often it is looked whether the program runs, and how often it is asked.
const LOOK: Duration = Duration::from_millis(50);
const QUESTION: Duration = Duration::from_secs(1);

/// A trace of a program.
pub(super) struct Watch {
    pub(super) process: Process,
    pub(super) place: Place,
    /// How long it lasts.
    pub(super) span: Option<Duration>,
    /// The longest wait for a safe point.
    pub(super) timeout: Duration,
}

/// Why the trace is over, or is to be.
enum Reason {
    /// Its time, or a signal.
    Due,
    ProgramEnded,
    /// Somebody else has ended it.
    Ended,
}

impl Watch {
    pub(super) fn run(&self, started: &Started, interruption: &Interruption) -> VerbResult {
        let (reason, last) = self.wait(started, interruption);
        match reason {
            Reason::Due => self.stop(&started.file, &last),
            Reason::ProgramEnded => {
                say(&of_process(self.process, "the program has ended, and its trace with it"));
                self.summarise(&started.file, &last)
            }
            Reason::Ended => {
                say(&of_process(self.process, "the trace was ended by somebody else"));
                self.summarise(&started.file, &last)
            }
        }
    }

    /// Also returns what the program said last.
    fn wait(&self, started: &Started, interruption: &Interruption) -> (Reason, Status) {
        let begin = Instant::now();
        let mut last = Status::default();
        let mut asked = begin;
        loop {
            let is_over = self.span.is_some_and(|span| begin.elapsed() >= span);
            if is_over || interruption.has_come() {
                return (Reason::Due, last);
            }
            if !self.process.is_running() {
                return (Reason::ProgramEnded, last);
            }
            if asked.elapsed() > QUESTION {
                asked = Instant::now();
                // One that does not answer is asked again.
                if let Ok(status) = self.process.ask::<Status>(&Command::Status, || {}) {
                    if status.trace != started.file {
                        return (Reason::Ended, last);
                    }
                    last = status;
                }
            }
            let left = self.span.map_or(LOOK, |span| span.saturating_sub(begin.elapsed()));
            thread::sleep(left.min(LOOK));
        }
    }

    fn stop(&self, file: &Path, last: &Status) -> VerbResult {
        let pid = self.process.pid();
        let command = Command::Stop(StopRequest { wait: Some(self.timeout) });
        match self.process.ask::<Stopped>(&command, || {}) {
            Ok(stopped) => print_summary(&running::summary(
                &Stopped { file: self.place.here(&stopped.file), ..stopped },
                false,
            )),
            // It has ended in this very moment.
            Err(AskError::Ended | AskError::NotListening | AskError::Unanswered(_))
                if !self.process.is_running() =>
            {
                self.summarise(file, last)
            }
            Err(error) => {
                let why = error.to_string();
                let after = match self.span {
                    Some(_) => "it ends the trace by itself at its next safe point".to_owned(),
                    None => format!("the trace goes on: `heaptap stop {pid}` ends it"),
                };
                let what = format!("{}; {after}", escape::path(why.as_ref()));
                Err(Failure::Trouble(of_process(self.process, &what)))
            }
        }
    }

    /// The line of a trace that has ended without us: what was known last.
    fn summarise(&self, file: &Path, last: &Status) -> VerbResult {
        let size = std::fs::metadata(self.place.here(file)).map_or(last.bytes, |found| found.len());
        let samples = match last.samples {
            0 => String::new(),
            samples => format!("more than {}, ", count(samples, "sampled word", "sampled words")),
        };
        let name = self.place.shown(file);
        print_summary(&format!("{name}: {samples}{} of file\n", bytes(size as f64)))
    }
}

/// The line of a trace that is complete.
fn print_summary(summary: &str) -> VerbResult {
    print(summary.as_bytes())?;
    Ok(Verdict::Sound)
}
