//! Sessions that are started and stopped by commands: what a runtime offers for that.

use std::sync::Arc;
use std::time::Duration;

use crate::safe_point::Cancellation;
use crate::tracer::{Rate, RecorderLimits, Session};

/// How long a command waits for a safe point.
pub(crate) struct Wait {
    pub(crate) patience: Duration,
    pub(crate) cancellation: Cancellation,
}

impl Wait {
    /// The longest wait unless another is asked for.
    const PATIENCE: Duration = Duration::from_secs(10);

    pub(super) fn new(patience: Option<Duration>, cancellation: Cancellation) -> Wait {
        Wait { patience: patience.unwrap_or(Self::PATIENCE), cancellation }
    }
}

/// A session that is to be started.
pub(crate) struct StartOrder {
    /// The file's name, before `%p`, `%e` and `%t` are replaced.
    pub(crate) file: Vec<u8>,
    /// `None`: that of the settings.
    pub(crate) rate: Option<Rate>,
    /// What it may cost, by the program's processor time; the rate is then the highest. `None`: as in the
    /// settings.
    pub(crate) budget: Option<f64>,
    /// When it goes on in another file, and how many are kept. `None`: as the settings say.
    pub(crate) rotate: Option<String>,
    pub(crate) keep: Option<u64>,
    /// `None`: that of the settings.
    pub(crate) recorder: Option<RecorderLimits>,
    /// Whether the collector's time line is recorded; if not, as in the settings.
    pub(crate) time_line: bool,
    pub(crate) wait: Wait,
}

/// A session that was stopped.
pub(crate) struct StoppedSession {
    pub(crate) session: Arc<Session>,
    /// The words that the program has allocated meanwhile, by the runtime's own counters.
    pub(crate) words: Option<u64>,
}

/// A runtime of which sessions can be started and stopped while it runs. On threads of ours; an
/// error says what to do.
pub(crate) trait Sessions: Sync {
    fn start(&self, order: &StartOrder) -> Result<Arc<Session>, String>;
    /// `only`: unless another session is live.
    fn stop(&self, only: Option<&Arc<Session>>, wait: &Wait) -> Result<StoppedSession, String>;
}
