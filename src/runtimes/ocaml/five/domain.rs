//! The state behind the hooks of a session, for each domain.
//!
//! A domain's state is used by whoever holds that domain's lock: its running thread, or
//! the one that takes part in collections for it while all its threads are blocked.
//! Nobody uses another domain's.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::domain_table::DomainTable;
use super::layout::{HeapLayout, INTERRUPT, KnownRelease, StateLayout, set_word, word};
use super::symbols::Runtime;
use super::walkers::Walk;
use super::{counters, fiber_stacks};
use crate::probes::{Cell, SliceKind};
use crate::runtimes::attach::symbols::function_at;
use crate::runtimes::attach::thread_pointer::thread_pointer;
use crate::runtimes::ocaml::polls::below_polls;
use crate::runtimes::ocaml::tag_sizes::{self, TagSizes};
use crate::runtimes::ocaml::thread_state;
use crate::runtimes::ocaml::timing::Edge;
use crate::tracer::{self, Countdown, Failure, Mutator, PartSizes, Registers, Session, WORD, say};

/// A domain, being traced.
pub(super) struct Domain {
    /// `None` if there was no memory for it: the domain is not traced.
    pub(super) mutator: Option<Mutator>,
    /// The runtime's part, where `caml_state` points to, and its layout.
    state: usize,
    layout: &'static StateLayout,
    /// The layout of the runtime's heap, if it is known.
    pub(super) heap_layout: Option<&'static HeapLayout>,
    /// Words until the next sample outside the young heap.
    pub(super) left: isize,
    /// Nothing is sampled on the running thread.
    suspended: bool,
    /// The label of the running thread is not known yet.
    label_is_due: bool,
    /// What tagged values reach, and whether it is to be measured: a major cycle is over.
    pub(super) tag_sizes: Option<TagSizes>,
    pub(super) tags_due: bool,
    /// A minor collection was reported whose young blocks are not settled yet.
    pub(super) unsettled: bool,
}

/// The runtime in this program.
struct Known {
    runtime: Runtime,
    release: &'static KnownRelease,
}

static KNOWN: OnceLock<Known> = OnceLock::new();

/// The domains that are traced.
static DOMAINS: DomainTable<Domain> = DomainTable::new();

/// What each new domain of a session needs.
struct Traced {
    walk: Walk,
    session: Arc<Session>,
}

/// The session that is prepared or has begun; NULL if there is none.
static TRACED: AtomicPtr<Traced> = AtomicPtr::new(ptr::null_mut());

/// Mutators of domains that have ended, still to be taken down: that gives memory
/// back to the system, which takes time. In 5.3.0 a domain that is about to end must
/// not take long between leaving the others and handing over its heap, which is when
/// `caml_memprof_delete_domain` is called: if the others compact their heaps meanwhile,
/// their pointers into its heap are lost (ocaml/ocaml#13739).
static ENDED: Mutex<Vec<Mutator>> = Mutex::new(Vec::new());

/// Records what the runtime is. Once, before `main`.
pub(super) fn know(runtime: Runtime, release: &'static KnownRelease) {
    let _ = KNOWN.set(Known { runtime, release });
}

/// Makes everything ready for the domains of a session.
pub(super) fn prepare(session: &Arc<Session>) {
    let Some(Known { runtime, release }) = KNOWN.get() else { return };
    let walk = Walk::choose(runtime, &release.state);
    let traced = Box::new(Traced { walk, session: Arc::clone(session) });
    TRACED.store(Box::into_raw(traced), Ordering::Release);
}

/// Frees what [`prepare`] has made, and what domains have left. After the session has ended at a
/// safe point, or if it has not begun.
pub(super) fn release() {
    let traced = TRACED.swap(ptr::null_mut(), Ordering::AcqRel);
    if !traced.is_null() {
        // SAFETY: from `prepare`; no hook uses it any more.
        drop(unsafe { Box::from_raw(traced) });
    }
    take_down_ended(usize::MAX);
}

/// The runtime we are attached to.
#[inline]
pub(super) fn runtime() -> Option<&'static Runtime> {
    KNOWN.get().map(|known| &known.runtime)
}

/// The layout of its domains' states.
#[inline]
pub(super) fn layout() -> Option<&'static StateLayout> {
    KNOWN.get().map(|known| &known.release.state)
}

/// The running domain's state: `caml_state`.
#[inline]
pub(super) fn current_state() -> usize {
    let Some(runtime) = runtime() else { return 0 };
    let place = thread_pointer().wrapping_add(runtime.state_offset) as *const usize;
    // SAFETY: this thread's `caml_state`, a pointer.
    unsafe { place.read() }
}

/// The domain whose state this is.
///
/// # Safety
/// `state` is 0 or the state of a domain of the runtime, whose lock the calling thread
/// holds. No other reference to this domain is in use until the caller has returned.
#[inline]
pub(super) unsafe fn domain(state: usize) -> Option<&'static mut Domain> {
    if state == 0 {
        return None;
    }
    // SAFETY: NULL or from `create`; by the contract nobody else uses it now.
    unsafe { DOMAINS.find(state).as_mut() }
}

/// Runs `work` on the domain whose state this is. A defect turns tracing off.
///
/// # Safety
/// That of [`domain`]; `work` must not make another reference to this domain.
pub(super) unsafe fn with(state: usize, work: impl FnOnce(&mut Domain)) {
    // SAFETY: this function requires what `domain` does.
    let Some(domain) = (unsafe { domain(state) }) else { return };
    tracer::guard(|| {
        if let Some(mutator) = &mut domain.mutator {
            mutator.resume_after_fork(&mut domain.left);
        }
        work(domain);
    });
}

/// Begins to trace a domain, which has this state. It does not sample before its
/// trigger is first set. Without memory it is not traced.
pub(super) fn create(state: usize) {
    take_down_ended(usize::MAX);
    let Some(Known { release, .. }) = KNOWN.get() else { return };
    // SAFETY: NULL, or from `prepare`: it is released when no hook is under way.
    let Some(traced) = (unsafe { TRACED.load(Ordering::Acquire).as_ref() }) else { return };
    let source = traced.walk.stack_source(state);
    let mut mutator = Mutator::start(&traced.session.current(), source).ok();
    let left = mutator.as_mut().map_or(Countdown::NEVER, Mutator::countdown);
    let domain = Box::into_raw(Box::new(Domain {
        mutator,
        state,
        layout: &release.state,
        heap_layout: release.heap.as_ref(),
        left,
        suspended: false,
        label_is_due: true,
        tag_sizes: None,
        tags_due: false,
        unsettled: false,
    }));
    if DOMAINS.replace(state, domain).is_none() {
        // SAFETY: made above, and nobody knows it.
        drop(unsafe { Box::from_raw(domain) });
    }
}

/// The domain with this state, which is not traced any more.
///
/// # Safety
/// Nobody uses it now: its own thread calls this, or all domains wait.
pub(super) unsafe fn remove(state: usize) -> Option<Box<Domain>> {
    if DOMAINS.find(state).is_null() {
        return None;
    }
    let domain = DOMAINS.replace(state, ptr::null_mut())?;
    // SAFETY: NULL, or from `create` and taken out once.
    (!domain.is_null()).then(|| unsafe { Box::from_raw(domain) })
}

/// Takes down a domain that is over.
pub(super) fn destroy(domain: Box<Domain>) {
    let Domain { mutator, .. } = *domain;
    tracer::guard(|| {
        let Some(mut mutator) = mutator else { return };
        mutator.settle();
        mutator.leave_blocks_to_session();
        ENDED.lock().unwrap_or_else(PoisonError::into_inner).push(mutator);
    });
}

/// Takes down what is left of some domains that have ended.
pub(super) fn take_down_ended(most: usize) {
    let mut ended = ENDED.lock().unwrap_or_else(PoisonError::into_inner);
    let count = most.min(ended.len());
    let some: Vec<Mutator> = ended.drain(..count).collect();
    drop(ended);
    some.into_iter().for_each(Mutator::end);
}

/// Sets the label of the calling thread; returns the one before.
pub(super) fn set_label(label: u32) -> u32 {
    let before = thread_state::set_label(label);
    // SAFETY: OCaml code, or C code called from it, calls this, so the thread holds its
    // domain's lock, and no hook is running on it.
    unsafe { with(current_state(), Domain::take_label) };
    before
}

/// The collector begins or ends a slice of the running domain.
pub(super) fn report_slice(kind: SliceKind, edge: Edge) {
    // SAFETY: the runtime calls this for the domain whose lock this thread holds, outside of
    // other hooks.
    let Some(domain) = (unsafe { domain(current_state()) }) else { return };
    let Some(mutator) = &mut domain.mutator else { return };
    match edge {
        Edge::Begin => mutator.slice_begins(kind),
        Edge::End => mutator.slice_ends(kind),
    }
    if (kind, edge) == (SliceKind::Minor, Edge::End) {
        counters::after_minor_collection();
    }
}

/// Marks a block of the heap, young in any domain or not, with a tag.
pub(super) fn tag(probe: &Cell, block: usize, young: bool) -> Result<(), Failure> {
    let mut outcome = Err(Failure::Off);
    let work = |domain: &mut Domain| {
        if let Some(mutator) = &mut domain.mutator {
            outcome = mutator.tag(probe, block, young);
        }
    };
    // SAFETY: OCaml code, or C code called from it, calls this, so the thread holds its
    // domain's lock, and no hook is running on it.
    unsafe { with(current_state(), work) };
    outcome
}

impl Domain {
    #[inline]
    pub(super) fn word(&self, index: usize) -> usize {
        // SAFETY: the state of a domain that exists, and `prove` has shown the layout.
        unsafe { word(self.state, index) }
    }

    /// Whether a block that this domain has just allocated is in its young heap.
    pub(super) fn is_young(&self, block: usize) -> bool {
        block > self.word(self.layout.young_start) && block < self.word(self.layout.young_end)
    }

    /// Whether nothing is to be sampled.
    pub(super) fn is_suspended(&self) -> bool {
        self.suspended
    }

    /// Gives the label of the calling thread, which runs the domain, to the mutator.
    pub(super) fn take_label(&mut self) {
        self.label_is_due = false;
        if let Some(mutator) = &mut self.mutator {
            mutator.set_label(thread_state::get().label);
        }
    }

    /// The same before a sample is taken, if the domain was begun by another thread.
    pub(super) fn take_label_if_due(&mut self) {
        if self.label_is_due {
            self.take_label();
        }
    }

    /// The parts have gone below the trigger.
    pub(super) fn young_hit(&mut self, parts: impl PartSizes) {
        self.take_label_if_due();
        let pointer = self.word(self.layout.young_ptr);
        let hit = match &mut self.mutator {
            // A lost sample is counted.
            Some(mutator) => mutator.young_hit(pointer, parts, Registers::NONE).ok(),
            None => None,
        };
        match hit {
            Some(hit) => self.set_trigger(hit.limit),
            None => self.renew(),
        }
        self.reset_limit();
    }

    /// Draws the next sample in the young heap. The caller sees to the limit.
    pub(super) fn renew(&mut self) {
        let (pointer, start) =
            (self.word(self.layout.young_ptr), self.word(self.layout.young_start));
        let suspended = self.is_suspended();
        if start != 0
            && self.word(self.layout.young_end) - start
                != self.word(self.layout.minor_heap_wsz) * WORD
        {
            self.give_up("its young heap is not laid out as known");
        }
        let trigger = match &mut self.mutator {
            Some(mutator) if !suspended && start != 0 => mutator.renew(pointer, start),
            _ => start,
        };
        self.set_trigger(trigger);
    }

    /// The next sample in the young heap is below this.
    pub(super) fn set_trigger(&mut self, trigger: usize) {
        let trigger = below_polls(trigger, self.word(self.layout.young_start));
        // SAFETY: the state of this domain, in which this word is the profiler's.
        unsafe { set_word(self.state, self.layout.memprof_young_trigger, trigger) };
        // With a mutator whose session is over, the next hit outside the young heap
        // does that.
        if self.mutator.is_none() {
            self.left = Countdown::NEVER;
        }
    }

    /// Makes the limit follow the trigger, as `caml_reset_young_limit`
    /// (`runtime/domain.c`) does, but leaves an interrupt where it is: the
    /// code that handles it resets the limit too.
    pub(super) fn reset_limit(&self) {
        let limit =
            self.word(self.layout.young_trigger).max(self.word(self.layout.memprof_young_trigger));
        let place = (self.state as *mut usize).wrapping_add(self.layout.young_limit);
        // SAFETY: the runtime declares `young_limit` atomic (`domain_state.tbl`).
        let place = unsafe { AtomicUsize::from_ptr(place) };
        let mut seen = place.load(Ordering::Relaxed);
        while seen != INTERRUPT {
            match place.compare_exchange_weak(seen, limit, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// The calling thread runs now, or is suspended, or is not any more.
    pub(super) fn enter(&mut self) {
        self.take_label();
        self.suspended = thread_state::get().suspended;
        self.renew();
        self.reset_limit();
    }

    /// Before the session ends, while all domains wait: what it has added to sums over domains.
    pub(super) fn withdraw(&mut self) {
        if let Some(mutator) = &self.mutator {
            tag_sizes::withdraw(&mut self.tag_sizes, mutator);
        }
        // SAFETY: the state of this domain.
        unsafe { fiber_stacks::withdraw(self.state, self.heap_layout) };
    }

    /// Whether it is about to end and takes no part in collections any more.
    pub(super) fn is_terminating(&self) -> bool {
        let Some(runtime) = runtime() else { return false };
        // SAFETY: `int caml_domain_terminating (caml_domain_state *)`,
        // `runtime/domain.c`: reads a flag.
        let terminating: extern "C" fn(usize) -> libc::c_int =
            unsafe { function_at(runtime.domain_terminating) };
        terminating(self.state) != 0
    }

    /// Takes over what ended domains have left. All domains stand still.
    pub(super) fn adopt_orphans(&mut self) {
        if !self.is_terminating()
            && let Some(mutator) = &mut self.mutator
        {
            mutator.adopt_orphans();
        }
    }

    /// The runtime does not behave as known: ends tracing.
    pub(super) fn give_up(&mut self, why: &str) {
        if let Some(mutator) = self.mutator.take() {
            if mutator.session().turn_off(Failure::Off) {
                say(format_args!("tracing ends here: {why}"));
            }
            mutator.end();
        }
    }
}
