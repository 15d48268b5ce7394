//! How a session of OCaml 5 begins and ends.
//!
//! What the runtime keeps of its profiler is its own before, during and after a session: that of
//! each domain, and of each thread. A domain that takes no profile has nothing else there. So the
//! runtime is as it was once its functions are, and the limits of its young heaps.
//!
//! A session begins and ends before `main`, or at the beginning of a minor collection, at which all
//! domains wait (`heap/rendezvous.rs`). None may be ending then: it would run the profiler's
//! functions without being waited for.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::domain::{self, Domain};
use super::heap;
use super::layout::{KnownRelease, word};
use super::symbols::Runtime;
use crate::runtimes::ocaml::attachment::VersionHooks;
use crate::runtimes::ocaml::timing::Report;
use crate::runtimes::ocaml::{MajorVersion, thread_state};
use crate::tracer::{Failure, Session, WORD};

/// What sessions need of the runtime in this program.
pub(super) struct FiveSessions {
    runtime: Runtime,
    known: &'static KnownRelease,
    /// The domains whose words were counted when the session began.
    counted: Mutex<Vec<usize>>,
}

impl FiveSessions {
    /// Before the runtime starts.
    pub(super) fn new(runtime: Runtime, known: &'static KnownRelease) -> FiveSessions {
        thread_state::prepare();
        domain::know(runtime, known);
        FiveSessions { runtime, known, counted: Mutex::new(Vec::new()) }
    }

    fn counted(&self) -> MutexGuard<'_, Vec<usize>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The words that a domain has allocated, those in its young heap included.
    ///
    /// # Safety
    /// The state of a domain that waits.
    unsafe fn words_of(&self, state: usize) -> Option<u64> {
        let heap = self.known.heap.as_ref()?;
        // SAFETY: the state of a domain, and `prove` has shown the layout; a row with a heap has
        // the other words as its release has.
        let word = |index: usize| unsafe { word(state, index) } as u64;
        let layout = &self.known.state;
        let young = word(layout.young_end).checked_sub(word(layout.young_ptr))? / WORD as u64;
        let major = word(heap.stat_major_words) + word(heap.allocated_words);
        (word(heap.stat_minor_words) + young + major).checked_sub(word(heap.stat_promoted_words))
    }
}

impl VersionHooks for FiveSessions {
    const VERSION: MajorVersion = MajorVersion::Five;
    const REPORT_SLICE: Report = domain::report_slice;

    /// A profile, also one that was stopped and not discarded, is a root in each domain that takes
    /// part (`entries_finish_scan`, `runtime/memprof.c`, 5.3.0).
    fn is_in_use(&self) -> bool {
        extern "C" fn found(count: *mut c_void, _value: usize, _at: *mut usize) {
            // SAFETY: `is_in_use` passes the address of a number, and waits.
            unsafe { *count.cast::<usize>() += 1 };
        }
        const ALL: c_int = 0;
        // SAFETY: the table declares it as `runtime/caml/memprof.h` does, and it is not replaced.
        let scan = unsafe { self.runtime.functions.caml_memprof_scan_roots.get() };
        let mut count = 0usize;
        heap::for_each_waiting(|state| {
            scan(found, ALL, (&raw mut count).cast(), state, false);
        });
        count > 0
    }

    fn prepare(&self, session: &Arc<Session>) -> Result<(), Failure> {
        if session.options.time_line {
            super::fiber_stacks::watch(self.runtime.is_native);
        }
        domain::prepare(session);
        Ok(())
    }

    fn begin(&self) {
        self.counted().clear();
        heap::for_each_waiting(|state| {
            domain::create(state);
            let begin = |domain: &mut Domain| {
                domain.renew();
                domain.reset_limit();
            };
            // SAFETY: a domain that waits, outside of hooks.
            unsafe { domain::with(state, begin) };
        });
    }

    fn end(&self) {
        // SAFETY: the table declares it as `runtime/caml/memprof.h` does, and it is not replaced
        // any more. Without a profile it sets the trigger to the start of the young heap.
        let set_trigger = unsafe { self.runtime.functions.caml_memprof_set_trigger.get() };
        heap::for_each_waiting(|state| {
            // SAFETY: a domain that waits, outside of hooks.
            let Some(mut domain) = (unsafe { domain::remove(state) }) else { return };
            set_trigger(state);
            domain.reset_limit();
            domain.withdraw();
            domain::destroy(domain);
        });
    }

    fn release(&self) {
        domain::release();
    }

    /// `None` also if other domains run than when the session began: some may have ended.
    fn allocated_words(&self) -> Option<u64> {
        let (mut words, mut states) = (Some(0), Vec::new());
        heap::for_each_waiting(|state| {
            states.push(state);
            // SAFETY: the state of a domain that waits.
            let own = unsafe { self.words_of(state) };
            words = words.zip(own).map(|(words, own)| words + own);
        });
        states.sort_unstable();
        let mut counted = self.counted();
        let before = std::mem::replace(&mut *counted, states);
        if before.is_empty() || before == *counted { words } else { None }
    }
}
