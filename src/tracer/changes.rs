//! What changes in a session that runs: the part that it writes, its rate, its budget.
//!
//! On the host's threads and those of commands, outside of hooks. Mutators take up another rate each
//! at its next hook that allows it.

use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};

use crate::sampling::Rate;
use crate::tracer::budget::{Budget, Controller};
use crate::tracer::failure::Failure;
use crate::tracer::series::series_id;
use crate::tracer::session::Session;
use crate::writer::{DumpOrder, Dumped};

impl Session {
    /// Begins the next part of the series, at this rate or at that of the part before, and
    /// returns the name of its trace. From then on mutators take up the rate, each at its next
    /// hook that allows it; what a block was sampled at is known of each. [`Failure::Order`]: the trace
    /// is no series.
    pub(crate) fn next_part(&self, rate: Option<Rate>) -> Result<PathBuf, Failure> {
        if !self.is_live() {
            return Err(Failure::Off);
        }
        if self.options.rotation.is_none() && self.recorder().is_none() {
            return Err(Failure::Order);
        }
        if rate.is_some() {
            self.controller().take();
        }
        let trace = self.writer.next_part(rate.map(Rate::get));
        let trace = trace.ok_or_else(|| self.failure().unwrap_or(Failure::Off))?;
        if let Some(rate) = rate {
            self.state.set_rate(rate);
        }
        Ok(PathBuf::from(trace))
    }

    /// Samples at this rate from now on, and ends a budget. A series goes on in its next part, and a
    /// trace of one file has a sidecar from then on. Returns the trace that is written. An error is
    /// for the user.
    pub(crate) fn change_rate(&self, rate: Rate) -> Result<PathBuf, String> {
        if self.options.rotation.is_some() {
            return self.next_part(Some(rate)).map_err(|_| "the trace has ended".into());
        }
        self.allow_many_rates()?;
        let mut controller = self.controller();
        *controller = None;
        self.state.set_rate(rate);
        Ok(self.file())
    }

    /// Keeps a budget of this share from now on; `None` stays at the rate of this moment. Returns that rate. An error
    /// is for the user.
    pub(crate) fn change_budget(&self, share: Option<f64>) -> Result<Rate, String> {
        self.allow_many_rates()?;
        let mut controller = self.controller();
        // The highest rate is that of the budget before, or of the one that the session began with.
        let before = controller.as_ref().map(Controller::budget).or(self.options.budget);
        let highest = before.map(|budget| budget.highest);
        *controller = share.map(|share| Controller::new(Budget::new(share, highest), self.rate()));
        Ok(self.rate())
    }

    /// The budget that is kept.
    pub(crate) fn budget(&self) -> Option<Budget> {
        self.controller().as_ref().map(Controller::budget)
    }

    fn allow_many_rates(&self) -> Result<(), String> {
        let ended = || "the trace has ended".to_owned();
        if !self.is_live() {
            return Err(ended());
        }
        self.writer.allow_many_rates(series_id()).ok_or_else(ended)??;
        self.state.allow_many_rates();
        Ok(())
    }

    fn controller(&self) -> MutexGuard<'_, Option<Controller>> {
        self.controller.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what a recorder has in memory to a directory that is made for it; `None` for the next
    /// one of its own. [`None`]: the session has ended.
    pub(crate) fn dump(&self, order: DumpOrder) -> Option<Result<Dumped, String>> {
        if self.is_live() { self.writer.dump(order) } else { None }
    }
}
