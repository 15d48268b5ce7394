//! The state behind the hooks: one mutator, and what is known about the runtime.
//!
//! Everything here is used under the runtime's master lock, unless stated otherwise.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
    /// That context; NULL while no thread runs OCaml.
    pub(super) context: *mut Context,
    /// The label of the first thread, whose context is the runtime's.
    first_label: u32,
    /// What tagged values reach.
    tag_sizes: Option<TagSizes>,
    /// `caml_page_table_lookup`: what is at an address. Absent in runtimes that do not know.
    page_table_lookup: Option<extern "C" fn(usize) -> libc::c_int>,
    /// The shortcut from native code, if there is one.
    pub(super) gc_entry: Option<GcEntry>,
}

/// A thread's context: ours, but for that of the first thread, which is the
/// runtime's and begins with the same number (`caml_memprof_th_ctx`,
/// `runtime/memprof.c`).
#[repr(C)]
pub(super) struct Context {
    /// Nothing is sampled.
    suspended: libc::c_int,
    /// What the thread is doing, as a label; 0 for none. Not in the first thread's.
    label: u32,
}

/// Holds the one host, once there is one.
struct Hold(UnsafeCell<Option<Host>>);

// SAFETY: used under the runtime's master lock only, by one thread at a time.
unsafe impl Sync for Hold {}

static HOST: Hold = Hold(UnsafeCell::new(None));

/// A hook is under way on our stack.
static BUSY: AtomicBool = AtomicBool::new(false);

/// `caml_failwith`, which the hooks that raise need.
pub(super) static FAILWITH: AtomicUsize = AtomicUsize::new(0);

/// `caml_memprof_main_ctx`, which is never freed.
pub(super) static MAIN_CONTEXT: AtomicUsize = AtomicUsize::new(0);

/// Prepares everything for the first hook. Before `main`.
pub(super) fn start(
    runtime: &Runtime,
    proved: Proved,
    gc_entry: Option<GcEntry>,
    session: &Arc<Session>,
) -> Result<(), Failure> {
    let mut mutator = Mutator::start(session, walkers::stack_source(runtime, proved))?;
    let left = mutator.countdown();
    let host = Host {
        mutator,
        stack: OwnStack::new().ok_or(Failure::Memory)?,
        state: State::of(runtime, proved),
        trigger: runtime.young_trigger as *mut usize,
        // SAFETY: `void caml_update_young_limit (void)`, `runtime/signals.c`.
        update_young_limit: unsafe { function_at(runtime.update_young_limit) },
        // SAFETY: `void caml_invert_root (value, value *)`, `runtime/compact.c`.
        invert_root: unsafe { function_at(runtime.invert_root) },
        left,
        suspended: false,
        context: runtime.main_context as *mut Context,
        first_label: 0,
        tag_sizes: None,
        // SAFETY: `int caml_page_table_lookup (void *)`, `runtime/memory.c`.
        page_table_lookup: lookup(c"caml_page_table_lookup").map(|at| unsafe { function_at(at) }),
        gc_entry,
    };
    FAILWITH.store(runtime.failwith, Ordering::Relaxed);
    MAIN_CONTEXT.store(runtime.main_context, Ordering::Relaxed);
    // SAFETY: before the first hook, and called once.
    unsafe { *HOST.0.get() = Some(host) };
    Ok(())
}

/// The host. `None` only before it was made.
///
/// # Safety
/// The calling thread holds the runtime's master lock, and no other reference to the
/// host is in use until the caller has returned, or has called [`on_own_stack`] and
/// uses this one no more.
#[inline]
pub(super) unsafe fn host() -> Option<&'static mut Host> {
    // SAFETY: by the contract this is the only reference.
    let hold = unsafe { &mut *HOST.0.get() };
    hold.as_mut()
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
    let mut before = 0;
    let work = |host: &mut Host| {
        // SAFETY: NULL, or points into the host or a context that is not deleted.
        if let Some(place) = unsafe { host.label_place().as_mut() } {
            before = std::mem::replace(place, label);
            host.take_label();
        }
    };
    // SAFETY: OCaml code, or C code called from it, calls this, so the thread holds the
    // master lock; no hook is running on it.
    unsafe { on_own_stack(work) };
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

    /// Where the running thread's label is.
    fn label_place(&mut self) -> *mut u32 {
        if self.context as usize == MAIN_CONTEXT.load(Ordering::Relaxed) {
            return &raw mut self.first_label;
        }
        // SAFETY: NULL, or from `caml_memprof_new_th_ctx` and not deleted.
        unsafe { self.context.as_mut() }
            .map_or(std::ptr::null_mut(), |context| &raw mut context.label)
    }

    /// Gives the running thread's label to the mutator.
    pub(super) fn take_label(&mut self) {
        let place = self.label_place();
        // SAFETY: NULL, or points into the host or a context that is not deleted.
        let label = unsafe { place.as_ref() }.copied().unwrap_or(0);
        self.mutator.set_label(label);
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
