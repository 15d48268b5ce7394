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
use std::sync::Arc;

use super::domain::{self, Domain};
use super::heap;
use super::layout::{KnownRelease, word};
use super::symbols::Runtime;
use crate::runtimes::attach::symbols::{function_at, lookup};
use crate::runtimes::ocaml::attachment::VersionHooks;
use crate::runtimes::ocaml::timing::Report;
use crate::runtimes::ocaml::{MajorVersion, thread_state};
use crate::tracer::{Failure, Session, WORD};

/// What sessions need of the runtime in this program.
pub(super) struct FiveSessions {
    runtime: Runtime,
    known: &'static KnownRelease,
    sum_of_ended: Option<Accumulate>,
}

/// `void caml_accum_orphan_alloc_stats (struct alloc_stats *)` (`runtime/gc_stats.c`, 5.3.0): adds four
/// words, of which the first are minor, promoted and major ones. Takes a lock of the runtime's for a
/// moment.
type Accumulate = extern "C" fn(*mut u64);

/// What the function is given, in case it writes more.
const ROOM: usize = 16;

impl FiveSessions {
    /// Before the runtime starts.
    pub(super) fn new(runtime: Runtime, known: &'static KnownRelease) -> FiveSessions {
        thread_state::prepare();
        domain::know(runtime, known);
        let sum_of_ended = lookup(c"caml_accum_orphan_alloc_stats");
        // SAFETY: the runtime's function of that name.
        let sum_of_ended = sum_of_ended.map(|at| unsafe { function_at(at) });
        FiveSessions { runtime, known, sum_of_ended }
    }

    /// The words that domains have allocated which have ended.
    fn words_of_ended(&self) -> Option<u64> {
        let accumulate = self.sum_of_ended?;
        let mut room = [0; ROOM];
        accumulate(room.as_mut_ptr());
        let [minor, promoted, major, _, rest @ ..] = room;
        let is_known = rest.iter().all(|&word| word == 0);
        (minor + major).checked_sub(promoted).filter(|_| is_known)
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

    /// Those of domains that have ended are in a sum of the runtime's.
    fn allocated_words(&self) -> Option<u64> {
        let mut words = self.words_of_ended();
        heap::for_each_waiting(|state| {
            // SAFETY: the state of a domain that waits.
            let own = unsafe { self.words_of(state) };
            words = words.zip(own).map(|(words, own)| words + own);
        });
        words
    }
}
