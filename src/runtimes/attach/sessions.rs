//! Sessions of a running program, started and stopped by commands.
//!
//! On a thread of ours. The runtime's functions are replaced and put back at its safe points, and
//! everything that takes time is done before or after.

use std::sync::{Arc, Mutex, PoisonError};

use super::attached::Attached;
use super::limits;
use super::refusal::Refusal;
use crate::control::{Sessions, StartOrder, StoppedSession, Wait};
use crate::safe_point::{self, Needs, Task, Turn};
use crate::tracer::{self, Options, RotationLimits, Session};

impl Sessions for Attached {
    fn start(&self, order: &StartOrder) -> Result<Arc<Session>, String> {
        let turn = turn(&order.wait)?;
        if let Some(session) = self.session() {
            let file = session.file();
            return Err(format!(
                "the program is traced already, into {}: stop that trace first",
                file.display()
            ));
        }
        if self.is_replaced() {
            // The last session has ended by itself, as when the disk was full.
            self.take_back(&turn, &order.wait)?;
        }
        if let Some(tight) = limits::too_tight() {
            return Err(tight.to_string());
        }
        let options = self.options_of(order)?;
        let (labels, probes) = (Arc::clone(&self.labels), Arc::clone(&self.probes));
        let session = tracer::start_sharing(options, labels, probes)
            .map_err(tracer::StartError::into_message)?;
        let begun = self.begin_prepared(&turn, &session, &order.wait);
        if let Err(why) = begun {
            self.hooks.release();
            abandon(&session);
            return Err(why);
        }
        Ok(session)
    }

    fn stop(&self, only: Option<&Arc<Session>>, wait: &Wait) -> Result<StoppedSession, String> {
        let turn = turn(wait)?;
        let session = self.session();
        if let Some((only, live)) = only.zip(session.as_ref())
            && !Arc::ptr_eq(only, live)
        {
            return Err("another trace has begun since".into());
        }
        if session.is_none() && !self.is_replaced() {
            return Err("the program is not traced".into());
        }
        let words = self.take_back(&turn, wait)?;
        let session = session.ok_or("the trace had ended before; the program is as it was")?;
        // If the end cannot be written, the statistics say what is there.
        let _ = session.stop();
        tracer::forget(&session);
        Ok(StoppedSession { session, words })
    }
}

impl Attached {
    /// The settings, with what is asked for.
    fn options_of(&self, order: &StartOrder) -> Result<Options, String> {
        let mut options = Options { file: order.file.clone(), ..self.options.clone() };
        options.time_line |= order.time_line;
        let rotate = order.rotate.as_deref();
        options.rotation = RotationLimits::asked_for(rotate, order.keep, options.rotation)?;
        if order.recorder.is_some() {
            if rotate.is_some() {
                return Err("recorder=TIME keeps the trace in memory: leave rotate=WHEN out".into());
            }
            (options.recorder, options.rotation) = (order.recorder, None);
        }
        match (order.budget, options.budget, order.rate) {
            (Some(share), _, highest) => options.set_budget(share, highest),
            (None, Some(budget), Some(rate)) => options.set_budget(budget.share, Some(rate)),
            (None, None, Some(rate)) => options.rate = rate,
            (None, _, None) => {}
        }
        Ok(options)
    }

    fn begin_prepared(
        &self,
        turn: &Turn,
        session: &Arc<Session>,
        wait: &Wait,
    ) -> Result<(), String> {
        self.prepare(session).map_err(|failure| format!("not enough memory ({failure:?})"))?;
        self.at_safe_point(turn, wait, || match self.hooks.refusal() {
            Some(refusal) => Err(refusal),
            None => self.begin(),
        })
    }

    /// Makes the runtime what it was, and frees what the session has used. Returns the words that
    /// were allocated meanwhile.
    fn take_back(&self, turn: &Turn, wait: &Wait) -> Result<Option<u64>, String> {
        let words = self.at_safe_point(turn, wait, || self.end())?;
        self.hooks.release();
        Ok(words)
    }

    /// Does it where the runtime can bear it.
    fn at_safe_point<R: Send>(
        &self,
        turn: &Turn,
        wait: &Wait,
        work: impl Fn() -> Result<R, Refusal> + Sync,
    ) -> Result<R, String> {
        let task = SessionTask { work, outcome: Mutex::new(None) };
        safe_point::carry_out(turn, &task, wait.patience, &wait.cancellation)
            .map_err(|unreached| unreached.to_string())?;
        let outcome = task.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        let outcome = outcome.ok_or("a defect in heaptap, please report it")?;
        outcome.map_err(|refusal| format!("this {} program: {refusal}", self.runtime.name()))
    }
}

/// What is done at the safe point, and what comes of it.
struct SessionTask<R, W> {
    work: W,
    outcome: Mutex<Option<Result<R, Refusal>>>,
}

impl<R: Send, W: Fn() -> Result<R, Refusal> + Sync> Task for SessionTask<R, W> {
    fn carry_out(&self) {
        let outcome = (self.work)();
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    fn needs(&self) -> Needs {
        Needs::Lock
    }
}

/// The right to start or stop, once no snapshot is being taken.
fn turn(wait: &Wait) -> Result<Turn, String> {
    let turn = Turn::wait(wait.patience, &wait.cancellation);
    turn.ok_or_else(|| "a snapshot is being taken; try again when it is done".into())
}

/// Ends a session that has not begun, and removes its file.
fn abandon(session: &Arc<Session>) {
    let _ = session.stop();
    tracer::forget(session);
    let file = session.file();
    if file.is_file() {
        let _ = std::fs::remove_file(file);
    }
}
