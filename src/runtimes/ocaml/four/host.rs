//! The state behind the hooks of a session: one mutator, and what is known about the runtime.
//!
//! Everything here is used under the runtime's master lock, unless stated otherwise.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use super::gc_entry::GcEntry;
use super::proof::Proved;
use super::state::State;
use super::symbols::Runtime;
use super::walkers;
use crate::probes::{Cell, SliceKind};
use crate::runtimes::attach::OwnStack;
use crate::runtimes::attach::symbols::{function_at, lookup};
use crate::runtimes::ocaml::polls::below_polls;
use crate::runtimes::ocaml::tag_sizes::{self, TagSizes};
use crate::runtimes::ocaml::thread_state;
use crate::runtimes::ocaml::timing::Edge;
use crate::tracer::{self, Failure, Mutator, PartSizes, Registers, Session};

/// The program's runtime, being traced.
pub(super) struct Host {
    pub(super) mutator: Mutator,
    /// Where hooks run. OCaml's code touches the stack 4 KiB ahead before it calls C
    /// (`runtime/amd64.S`) and turns a fault there into an exception that programs catch,
    /// but a fault inside C kills them. One stack is enough, since hooks run one at a
    /// time.
    stack: OwnStack,
    pub(super) state: State,
    /// `caml_memprof_young_trigger`
    trigger: *mut usize,
    pub(super) update_young_limit: extern "C" fn(),
    pub(super) invert_root: extern "C" fn(usize, *mut usize),
    /// Words until the next sample outside the young heap.
    pub(super) left: isize,
    /// Of the running thread: what its context says.
    pub(super) suspended: bool,
    /// The session began on a thread of ours: the label of the thread that runs is not known yet.
    label_is_due: bool,
    /// What tagged values reach.
    tag_sizes: Option<TagSizes>,
    /// `caml_page_table_lookup`: what is at an address. Absent in runtimes that do not know.
    page_table_lookup: Option<extern "C" fn(usize) -> libc::c_int>,
    /// `caml_gc_phase`: what the major collector does. Absent if the program exports no symbols.
    gc_phase: Option<usize>,
    /// The shortcut from native code, if there is one.
    pub(super) gc_entry: Option<GcEntry>,
}

/// The host of the session that has begun; NULL if there is none. Changes at safe points, and is
/// used under the runtime's master lock only, by one thread at a time.
static HOST: AtomicPtr<Host> = AtomicPtr::new(ptr::null_mut());

/// A hook is under way on our stack.
static BUSY: AtomicBool = AtomicBool::new(false);

/// `caml_failwith`, which the hooks that raise need.
pub(super) static FAILWITH: AtomicUsize = AtomicUsize::new(0);

impl Host {
    /// Makes everything ready for the first hook of a session.
    pub(super) fn new(
        runtime: &Runtime,
        proved: Proved,
        gc_entry: Option<GcEntry>,
        stack: OwnStack,
        session: &Arc<Session>,
    ) -> Result<Box<Host>, Failure> {
        let mut mutator = Mutator::start(session, walkers::stack_source(runtime, proved))?;
        let left = mutator.countdown();
        FAILWITH.store(runtime.failwith, Ordering::Relaxed);
        Ok(Box::new(Host {
            mutator,
            stack,
            state: State::of(runtime, proved),
            trigger: runtime.young_trigger as *mut usize,
            // SAFETY: `void caml_update_young_limit (void)`, `runtime/signals.c`.
            update_young_limit: unsafe { function_at(runtime.update_young_limit) },
            // SAFETY: `void caml_invert_root (value, value *)`, `runtime/compact.c`.
            invert_root: unsafe { function_at(runtime.invert_root) },
            left,
            suspended: false,
            label_is_due: true,
            tag_sizes: None,
            page_table_lookup: lookup(c"caml_page_table_lookup")
                // SAFETY: `int caml_page_table_lookup (void *)`, `runtime/memory.c`.
                .map(|at| unsafe { function_at(at) }),
            gc_phase: lookup(c"caml_gc_phase"),
            gc_entry,
        }))
    }
}

impl Host {
    /// What is dead was reported. The count of collections goes up at the end of each cycle.
    pub(super) fn cycle_marked(&self) {
        self.mutator.cycle_marked(self.state.word(self.state.layout.stat_major_collections) as u64);
    }

    /// Whether the cycle that is marked next has not begun: `Phase_sweep` or `Phase_idle`
    /// (`runtime/caml/major_gc.h`).
    fn is_sweeping_or_idle(&self) -> bool {
        const PHASES: std::ops::RangeInclusive<libc::c_int> = 2..=3;
        // SAFETY: `int caml_gc_phase`, `runtime/major_gc.c`, which only the thread with the
        // master lock changes: this one.
        self.gc_phase.is_some_and(|at| PHASES.contains(unsafe { &*(at as *const libc::c_int) }))
    }
}

/// Makes a host that of the session that begins, and draws its first sample. At a safe point.
pub(super) fn install(host: Box<Host>) {
    HOST.store(Box::into_raw(host), Ordering::Release);
    // SAFETY: at a safe point, where no hook is under way.
    if let Some(host) = unsafe { self::host() }
        && host.state.exists()
    {
        host.renew();
    }
}

/// The host of the session that ends; hooks find none any more. At a safe point.
pub(super) fn remove() -> Option<Box<Host>> {
    let host = HOST.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: from `install`, and taken out once.
    (!host.is_null()).then(|| unsafe { Box::from_raw(host) })
}

/// The host. `None` if no session has begun.
///
/// # Safety
/// The calling thread holds the runtime's master lock, and no other reference to the
/// host is in use until the caller has returned, or has called [`on_own_stack`] or the runtime and
/// uses this one no more.
#[inline]
pub(super) unsafe fn host() -> Option<&'static mut Host> {
    // SAFETY: NULL, or from `install` and not removed; by the contract this is the only reference.
    unsafe { HOST.load(Ordering::Relaxed).as_mut() }
}

/// Runs `work` on the host, on our own stack. A defect turns tracing off.
///
/// # Safety
/// The calling thread holds the runtime's master lock, and the caller uses no reference
/// to the host until this returns. A call inside `work` does nothing.
pub(super) unsafe fn on_own_stack(work: impl FnOnce(&mut Host)) {
    if BUSY.load(Ordering::Relaxed) {
        // Something we called, or a handler that interrupted us, allocates.
        return;
    }
    // One thread at a time, and a handler that runs between these two is done
    // before we go on: no exchange is needed.
    BUSY.store(true, Ordering::Relaxed);
    // SAFETY: this function requires the master lock and that no reference is in use;
    // `BUSY` keeps out a nested call.
    if let Some(host) = unsafe { host() } {
        let stack = host.stack;
        let mut call = ManuallyDrop::new(Call { work, host: &raw mut *host });
        // SAFETY: not busy before, so nothing else is on that stack.
        unsafe { stack.run(trampoline_of(&call), (&raw mut call).cast()) };
    }
    BUSY.store(false, Ordering::Relaxed);
}

/// Sets the label of the calling thread, which holds the master lock as all code of the
/// program does; returns the one before.
pub(super) fn set_label(label: u32) -> u32 {
    let before = thread_state::set_label(label);
    // SAFETY: OCaml code, or C code called from it, calls this, so the thread holds the
    // master lock; no hook is running on it.
    unsafe { on_own_stack(Host::take_label) };
    before
}

/// The collector begins or ends a slice. Under the master lock, as all of the runtime.
pub(super) fn report_slice(kind: SliceKind, edge: Edge) {
    // SAFETY: the collector calls this under the master lock, outside of other hooks.
    let Some(host) = (unsafe { host() }) else { return };
    match edge {
        Edge::Begin => host.mutator.slice_begins(kind),
        Edge::End => host.mutator.slice_ends(kind),
    }
    if host.is_sweeping_or_idle() {
        host.mutator.is_not_marking();
    }
}

/// Marks a block of the heap with a tag. The calling thread holds the master lock as all code of
/// the program does.
pub(super) fn tag(probe: &Cell, block: usize, young: bool) -> Result<(), Failure> {
    let mut outcome = Err(Failure::Order);
    let work = |host: &mut Host| outcome = host.mutator.tag(probe, block, young);
    // SAFETY: OCaml code, or C code called from it, calls this, so the thread holds the
    // master lock; no hook is running on it.
    unsafe { on_own_stack(work) };
    outcome
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
        // SAFETY: `on_own_stack` passes a pointer to a call of this type, which it keeps
        // until this function returns.
        let call = unsafe { &mut *call.cast::<ManuallyDrop<Call<W>>>() };
        // SAFETY: `on_own_stack` calls this once for each call.
        let Call { work, host } = unsafe { ManuallyDrop::take(call) };
        // SAFETY: `on_own_stack` made it from a reference to the host, and does not use
        // that before this function returns.
        let host = unsafe { &mut *host };
        tracer::guard(|| host.enter_and(work));
    }
    run::<W>
}

impl Host {
    fn enter_and(&mut self, work: impl FnOnce(&mut Host)) {
        self.mutator.resume_after_fork(&mut self.left);
        if self.label_is_due {
            self.take_label();
        }
        work(self);
    }

    /// Measures what tagged values reach.
    ///
    /// # Safety
    /// The program stands still, and the collector has found what is dead.
    pub(super) unsafe fn measure_tags(&mut self) {
        /// `In_heap` and `In_young` (`runtime/caml/address_class.h`).
        const IN_HEAP: libc::c_int = 1 | 2;
        let Some(lookup) = self.page_table_lookup else { return };
        let is_counted = |block: usize| lookup(block) & IN_HEAP != 0;
        // SAFETY: this function has the same requirements.
        unsafe { tag_sizes::measure(&mut self.tag_sizes, &self.mutator, is_counted) };
    }

    /// Ends its mutator. After [`remove`], or if it was never installed.
    pub(super) fn end(mut self: Box<Self>) {
        self.mutator.settle();
        self.mutator.end();
    }

    /// Gives the running thread's label to the mutator.
    pub(super) fn take_label(&mut self) {
        self.label_is_due = false;
        self.mutator.set_label(thread_state::get().label);
    }

    /// Whether the young pointer is below the trigger of samples, but not below that of
    /// collections.
    pub(super) fn is_sampled(&self) -> bool {
        let pointer = self.state.young_pointer();
        pointer >= self.state.word(self.state.layout.young_trigger) && pointer < self.trigger()
    }

    /// `caml_memprof_young_trigger`
    pub(super) fn trigger(&self) -> usize {
        // SAFETY: `caml_memprof_young_trigger`, a variable of the runtime.
        unsafe { self.trigger.read() }
    }

    /// The parts have gone below the trigger.
    pub(super) fn young_hit(&mut self, parts: impl PartSizes) {
        let pointer = self.state.young_pointer();
        match self.mutator.young_hit(pointer, parts, Registers::NONE) {
            // A lost sample is counted.
            Ok(hit) => self.set_trigger(hit.limit),
            Err(_) => self.renew(),
        }
    }

    /// Draws the next sample in the young heap.
    pub(super) fn renew(&mut self) {
        let start = self.state.young_start();
        let limit = if self.suspended {
            start
        } else {
            self.mutator.renew(self.state.young_pointer(), start)
        };
        self.set_trigger(limit);
    }

    /// The next sample in the young heap is below this.
    fn set_trigger(&mut self, trigger: usize) {
        let trigger = below_polls(trigger, self.state.young_start());
        // SAFETY: `caml_memprof_young_trigger`, a variable of the runtime that only the
        // profiler sets.
        unsafe { self.trigger.write(trigger) };
        (self.update_young_limit)();
    }
}
