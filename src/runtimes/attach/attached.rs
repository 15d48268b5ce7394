//! The runtime that this process traces, or may trace, and what its sessions have in common.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::patch::Jumps;
use super::refusal::Refusal;
use super::runtime::{Attachment, Runtime, SessionHooks};
use crate::probes::{Cell, ProbeKind, ProbeRegistry};
use crate::sys::clock::TickSource;
use crate::tracer::{self, Failure, Labels, Options, Session};

/// A runtime that is known and whose functions can be replaced. There is at most one in a
/// process, and it stays.
pub(crate) struct Attached {
    pub(crate) runtime: &'static dyn Runtime,
    /// The program keeps numbers of labels and addresses of probes over sessions.
    pub(crate) labels: Arc<Labels>,
    pub(crate) probes: Arc<ProbeRegistry>,
    /// Of each session, but for what it is asked for with.
    pub(super) options: Options,
    pub(super) hooks: Box<dyn SessionHooks>,
    jumps: Jumps,
    /// Whether the functions are replaced. Changes before the runtime has a heap, and at safe
    /// points.
    is_replaced: AtomicBool,
    /// The words that the program had allocated when the session began, and one more; 0 if that
    /// is not known.
    words_before: AtomicU64,
}

static ATTACHED: OnceLock<Attached> = OnceLock::new();

/// A runtime that is about to be recorded.
pub(super) struct Ready(Attached);

impl Ready {
    /// Records it, unless one was recorded before.
    pub(super) fn record(self) -> &'static Attached {
        self.0.hooks.watch();
        ATTACHED.get_or_init(|| self.0)
    }
}

/// The runtime that is traced, or that waits to be. Any thread.
pub(crate) fn attached() -> Option<&'static Attached> {
    ATTACHED.get()
}

impl Attached {
    /// Makes everything ready that may fail. Changes nothing.
    pub(super) fn prepare_record(
        runtime: &'static dyn Runtime,
        attachment: Attachment,
    ) -> Result<Ready, Refusal> {
        let Attachment { options, replacements, hooks } = attachment;
        let jumps = Jumps::prepare(&replacements)?;
        Ok(Ready(Attached {
            runtime,
            labels: Arc::default(),
            probes: Arc::default(),
            options,
            hooks,
            jumps,
            is_replaced: AtomicBool::new(false),
            words_before: AtomicU64::new(0),
        }))
    }

    /// Records that this runtime can be traced. Once in a process.
    pub(super) fn record(
        runtime: &'static dyn Runtime,
        attachment: Attachment,
    ) -> Result<&'static Attached, Refusal> {
        Attached::prepare_record(runtime, attachment).map(Ready::record)
    }

    /// The session that is live. Not inside hooks.
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        tracer::live_session()
    }

    /// The probe of this kind with this name; `None`: there are too many. Not inside hooks.
    pub(crate) fn open_probe(&self, kind: ProbeKind, name: &[u8]) -> Option<&'static Cell> {
        self.probes.open(kind, name, TickSource::detect())
    }

    /// Whether the functions are replaced, even if the session has ended by itself.
    pub(super) fn is_replaced(&self) -> bool {
        self.is_replaced.load(Ordering::Acquire)
    }

    /// Makes a session ready to begin.
    pub(super) fn prepare(&self, session: &Arc<Session>) -> Result<(), Failure> {
        self.hooks.prepare(session)
    }

    /// Begins the session that was prepared. Before the runtime has a heap, or at a safe point.
    pub(super) fn begin(&self) -> Result<(), Refusal> {
        self.jumps.write()?;
        self.is_replaced.store(true, Ordering::Release);
        self.hooks.begin();
        let words = self.hooks.allocated_words().map_or(0, |words| words + 1);
        self.words_before.store(words, Ordering::Relaxed);
        Ok(())
    }

    /// Ends it: the runtime is as it was. Returns the words that were allocated meanwhile, if they
    /// are known. At a safe point. If the functions cannot be made what they were, nothing has
    /// changed.
    pub(super) fn end(&self) -> Result<Option<u64>, Refusal> {
        self.jumps.remove()?;
        self.is_replaced.store(false, Ordering::Release);
        let before = self.words_before.load(Ordering::Relaxed).checked_sub(1);
        let words = self.hooks.allocated_words();
        self.hooks.end();
        Ok(words.zip(before).map(|(now, before)| now.saturating_sub(before)))
    }
}
