//! Commands that take time, carried out one after the other on threads of their own.

use std::collections::VecDeque;
use std::time::Duration;

use super::process::{InProgress, Process, defect};
use crate::safe_point::Cancellation;
use crate::sys::thread::{self, JoinOutcome, Worker};

/// What a command answers: words, or why it failed.
pub(super) type Answer = Result<String, String>;

/// What is done on a thread of its own.
pub(super) type Work = Box<dyn FnOnce() -> Answer + Send>;

/// A command that takes time.
pub(super) struct Job {
    /// The number of the connection that waits for it.
    pub(super) client: u64,
    /// Cancelled when the client goes away.
    pub(super) cancellation: Cancellation,
    pub(super) work: Work,
}

/// Kinds of jobs. Those of one kind are done one after the other.
#[derive(Clone, Copy)]
pub(super) enum Queue {
    Snapshots,
    Flushes,
    /// Starts and stops.
    Sessions,
}

impl Queue {
    pub(super) const ALL: [Queue; 3] = [Queue::Snapshots, Queue::Flushes, Queue::Sessions];

    /// The name of its threads.
    fn thread(self) -> &'static str {
        match self {
            Queue::Snapshots => "heaptap-snap",
            Queue::Flushes => "heaptap-flush",
            Queue::Sessions => "heaptap-session",
        }
    }
}

/// A job that has ended.
pub(super) struct Ended {
    pub(super) client: u64,
    pub(super) answer: Answer,
    /// The program does not exit before this is dropped. `None` if it exits already.
    pub(super) in_progress: Option<InProgress<'static>>,
}

/// Jobs of one kind.
pub(super) struct JobQueue {
    process: &'static Process,
    queue: Queue,
    waiting: VecDeque<Job>,
    running: Option<Running>,
}

struct Running {
    client: u64,
    cancellation: Cancellation,
    worker: Worker<Answer>,
    in_progress: InProgress<'static>,
}

/// Jobs of one kind that may wait or run at a time.
pub(super) const MOST_JOBS: usize = 8;

impl JobQueue {
    pub(super) fn new(process: &'static Process, queue: Queue) -> JobQueue {
        JobQueue { process, queue, waiting: VecDeque::new(), running: None }
    }

    /// False if there are too many.
    pub(super) fn add(&mut self, job: Job) -> bool {
        let has_room = self.waiting.len() + usize::from(self.running.is_some()) < MOST_JOBS;
        if has_room {
            self.waiting.push_back(job);
        }
        has_room
    }

    pub(super) fn is_busy(&self) -> bool {
        self.running.is_some() || !self.waiting.is_empty()
    }

    /// Nobody waits for this client's job any more.
    pub(super) fn cancel(&mut self, client: u64) {
        self.waiting.retain(|job| job.client != client);
        if let Some(running) = self.running.as_ref().filter(|running| running.client == client) {
            running.cancellation.cancel();
        }
    }

    /// Starts the next job if none is running, and returns one that has ended.
    pub(super) fn step(&mut self) -> Option<Ended> {
        if let Some(running) = self.running.take() {
            let Running { client, cancellation, worker, in_progress } = running;
            let answer = match worker.join(Duration::ZERO) {
                JoinOutcome::Done(answer) => answer,
                JoinOutcome::Panicked(message) => Err(defect(&message)),
                JoinOutcome::Running(worker) => {
                    self.running = Some(Running { client, cancellation, worker, in_progress });
                    return None;
                }
            };
            return Some(Ended { client, answer, in_progress: Some(in_progress) });
        }
        let Job { client, cancellation, work } = self.waiting.pop_front()?;
        let failed = |reason: String| Ended { client, answer: Err(reason), in_progress: None };
        let Some(in_progress) = self.process.begin() else {
            return Some(failed("the program exits".into()));
        };
        match thread::start(self.queue.thread(), move |_| work()) {
            Ok(worker) => {
                self.running = Some(Running { client, cancellation, worker, in_progress });
                None
            }
            Err(error) => Some(failed(format!(
                "cannot start a thread: {error}; its memory or its number of threads may be limited"
            ))),
        }
    }
}
