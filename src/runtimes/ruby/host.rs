//! The state behind the hooks of a session: one mutator, the gate, and what is known about the runtime.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use heaptap_trace::Source;

use super::gate::Gate;
use super::hook_list::HookList;
use super::layout::{OLD, SLOT_WORDS};
use super::proof::Proved;
use super::stack::SharedWalker;
use super::symbols::{EventHook, Runtime};
use super::values::Object;
use crate::probes::SliceKind;
use crate::runtimes::attach::OwnStack;
use crate::tracer::{
    self, AllocatedBlock, Failure, Fate, Generation, Mutator, Registers, Session, StackSource,
    Tracked,
};

/// The program's runtime, being traced.
pub(super) struct Host {
    pub(super) runtime: Runtime,
    mutator: Mutator,
    gate: Gate,
    hooks: HookList,
    /// The one that is ours.
    own_hook: EventHook,
    walker: Arc<SharedWalker>,
    /// Where hooks run when they have something to record. What a hook leaves on the program's own stack,
    /// the collector takes for references: a sampled object would live on because it was sampled.
    stack: OwnStack,
    /// Words until the next sample.
    left: isize,
    /// Collections of the whole heap.
    cycles: u64,
}

/// The host of the session that has begun; NULL if there is none. Used under the runtime's lock only.
static HOST: AtomicPtr<Host> = AtomicPtr::new(ptr::null_mut());

/// A hook is under way on our stack.
static BUSY: AtomicBool = AtomicBool::new(false);

impl Host {
    /// Makes everything ready for the first hook of a session.
    pub(super) fn new(
        runtime: &Runtime,
        proved: Proved,
        walker: &Arc<SharedWalker>,
        stack: OwnStack,
        own_hook: EventHook,
        session: &Arc<Session>,
    ) -> Result<Box<Host>, Failure> {
        let shared = Arc::clone(walker);
        // SAFETY: the mutator asks for it in a hook.
        let walk = move |codes: &mut [u64]| unsafe { shared.walk(codes) };
        let mut mutator = Mutator::start(session, StackSource::Own(Box::new(walk)))?;
        let left = mutator.countdown();
        // SAFETY: the layout is proved.
        let gate = unsafe { Gate::new(proved.objspace) };
        Ok(Box::new(Host {
            runtime: *runtime,
            mutator,
            gate,
            hooks: proved.hooks,
            own_hook,
            walker: Arc::clone(walker),
            stack,
            left,
            cycles: 0,
        }))
    }

    /// Counts an object that was allocated, and those before it that no hook has seen. Whether it is sampled.
    #[inline]
    pub(super) fn counts_to_sample(&mut self) -> bool {
        let words = self.gate.count().saturating_mul(SLOT_WORDS);
        self.left = self.left.saturating_sub_unsigned(words);
        if self.left >= 0 {
            self.set_gate();
        }
        self.left < 0
    }

    /// Records an object that was just allocated and is sampled.
    ///
    /// This is the one place that knows its class (`Object::class`), whose name is its kind.
    pub(super) fn record(&mut self, object: Object) {
        let address = object.value();
        let block = AllocatedBlock { source: Source::Minor, address, words: SLOT_WORDS, kind: 0 };
        // A lost sample is counted.
        let _ = self.mutator.hit_tracked(&mut self.left, block, Tracked::Young, Registers::NONE);
        self.set_gate();
    }

    fn set_gate(&mut self) {
        let (hooks, own) = (self.hooks, self.own_hook);
        self.gate.set(self.left, || hooks.has_others_than(own));
    }

    /// Whether this is a forked child in which no hook has run yet.
    #[inline]
    pub(super) fn has_forked(&self) -> bool {
        self.mutator.has_forked()
    }

    /// The collector has marked what is alive, and swept nothing yet.
    pub(super) fn marked(&mut self) {
        // SAFETY: in a hook, and no walk is under way.
        unsafe { self.walker.forget_addresses() };
        let (hooks, own) = (self.hooks, self.own_hook);
        self.gate.ask_again(|| hooks.has_others_than(own));
        let Runtime { is_marked, .. } = self.runtime;
        // A session that has ended by itself has no blocks.
        let _ = self.mutator.sweep(Generation::Major, |address| match is_marked(address) {
            0 => Fate::Dead,
            _ => Fate::Alive(address),
        });
        let _ = self.mutator.sweep(Generation::Young, |address| {
            if is_marked(address) == 0 {
                return Fate::Dead;
            }
            // SAFETY: a block that has a mark is alive.
            match unsafe { Object::new(address) } {
                Some(object) if object.has(OLD) => Fate::Promoted(address),
                _ => Fate::Alive(address),
            }
        });
        if !self.gate.is_minor() {
            self.cycles += 1;
            self.mutator.cycle_marked(self.cycles);
        }
    }

    /// A collection begins.
    pub(super) fn collection_begins(&self) {
        self.mutator.is_not_marking();
    }

    /// The program stands still for the collector. What it does is known too late to tell its kinds apart.
    pub(super) fn slice_begins(&mut self) {
        self.mutator.slice_begins(SliceKind::Major);
    }

    pub(super) fn slice_ends(&mut self) {
        self.mutator.slice_ends(SliceKind::Major);
    }

    /// The collector has moved objects, and the old places still say where to.
    pub(super) fn moved(&mut self) {
        let Runtime { location, .. } = self.runtime;
        for generation in [Generation::Young, Generation::Major] {
            let _ = self.mutator.sweep(generation, |address| Fate::Alive(location(address)));
        }
    }

    /// The last moments before a session begins.
    pub(super) fn begin(&mut self) {
        self.gate.count();
        self.set_gate();
    }

    /// Whether the session records when the collector works.
    pub(super) fn has_time_line(&self) -> bool {
        self.mutator.session().options.time_line
    }

    /// Ends its mutator. After [`remove`], or if it was never installed.
    pub(super) fn end(mut self: Box<Self>) {
        self.mutator.settle();
        self.mutator.end();
    }

    /// Ends the trace of a program that goes on in a way that cannot be followed.
    pub(super) fn give_up(&self) {
        self.mutator.session().turn_off(Failure::Off);
    }
}

/// Makes a host that of the session that begins. Under the runtime's lock.
pub(super) fn install(host: Box<Host>) {
    HOST.store(Box::into_raw(host), Ordering::Release);
}

/// The host of the session that ends; hooks find none any more. Under the runtime's lock.
pub(super) fn remove() -> Option<Box<Host>> {
    let host = HOST.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: from `install`, and taken out once.
    (!host.is_null()).then(|| unsafe { Box::from_raw(host) })
}

/// The host. `None` if no session has begun.
///
/// # Safety
/// The calling thread holds the runtime's lock, and no other reference to the host is in use until the
/// caller has returned, or has called [`on_own_stack`] and uses this one no more.
#[inline]
pub(super) unsafe fn host() -> Option<&'static mut Host> {
    // SAFETY: NULL, or from `install` and not removed; by the contract this is the only reference.
    unsafe { HOST.load(Ordering::Relaxed).as_mut() }
}

/// In a forked child, where nothing else can be done yet: the first object is the next that a hook sees.
/// Async-signal-safe.
pub(super) fn open_gate_after_fork() {
    // SAFETY: the only thread of the child is the one that has forked. Either that holds the lock and is
    // outside of hooks, or another one held it, whose hook will never go on.
    if let Some(host) = unsafe { host() } {
        host.gate.count();
        host.gate.open();
        BUSY.store(false, Ordering::Relaxed);
    }
}

/// Runs `work` on the host, on our own stack. A defect turns tracing off.
///
/// # Safety
/// The calling thread holds the runtime's lock, and the caller uses no reference to the host until this
/// returns. A call inside `work` does nothing.
pub(super) unsafe fn on_own_stack(work: impl FnOnce(&mut Host)) {
    // One thread at a time: no exchange is needed.
    if BUSY.load(Ordering::Relaxed) {
        return;
    }
    BUSY.store(true, Ordering::Relaxed);
    // SAFETY: this function requires the lock and that no reference is in use; `BUSY` keeps out a nested call.
    if let Some(host) = unsafe { host() } {
        let stack = host.stack;
        let mut call = ManuallyDrop::new(Call { work, host: &raw mut *host });
        // SAFETY: not busy before, so nothing else is on that stack.
        unsafe { stack.run(trampoline_of(&call), (&raw mut call).cast()) };
    }
    BUSY.store(false, Ordering::Relaxed);
}

/// Work to be run on the other stack.
struct Call<W> {
    work: W,
    /// The one host, to which nothing else refers until the work is done.
    host: *mut Host,
}

/// The function that runs such a call, once.
fn trampoline_of<W: FnOnce(&mut Host)>(_: &ManuallyDrop<Call<W>>) -> extern "C" fn(*mut c_void) {
    extern "C" fn run<W: FnOnce(&mut Host)>(call: *mut c_void) {
        // SAFETY: `on_own_stack` passes a pointer to a call of this type, which it keeps until this
        // function returns.
        let call = unsafe { &mut *call.cast::<ManuallyDrop<Call<W>>>() };
        // SAFETY: `on_own_stack` calls this once for each call.
        let Call { work, host } = unsafe { ManuallyDrop::take(call) };
        // SAFETY: `on_own_stack` made it from a reference to the host, and does not use that before this
        // function returns.
        let host = unsafe { &mut *host };
        tracer::guard(|| {
            host.mutator.resume_after_fork(&mut host.left);
            work(host);
        });
    }
    run::<W>
}
