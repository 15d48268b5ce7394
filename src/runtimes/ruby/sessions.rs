//! How a session of Ruby begins and ends: once the heap is there, before the program runs.

use std::ptr;
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::host::{self, Host};
use super::proof::{self, Proved};
use super::stack::{SharedWalker, Walker};
use super::symbols::Runtime;
use super::{hooks, layout};
use crate::runtimes::attach::{Attachment, OwnStack, Refusal, SessionHooks};
use crate::sys::process_memory::read_word;
use crate::tracer::{Failure, Options, Rate, Session};

/// Proves that the runtime is as known, and returns how to trace it. Once the heap is there.
pub(super) fn attachment() -> Result<Attachment, Refusal> {
    const NO_MEMORY: Refusal = Refusal::Layout("there is no memory for names and stacks");
    let runtime = Runtime::find()?;
    let proved = proof::prove(&runtime)?;
    let walker = Walker::new(&runtime).ok_or(NO_MEMORY)?;
    let reader = walker.reader();
    let stack = OwnStack::new().ok_or(NO_MEMORY)?;
    let options = Options {
        one_mutator: true,
        runtime_params: b"CRuby 3.1.2".to_vec(),
        locate: Some(Arc::new(move |code, list| reader.locate(code, list))),
        ..Options::new(Vec::new(), Rate::DEFAULT)
    };
    let aside = AtomicPtr::new(ptr::null_mut());
    let sessions =
        RubySessions { runtime, proved, walker: SharedWalker::new(walker), stack, aside };
    Ok(Attachment { options, replacements: Vec::new(), hooks: Box::new(sessions) })
}

/// What sessions need of the runtime in this program.
struct RubySessions {
    runtime: Runtime,
    proved: Proved,
    walker: Arc<SharedWalker>,
    /// Where hooks run.
    stack: OwnStack,
    /// The host of the session that was prepared or has ended; NULL if there is none.
    aside: AtomicPtr<Host>,
}

impl RubySessions {
    fn put_aside(&self, host: Box<Host>) {
        self.aside.store(Box::into_raw(host), Ordering::Release);
    }

    fn take(&self) -> Option<Box<Host>> {
        let host = self.aside.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: from `put_aside`, and taken once.
        (!host.is_null()).then(|| unsafe { Box::from_raw(host) })
    }
}

impl SessionHooks for RubySessions {
    fn refusal(&self) -> Option<Refusal> {
        None
    }

    fn prepare(&self, session: &Arc<Session>) -> Result<(), Failure> {
        let RubySessions { runtime, proved, walker, stack, .. } = self;
        self.put_aside(Host::new(runtime, *proved, walker, *stack, hooks::on_event, session)?);
        Ok(())
    }

    fn begin(&self) {
        let Some(mut host) = self.take() else { return };
        open_gate_in_children();
        hooks::add(&self.runtime, host.has_time_line());
        host.begin();
        host::install(host);
    }

    fn end(&self) {
        hooks::remove(&self.runtime);
        if let Some(host) = host::remove() {
            self.put_aside(host);
        }
    }

    fn release(&self) {
        if let Some(host) = self.take() {
            host.end();
        }
    }

    fn allocated_words(&self) -> Option<u64> {
        let objects = read_word(self.proved.objspace + layout::TOTAL)?;
        Some((objects * layout::SLOT_WORDS) as u64)
    }
}

/// Has forked children open the gate, so that their first object is the next that a hook sees.
fn open_gate_in_children() {
    extern "C" fn in_child() {
        host::open_gate_after_fork();
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: a function of this library, which is never unloaded once the session has registered
        // handlers of its own.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
