//! How a session of OCaml 4 begins and ends.
//!
//! What the runtime keeps of its profiler is its own before, during and after a session: the
//! context of each thread, and which one is current. A program that takes no profile has nothing
//! else there. So the runtime is as it was once its functions are, and the limit of its young heap.
//!
//! A session begins and ends under the master lock: before `main`, at the end of a minor
//! collection, at a poll, where a thread enters a blocking section, or while all threads are
//! blocked.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::counters;
use super::gc_entry::GcEntry;
use super::host::{self, Host};
use super::profile_in_use::InUse;
use super::proof::Proved;
use super::state::State;
use super::symbols::Runtime;
use crate::runtimes::attach::{OwnStack, Refusal};
use crate::runtimes::ocaml::attachment::VersionHooks;
use crate::runtimes::ocaml::timing::Report;
use crate::runtimes::ocaml::{MajorVersion, thread_state};
use crate::tracer::{Failure, Session};

/// What sessions need of the runtime in this program.
pub(super) struct FourSessions {
    runtime: Runtime,
    proved: Proved,
    gc_entry: Option<GcEntry>,
    /// Where hooks run, in one session after the other.
    stack: OwnStack,
    in_use: Option<InUse>,
    /// The host of the session that was prepared or has ended; NULL if there is none.
    aside: AtomicPtr<Host>,
}

impl FourSessions {
    /// Before the runtime starts.
    pub(super) fn new(
        runtime: Runtime,
        proved: Proved,
        gc_entry: Option<GcEntry>,
    ) -> Result<FourSessions, Refusal> {
        thread_state::prepare();
        let stack = OwnStack::new().ok_or(Refusal::Layout("there is no memory for a stack"))?;
        let in_use = InUse::find(&runtime);
        let aside = AtomicPtr::new(ptr::null_mut());
        Ok(FourSessions { runtime, proved, gc_entry, stack, in_use, aside })
    }

    fn put_aside(&self, host: Box<Host>) {
        self.aside.store(Box::into_raw(host), Ordering::Release);
    }

    fn take(&self) -> Option<Box<Host>> {
        let host = self.aside.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: from `put_aside`, and taken once.
        (!host.is_null()).then(|| unsafe { Box::from_raw(host) })
    }

    fn state(&self) -> State {
        State::of(&self.runtime, self.proved)
    }
}

impl VersionHooks for FourSessions {
    const VERSION: MajorVersion = MajorVersion::Four;
    const REPORT_SLICE: Report = host::report_slice;

    fn is_in_use(&self) -> bool {
        self.in_use.as_ref().is_none_or(InUse::is_in_use)
    }

    fn prepare(&self, session: &Arc<Session>) -> Result<(), Failure> {
        let Self { runtime, proved, gc_entry, stack, .. } = self;
        self.put_aside(Host::new(runtime, *proved, gc_entry.clone(), *stack, session)?);
        Ok(())
    }

    fn begin(&self) {
        if let Some(host) = self.take() {
            host::install(host);
        }
    }

    fn end(&self) {
        if let Some(host) = host::remove() {
            self.put_aside(host);
        }
        if self.state().exists() {
            // SAFETY: the table declares it as `runtime/caml/memprof.h` does, and it is not
            // replaced any more. Without a profile it sets the trigger to the start of the young
            // heap, and computes the limit anew.
            let renew = unsafe { self.runtime.functions.caml_memprof_renew_minor_sample.get() };
            renew();
        }
    }

    fn release(&self) {
        if let Some(host) = self.take() {
            host.end();
        }
    }

    fn allocated_words(&self) -> Option<u64> {
        counters::allocated_words(self.state())
    }
}
