//! One client on the control socket: its line is read, it waits, it gets its answer.
//!
//! Nothing here waits. A client that is silent, or does not read, costs its place until its
//! deadline, and delays nobody.

use std::time::{Duration, Instant};

use heaptap_control::{CLIENT_SECONDS, MAX_LINE, PROGRESS_SECONDS, Reply};

use super::jobs::Answer;
use super::process::InProgress;
use crate::sys::listener::{Client, Transfer};
use crate::sys::poll::{Wants, Watched};

/// The longest that a client may take to send its line, or to take its answer.
const LONGEST: Duration = Duration::from_secs(CLIENT_SECONDS);

/// The longest that what a client still sends is thrown away after its answer. If the connection
/// were closed before, the client would get an error instead of the end.
const LONGEST_DRAIN: Duration = Duration::from_secs(1);

/// A client that has connected.
pub(super) struct Connection {
    /// Tells it from all others.
    pub(super) number: u64,
    client: Client,
    stage: Stage,
    /// What has to be written.
    output: Vec<u8>,
    /// When this stage began.
    since: Instant,
}

enum Stage {
    /// It has sent this much of its line.
    Reading(Vec<u8>),
    /// Its command is being carried out, or waits for its turn. It was given this many lines.
    Waiting { lines: u64 },
    /// It gets its last line. The program does not exit before.
    Answering { _in_progress: Option<InProgress<'static>> },
    /// It has its answer.
    Draining,
    /// It is of no interest any more.
    Ended,
}

/// What a step has brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The client's line, without its end.
    Line(Vec<u8>),
    /// There will be no line, and why.
    NoLine(String),
}

impl Connection {
    pub(super) fn new(number: u64, client: Client, now: Instant) -> Connection {
        let stage = Stage::Reading(Vec::new());
        Connection { number, client, stage, output: Vec::new(), since: now }
    }

    /// The effective user of the client.
    pub(super) fn user(&self) -> Option<u32> {
        self.client.user().ok()
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting { .. })
    }

    /// How long it has been in its stage.
    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }

    /// For `poll`.
    pub(super) fn watched(&self) -> Watched {
        let wants = match &self.stage {
            _ if !self.output.is_empty() => Wants::Output,
            Stage::Waiting { .. } | Stage::Ended => Wants::Hangup,
            Stage::Reading(_) | Stage::Answering { .. } | Stage::Draining => Wants::Input,
        };
        self.client.watched(wants)
    }

    /// When something has to be done even if the client does nothing.
    pub(super) fn deadline(&self) -> Instant {
        match &self.stage {
            Stage::Reading(_) | Stage::Answering { .. } => self.since + LONGEST,
            Stage::Waiting { lines } => {
                self.since + Duration::from_secs(PROGRESS_SECONDS * (lines + 1))
            }
            Stage::Draining => self.since + LONGEST_DRAIN,
            Stage::Ended => self.since,
        }
    }

    /// Reads and writes as far as that is possible without waiting.
    pub(super) fn step(&mut self, is_hung_up: bool, now: Instant) -> Option<Event> {
        if is_hung_up && self.is_waiting() {
            self.stage = Stage::Ended;
        }
        let is_late = now >= self.deadline();
        match &mut self.stage {
            Stage::Reading(_) => return self.read(is_late),
            Stage::Waiting { lines } => {
                if is_late {
                    *lines += 1;
                    // One that does not read its lines gets only the last.
                    if self.output.is_empty() {
                        let reply = Reply::Wait(*lines * PROGRESS_SECONDS);
                        self.output = format!("{reply}\n").into_bytes();
                    }
                }
                self.write();
            }
            Stage::Answering { .. } => {
                self.write();
                if !self.has_ended() && self.output.is_empty() {
                    self.client.end_answer();
                    self.enter(Stage::Draining, now);
                    self.drain();
                } else if is_late {
                    self.stage = Stage::Ended;
                }
            }
            Stage::Draining if is_late => self.stage = Stage::Ended,
            Stage::Draining => self.drain(),
            Stage::Ended => {}
        }
        None
    }

    /// Its command is being carried out, or waits for its turn.
    pub(super) fn wait(&mut self, now: Instant) {
        self.enter(Stage::Waiting { lines: 0 }, now);
    }

    /// Gives it its last line. The program does not exit before it was written, or the client has
    /// taken too long.
    pub(super) fn answer(
        &mut self,
        result: Answer,
        in_progress: Option<InProgress<'static>>,
        now: Instant,
    ) {
        if self.has_ended() {
            return;
        }
        let reply = result.map_or_else(Reply::Refused, Reply::Done);
        self.output.extend_from_slice(format!("{reply}\n").as_bytes());
        self.enter(Stage::Answering { _in_progress: in_progress }, now);
        self.step(false, now);
    }

    /// Forgets what it wants. The connection ends when it is dropped.
    pub(super) fn abandon(&mut self) {
        self.stage = Stage::Ended;
    }

    fn enter(&mut self, stage: Stage, now: Instant) {
        self.stage = stage;
        self.since = now;
    }

    fn read(&mut self, is_late: bool) -> Option<Event> {
        let Stage::Reading(line) = &mut self.stage else { return None };
        let mut chunk = [0; 1024];
        loop {
            let read = match self.client.read(&mut chunk) {
                Transfer::Done(read) => chunk.get(..read).unwrap_or_default(),
                Transfer::Later if is_late => {
                    let why = format!("no line came within {CLIENT_SECONDS} s");
                    return Some(Event::NoLine(why));
                }
                Transfer::Later => return None,
                Transfer::Ended => {
                    return Some(Event::NoLine(
                        "expected one line, with a newline at its end".into(),
                    ));
                }
            };
            let end = read.iter().position(|byte| *byte == b'\n');
            line.extend_from_slice(read.get(..end.unwrap_or(read.len())).unwrap_or_default());
            if line.len() > MAX_LINE {
                let why = format!("a line has at most {MAX_LINE} bytes before its newline");
                return Some(Event::NoLine(why));
            }
            if end.is_some() {
                return Some(Event::Line(std::mem::take(line)));
            }
        }
    }

    fn write(&mut self) {
        while !self.output.is_empty() {
            match self.client.write(&self.output) {
                Transfer::Done(written) => _ = self.output.drain(..written.min(self.output.len())),
                Transfer::Later => return,
                Transfer::Ended => {
                    self.output.clear();
                    self.stage = Stage::Ended;
                }
            }
        }
    }

    /// Throws away what the client still sends.
    fn drain(&mut self) {
        /// More than a client has sent by mistake, and little to read at a time.
        const MOST_READS: usize = 256;
        let mut chunk = [0; 4096];
        for _ in 0..MOST_READS {
            match self.client.read(&mut chunk) {
                Transfer::Done(_) => {}
                Transfer::Later => return,
                Transfer::Ended => return self.stage = Stage::Ended,
            }
        }
        self.stage = Stage::Ended;
    }
}
