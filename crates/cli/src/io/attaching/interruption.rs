//! Ctrl-C, and the other signals that ask this program to end: they end the trace first.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit_status::Failure;

/// Whether such a signal has come. A second one ends this program.
pub(crate) struct Interruption(Arc<AtomicBool>);

impl Interruption {
    pub(crate) fn begin() -> Result<Interruption, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        let register = |signal| -> io::Result<()> {
            // First: it looks at the flag before the other sets it.
            flag::register_conditional_default(signal, Arc::clone(&flag))?;
            flag::register(signal, Arc::clone(&flag)).map(drop)
        };
        [SIGHUP, SIGINT, SIGTERM].into_iter().try_for_each(register).map_err(|error| {
            Failure::Trouble(format!("signals cannot be caught: {error}; nothing was done"))
        })?;
        Ok(Interruption(flag))
    }

    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }

    pub(crate) fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error once one has come. `lacks` says what has not happened then.
    pub(crate) fn check(&self, lacks: &str) -> Result<(), Failure> {
        let interrupted = || Failure::Trouble(format!("interrupted: {lacks}"));
        if self.has_come() { Err(interrupted()) } else { Ok(()) }
    }
}
