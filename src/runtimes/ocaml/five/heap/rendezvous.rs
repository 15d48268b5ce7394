//! The safe point: the beginning of a minor collection, at which all domains have stopped.
//!
//! Each of them calls `caml_minor_gc_begin_hook` once. The first to arrive decides whether a
//! snapshot is taken in this collection. If so, all wait, the last one carries it out, and
//! they go on.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::responses::{self, Permit};
use super::{Heap, domains, roots, watcher};
use crate::runtimes::ocaml::five::domain::{self, Domain};
use crate::runtimes::ocaml::hook_variable::HookBefore;
use crate::safe_point::Needs;
use crate::sys::futex::EventCount;
use crate::{control, safe_point};

static BEFORE: HookBefore = HookBefore::none();

/// How many domains have arrived in this collection, and whether they wait.
static ARRIVED: AtomicU64 = AtomicU64::new(0);
/// A snapshot is taken in this collection.
const WAITING: u64 = 1 << 63;
/// How many snapshots were carried out.
static DONE: AtomicU64 = AtomicU64::new(0);
/// Notified when `DONE` changes.
static CHANGED: EventCount = EventCount::new();

/// Sets the hook. Before `main`.
pub(super) fn install(heap: &'static Heap) {
    // SAFETY: `_Atomic caml_timing_hook caml_minor_gc_begin_hook` is a variable of the
    // runtime (`runtime/misc.c`), which is never unloaded.
    unsafe { BEFORE.set(heap.variables.minor_gc_begin_hook, collection_begins) };
}

/// On each domain that takes part in a minor collection.
extern "C" fn collection_begins() {
    BEFORE.call();
    let Some(heap) = super::heap() else { return };
    control::may_start_in_child();
    let major_cycles = heap.variables.major_cycles as *const AtomicU64;
    // SAFETY: `uintnat caml_major_cycles_completed` is a variable of the runtime
    // (`runtime/major_gc.c`), which changes while all domains stand still.
    control::note_major_collections(unsafe { &*major_cycles }.load(Ordering::Relaxed));
    let participants = u64::try_from((heap.variables.participants)()).unwrap_or(1).max(1);
    let done = DONE.load(Ordering::Acquire);
    match arrive(participants) {
        Arrival::NotWanted => {}
        Arrival::Early(place) => {
            domains::record(place, heap.variables.current_state());
            wait_until_done(done);
        }
        Arrival::Last(place) => {
            domains::record(place, heap.variables.current_state());
            take(heap, place + 1);
            DONE.fetch_add(1, Ordering::Release);
            CHANGED.notify();
        }
    }
}

/// What an arriving domain has to do.
enum Arrival {
    NotWanted,
    /// Wait for the last. With the number of domains before.
    Early(usize),
    Last(usize),
}

fn arrive(participants: u64) -> Arrival {
    let mut seen = ARRIVED.load(Ordering::Acquire);
    loop {
        let is_first = seen == 0;
        let is_wanted = if is_first { safe_point::is_wanted() } else { seen & WAITING != 0 };
        let place = seen & !WAITING;
        let is_last = place + 1 >= participants;
        let now = (place + 1) | if is_wanted { WAITING } else { 0 };
        let after = if is_last { 0 } else { now };
        match ARRIVED.compare_exchange(seen, after, Ordering::AcqRel, Ordering::Acquire) {
            Err(other) => seen = other,
            Ok(_) if !is_wanted => return Arrival::NotWanted,
            Ok(_) if is_last => return Arrival::Last(place as usize),
            Ok(_) => return Arrival::Early(place as usize),
        }
    }
}

fn wait_until_done(before: u64) {
    const LONG: Duration = Duration::from_secs(1);
    loop {
        let ticket = CHANGED.ticket();
        if DONE.load(Ordering::Acquire) != before {
            return;
        }
        CHANGED.wait(ticket, LONG);
    }
}

/// Carries the snapshot out. All other domains wait.
fn take(heap: &Heap, participants: usize) {
    crate::tracer::guard(|| {
        domains::arrived(participants);
        if safe_point::wanted() == Some(Needs::Lock)
            && heap.variables.running_domains() != participants
        {
            // A domain is ending: it does not wait here any more, and may still call functions that
            // a session replaces (`domain_terminate`, `runtime/domain.c`, 5.3.0). It is waited for
            // in the next collection.
            return;
        }
        adopt_orphans(heap.variables.current_state());
        roots::collect_global(&heap.variables);
        let lock = heap.variables.pool_freelist as *mut libc::pthread_mutex_t;
        // A domain that is ending moves its pools while it holds this lock.
        // SAFETY: `pool_freelist` begins with a `caml_plat_mutex`, which is a
        // `pthread_mutex_t` (`runtime/caml/platform.h`).
        unsafe { libc::pthread_mutex_lock(lock) };
        safe_point::at_safe_point();
        // SAFETY: locked above, by this thread.
        unsafe { libc::pthread_mutex_unlock(lock) };
    });
}

/// Has this domain take over the blocks that a trace tracks and whose domains have ended, so
/// that they are among those that the snapshot lists.
fn adopt_orphans(state: usize) {
    // SAFETY: the state of the domain that this thread runs, and all other domains wait. The
    // runtime calls `caml_minor_gc_begin_hook` outside of the profiler's functions
    // (`caml_stw_empty_minor_heap_no_major_slice`, `runtime/minor_gc.c`, 5.3.0), so no other
    // reference to the domain is in use.
    unsafe { domain::with(state, Domain::adopt_orphans) };
}

/// Asks for a minor collection once all domains respond, so that none stands still for long. On any
/// thread that does not run OCaml code, one at a time.
pub(super) fn poke(heap: &'static Heap) {
    let variables = &heap.variables;
    // The first domain is there as long as the program.
    let state = variables.enter_domain(0);
    if state == 0 {
        return;
    }
    if variables.running_domains() > 1 {
        let have_responded = || responses::all_have_responded(variables);
        let permit = heap.responses.look(have_responded, || (variables.interrupt_all)());
        variables.enter_domain(0);
        match permit {
            Permit::None | Permit::Used => return,
            Permit::New => {}
        }
        if variables.is_covered() {
            // It would collect when it comes back, which may be after the request has ended.
            return watcher::start(heap);
        }
    } else {
        watcher::start(heap);
    }
    let request = state + variables.heap.requested_minor_gc * size_of::<usize>();
    // SAFETY: `requested_minor_gc` of a domain's state, which is never unmapped. The domain
    // itself sets it to 0 when it has collected.
    unsafe { &*(request as *const AtomicUsize) }.store(1, Ordering::Relaxed);
    (variables.interrupt_all)();
}
