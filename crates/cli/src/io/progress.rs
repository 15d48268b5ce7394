//! The progress bar: on standard error, if that is a terminal, and only when the
//! work takes longer than a second.

use std::cell::{Cell, OnceCell};
use std::io::{self, IsTerminal, stderr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::io::watch::Watch;

/// The time before the bar appears.
const PATIENCE: Duration = Duration::from_secs(1);

/// The progress of a reading.
pub(crate) struct Progress {
    /// When the bar is to appear, if ever.
    due: Option<Instant>,
    total: Option<u64>,
    /// The bytes read of all traces, if there are several.
    sum: Option<Cell<u64>>,
    bar: OnceCell<ProgressBar>,
    /// Sees the progress in place of a terminal.
    watch: Option<Arc<Watch>>,
}

impl Progress {
    /// For an input of `total` bytes, if that is known.
    pub(crate) fn new(total: Option<u64>) -> Self {
        let watch = Watch::current();
        if let (Some(watch), Some(total)) = (&watch, total) {
            watch.add_size(total);
        }
        let shown = watch.is_none() && stderr().is_terminal();
        let due = shown.then(|| Instant::now() + PATIENCE);
        Progress { due, total, sum: None, bar: OnceCell::new(), watch }
    }

    /// For several inputs, whose total size need not be known.
    pub(crate) fn of_several() -> Self {
        let mut progress = Progress::new(None);
        progress.sum = Some(Cell::new(0));
        progress
    }

    /// One that is never shown.
    pub(crate) fn silent() -> Self {
        Progress { due: None, total: None, sum: None, bar: OnceCell::new(), watch: None }
    }

    /// Removes the bar from the terminal, before anything else is printed.
    pub(crate) fn clear(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }

    /// Reading has reached this offset, `count` bytes after the last one.
    pub(crate) fn reached(&self, offset: u64, count: u64) {
        let offset = self.sum.as_ref().map_or(offset, |sum| {
            sum.set(sum.get() + count);
            sum.get()
        });
        if let Some(watch) = &self.watch {
            // Each of several traces is read twice.
            watch.reached(if self.sum.is_some() { offset / 2 } else { offset });
        }
        if self.due.is_some_and(|due| Instant::now() >= due) {
            self.bar.get_or_init(|| self.appear(offset)).set_position(offset);
        }
    }

    /// Fails if the reading was cancelled.
    pub(crate) fn check(&self) -> io::Result<()> {
        match &self.watch {
            Some(watch) if watch.is_cancelled() => {
                Err(io::Error::other("the reading was cancelled"))
            }
            _ => Ok(()),
        }
    }

    fn appear(&self, offset: u64) -> ProgressBar {
        let (bar, template) = match self.total {
            Some(total) => (
                ProgressBar::new(total),
                "{wide_bar} {binary_bytes} of {binary_total_bytes}, {eta} left",
            ),
            None => (
                ProgressBar::new_spinner(),
                "{spinner} {binary_bytes} read, {binary_bytes_per_sec}",
            ),
        };
        let bar = match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        // The jump to this offset would distort the speed.
        bar.set_position(offset);
        bar.reset_eta();
        bar
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
