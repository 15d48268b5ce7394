//! Serves all clients of the control socket, on the thread `heaptap-control`.
//!
//! One thread waits for the socket and for all clients. What takes time is done by other threads
//! (`jobs`), one for snapshots and one for flushes, so that `status` is answered at once. A client
//! that goes away cancels what it has asked for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use heaptap_control::Command;

use super::answer::{self, Plan};
use super::connection::{Connection, Event};
use super::jobs::{Ended, Job, JobQueue, MOST_JOBS, Queue};
use super::process::Process;
use crate::sys::listener::{Accepted, Client, Listener};
use crate::sys::poll::{self, Watched};
use crate::tracer::say;

/// Connections at a time: descriptors of the program. Clients that wait for a job keep their
/// places; there are fewer of them, so that others always find one.
const MOST_CLIENTS: usize = 32;
const _: () = assert!(MOST_CLIENTS > Queue::ALL.len() * MOST_JOBS);

/// A client keeps its place for this long, even if others wait for one.
const GRACE: Duration = Duration::from_millis(50);

/// Between two looks at jobs that are running.
const PACE: Duration = Duration::from_millis(5);

/// After an error such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Opens a socket again that the host has closed, for this user and process.
pub(super) type OpenAgain = fn(u32, u32) -> Option<&'static Listener>;

/// The socket and its clients.
pub(super) struct Server {
    process: &'static Process,
    /// This process's.
    user: u32,
    listener: &'static Listener,
    /// Opens the socket of a user's process again.
    open_again: OpenAgain,
    /// The oldest first.
    clients: Vec<Connection>,
    next_number: u64,
    /// In the order of [`Queue::ALL`].
    queues: [JobQueue; Queue::ALL.len()],
    /// No client is accepted before.
    accept_from: Option<Instant>,
}

impl Server {
    pub(super) fn new(
        process: &'static Process,
        listener: &'static Listener,
        user: u32,
        open_again: OpenAgain,
    ) -> Server {
        Server {
            process,
            user,
            listener,
            open_again,
            clients: Vec::new(),
            next_number: 0,
            queues: Queue::ALL.map(|queue| JobQueue::new(process, queue)),
            accept_from: None,
        }
    }

    /// Returns only if the socket is lost.
    pub(super) fn run(mut self) {
        while self.wait_and_serve() {}
        say(format_args!(
            "the program has closed the descriptor of its control socket, which cannot be opened \
             again; it takes no commands any more"
        ));
    }

    /// False if the socket is lost.
    fn wait_and_serve(&mut self) -> bool {
        let accepts = self.accept_from.is_none_or(|from| from <= Instant::now());
        let mut watched: Vec<Watched> = self.clients.iter().map(Connection::watched).collect();
        watched.extend(accepts.then(|| self.listener.watched()));
        if poll::wait(&mut watched, self.longest_wait(Instant::now())).is_err() {
            std::thread::sleep(PAUSE);
        }
        let now = Instant::now();
        for index in 0..self.clients.len() {
            let Some((client, watched)) = self.clients.get_mut(index).zip(watched.get(index))
            else {
                break;
            };
            if watched.is_ready() || now >= client.deadline() {
                let is_hung_up = watched.is_hung_up();
                self.serve(index, is_hung_up, now);
            }
        }
        let is_there = !accepts || self.accept_all(now);
        self.advance_jobs(now);
        self.drop_ended();
        is_there
    }

    fn longest_wait(&self, now: Instant) -> Option<Duration> {
        let is_busy = self.queues.iter().any(JobQueue::is_busy);
        let deadlines = self.clients.iter().map(Connection::deadline).chain(self.accept_from);
        let next = deadlines.min().map(|next| next.saturating_duration_since(now));
        let pace = is_busy.then_some(PACE);
        next.into_iter().chain(pace).min()
    }

    /// Does what a client is ready for. A defect here costs one client its answer.
    fn serve(&mut self, index: usize, is_hung_up: bool, now: Instant) {
        let served = catch_unwind(AssertUnwindSafe(|| {
            let Some(client) = self.clients.get_mut(index) else { return };
            match client.step(is_hung_up, now) {
                Some(Event::Line(line)) => self.command(index, &line, now),
                Some(Event::NoLine(why)) => client.answer(Err(why), None, now),
                None => {}
            }
        }));
        if let (Err(_), Some(client)) = (served, self.clients.get_mut(index)) {
            client.abandon();
        }
    }

    fn command(&mut self, index: usize, line: &[u8], now: Instant) {
        let process = self.process;
        let Some(client) = self.clients.get_mut(index) else { return };
        let plan = match Command::parse(line) {
            Ok(command) => answer::plan(process, command),
            Err(reason) => return client.answer(Err(reason), None, now),
        };
        let (queue, cancellation, work) = match plan {
            Plan::Now(answer) => {
                let in_progress = process.begin();
                let exits = || Err("the program exits".to_owned());
                let answer = in_progress.as_ref().map_or_else(exits, |_| answer(process));
                return client.answer(answer, in_progress, now);
            }
            Plan::Job(queue, cancellation, work) => (queue, cancellation, work),
        };
        let job = Job { client: client.number, cancellation, work };
        if self.queues[queue as usize].add(job) {
            client.wait(now);
        } else {
            let busy = format!("{MOST_JOBS} clients wait for the same already; try again later");
            client.answer(Err(busy), None, now);
        }
    }

    fn advance_jobs(&mut self, now: Instant) {
        for jobs in &mut self.queues {
            // Twice: one ends, and the next begins.
            for _ in 0..2 {
                let Some(Ended { client, answer, in_progress }) = jobs.step() else { continue };
                let client = self.clients.iter_mut().find(|waiting| waiting.number == client);
                if let Some(client) = client {
                    client.answer(answer, in_progress, now);
                }
            }
        }
    }

    /// What a client has asked for is cancelled when it has gone.
    fn drop_ended(&mut self) {
        let queues = &mut self.queues;
        self.clients.retain(|client| {
            if client.has_ended() {
                queues.iter_mut().for_each(|jobs| jobs.cancel(client.number));
            }
            !client.has_ended()
        });
    }

    /// Accepts all clients that have connected. False if the socket is lost.
    fn accept_all(&mut self, now: Instant) -> bool {
        self.accept_from = None;
        loop {
            if self.clients.len() >= MOST_CLIENTS && !self.make_room(now) {
                self.accept_from = Some(now + GRACE);
                return true;
            }
            match self.listener.accept() {
                Ok(Accepted::Client(client)) => self.greet(client, now),
                Ok(Accepted::None) => return true,
                Ok(Accepted::Lost) => match (self.open_again)(self.user, self.process.pid) {
                    Some(listener) => self.listener = listener,
                    None => return false,
                },
                Err(_) => {
                    self.accept_from = Some(now + PAUSE);
                    return true;
                }
            }
        }
    }

    /// Drops the oldest client that does not wait for a job. False if it is too young.
    fn make_room(&mut self, now: Instant) -> bool {
        self.drop_ended();
        if self.clients.len() < MOST_CLIENTS {
            return true;
        }
        let is_old = |client: &Connection| !client.is_waiting() && client.age(now) >= GRACE;
        let Some(oldest) = self.clients.iter().position(is_old) else { return false };
        let mut client = self.clients.remove(oldest);
        client.answer(Err("too many clients are connected; try again".into()), None, now);
        true
    }

    fn greet(&mut self, client: Client, now: Instant) {
        let mut client = Connection::new(self.next_number, client, now);
        self.next_number += 1;
        let user = self.user;
        match client.user() {
            Some(peer) if answer::may_command(peer, user) => {}
            Some(_) => client.answer(
                Err(format!(
                    "the process belongs to the user {user}; only that user and root may ask"
                )),
                None,
                now,
            ),
            None => return,
        }
        self.clients.push(client);
        // Its line is often there already.
        self.serve(self.clients.len() - 1, false, now);
    }
}
