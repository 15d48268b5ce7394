//! What the runtime's profiler is replaced by.
//!
//! Each function does what the one of the same name in `runtime/memprof.c` is
//! for, as far as the runtime's heap is concerned. Those that are called for
//! every allocation outside the young heap return at once if no sample falls on
//! it.
//!
//! Each runs with the lock of the domain it is about; several domains run theirs
//! at once. None allocates in the runtime's heap or calls OCaml. Those that raise
//! own nothing. They run on the stack of C, of which there is enough: OCaml's
//! code has others.

use std::ffi::{CStr, c_int, c_void};

use heaptap_trace::Source;

use super::domain::{self, Domain, Thread, current_state, runtime, with};
use super::layout::{
    COLOUR, FINAL_OLD_YOUNG, SOURCE_CUSTOM, SOURCE_MAPPED, SOURCE_NORMAL, UNMARKED, set_word, word,
};
use super::symbols::{FUNCTIONS, Runtime};
use crate::blocks::Fate;
use crate::runtimes::attach::patch::Replacement;
use crate::runtimes::ocaml::values::{UNIT, header, part_sizes, raise_failure};
use crate::stack::native::Registers;
use crate::tracer::{self, AllocatedBlock, Followed};

/// The runtime's functions and ours, in the order of [`FUNCTIONS`].
pub(super) fn replacements(runtime: &Runtime) -> [Replacement; FUNCTIONS.len()] {
    let ours: [*const (); FUNCTIONS.len()] = [
        sample_young as *const (),
        sample_block as *const (),
        set_trigger as *const (),
        update_suspended as *const (),
        scan_roots as *const (),
        after_minor_collection as *const (),
        after_major_collection as *const (),
        run_callbacks as *const (),
        new_domain as *const (),
        delete_domain as *const (),
        new_thread as *const (),
        main_thread as *const (),
        enter_thread as *const (),
        delete_thread as *const (),
        refuse_start as *const (),
        refuse_stop as *const (),
        refuse_discard as *const (),
        minor_collection_is_over as *const (),
    ];
    Replacement::each(FUNCTIONS, runtime.functions, ours)
}

// --- Allocations ---

/// A sample falls on what is about to be allocated in the young heap: one block,
/// or `count` in one go. The young pointer has been moved already, and must not
/// be touched (`caml_alloc_small_dispatch` in `runtime/minor_gc.c`).
extern "C" fn sample_young(wosize: usize, _from_ocaml: c_int, count: c_int, lengths: *const u8) {
    let work = |domain: &mut Domain| {
        if count == 1 || lengths.is_null() {
            return domain.young_hit(std::iter::once(wosize.saturating_add(1)));
        }
        // SAFETY: as the runtime calls it.
        domain.young_hit(unsafe { part_sizes(count, lengths) });
    };
    // SAFETY: a hook.
    unsafe { with(current_state(), work) };
}

/// A block was allocated in the major heap, read from marshalled data, or owns
/// memory outside the heap, which dies with the block.
extern "C" fn sample_block(block: usize, _allocated: usize, words: usize, source: c_int) {
    let state = current_state();
    // SAFETY: a hook, and the reference ends before it is made again.
    let Some(domain) = (unsafe { domain::domain(state) }) else { return };
    if domain.is_suspended() {
        return;
    }
    domain.left = domain.left.saturating_sub_unsigned(words);
    if domain.left < 0 {
        // SAFETY: a hook.
        unsafe { with(state, |domain| sampled(domain, block, words, source)) };
    }
}

fn sampled(domain: &mut Domain, block: usize, words: usize, source: c_int) {
    let young = source != SOURCE_NORMAL && domain.is_young(block);
    let source = match (source, young) {
        (SOURCE_CUSTOM | SOURCE_MAPPED, _) => Source::External,
        (_, true) => Source::Minor,
        (_, false) => Source::Major,
    };
    let followed = if young { Followed::Young } else { Followed::Major };
    let Domain { mutator: Some(mutator), left, .. } = domain else { return };
    // A lost sample is counted.
    let allocation = AllocatedBlock { source, address: block, words };
    let _ = mutator.hit_followed(left, allocation, followed, Registers::NONE);
}

/// The young heap is empty or another, or an allocation was not to be sampled.
/// The caller sees to the limit.
extern "C" fn set_trigger(state: usize) {
    // SAFETY: a hook.
    unsafe { with(state, Domain::renew) };
}

/// While an exception that nobody catches is printed nothing is sampled
/// (`runtime/printexc.c`).
extern "C" fn update_suspended(suspended: bool) {
    let work = |domain: &mut Domain| {
        // SAFETY: the thread that runs.
        if let Some(thread) = unsafe { domain.current.as_mut() } {
            thread.suspended = suspended;
        }
        domain.renew();
        domain.reset_limit();
    };
    // SAFETY: a hook.
    unsafe { with(current_state(), work) };
}

// --- Collections ---

/// This domain has promoted what it could. Others may still be at it.
extern "C" fn after_minor_collection(state: usize) {
    let work = |domain: &mut Domain| {
        if domain.unsettled {
            domain.give_up("its minor collections do not end as known");
        }
        domain.unsettled = true;
    };
    // SAFETY: a hook.
    unsafe { with(state, work) };
}

/// In place of `caml_final_empty_young` (`runtime/finalise.c`), which is called
/// when all domains are through with a minor collection and this one has not
/// gone on yet. A header of 0 means that a block was promoted, and that its
/// first field holds the new address (`try_update_object_header`,
/// `runtime/minor_gc.c`).
extern "C" fn minor_collection_is_over(state: usize) {
    let Some(places) = domain::places() else { return };
    // SAFETY: the domain's state, and what it has of finalisers.
    let finalisers = unsafe { word(state, places.final_info) };
    for (to, from) in FINAL_OLD_YOUNG {
        // SAFETY: as the probe has seen.
        let young = unsafe { word(finalisers, from) };
        // SAFETY: as above.
        unsafe { set_word(finalisers, to, young) };
    }
    let fate = |block: usize| {
        // SAFETY: a young block, whose memory is not used again yet.
        if unsafe { header(block) } != 0 {
            return Fate::Dead;
        }
        // SAFETY: as above; every block has a field.
        Fate::Promoted(unsafe { word(block, 0) })
    };
    let work = |domain: &mut Domain| {
        domain.unsettled = false;
        let Some(mutator) = &mut domain.mutator else { return };
        // If tracing is over there is nothing to follow.
        let _ = mutator.sweep_young(fate);
        if domain.is_terminating()
            && let Some(mutator) = &mut domain.mutator
        {
            mutator.leave_blocks_to_session();
        }
    };
    // SAFETY: a hook.
    unsafe { with(state, work) };
}

/// Marking is done in all domains, which stand still (`stw_cycle_all_domains`,
/// `runtime/major_gc.c`): unmarked means dead.
extern "C" fn after_major_collection(state: usize) {
    let Some(runtime) = runtime() else { return };
    // SAFETY: `caml_global_heap_state`, which changes only later.
    let unmarked = unsafe { word(runtime.heap_state, UNMARKED) };
    let fate = |block: usize| {
        // SAFETY: a major block that was alive before this cycle, not swept yet.
        let header = unsafe { header(block) };
        if header & COLOUR == unmarked { Fate::Dead } else { Fate::Alive(block) }
    };
    let work = |domain: &mut Domain| {
        domain.adopt_orphans();
        if let Some(mutator) = &mut domain.mutator {
            // If tracing is over there is nothing to follow.
            let _ = mutator.sweep_major(fate);
        }
        // Where no domain begins any more; few at a time, for all stand still.
        domain::take_down_ended(1);
    };
    // SAFETY: a hook.
    unsafe { with(state, work) };
}

type Action = extern "C" fn(data: *mut c_void, value: usize, place: *mut usize);

/// We have no values of the runtime's, so there are no roots. But when the heap
/// is compacted, `weak`, the addresses of blocks change (`caml_compact_heap`,
/// `runtime/shared_heap.c`).
extern "C" fn scan_roots(
    action: Action,
    _flags: c_int,
    data: *mut c_void,
    state: usize,
    weak: bool,
) {
    if !weak {
        return;
    }
    let work = |domain: &mut Domain| {
        domain.adopt_orphans();
        let Some(mutator) = &mut domain.mutator else { return };
        for address in mutator.major_addresses() {
            let block = *address;
            action(data, block, address);
        }
    };
    // SAFETY: a hook.
    unsafe { with(state, work) };
}

/// `caml_result` (`runtime/caml/mlvalues.h`).
#[repr(C)]
struct CamlResult {
    is_exception: c_int,
    data: usize,
}

/// Nothing of ours waits to be called.
extern "C" fn run_callbacks() -> CamlResult {
    CamlResult { is_exception: 0, data: UNIT }
}

// --- Domains and threads ---

/// A domain begins: on its thread, before it allocates anything.
extern "C" fn new_domain(_parent: usize, child: usize) {
    let made = tracer::guard(|| domain::create(child)).unwrap_or(std::ptr::null_mut());
    let Some(places) = domain::places() else { return };
    // SAFETY: the new domain's state, in which that is ours.
    unsafe { set_word(child, places.profiler, made as usize) };
}

/// A domain ends, or could not be begun.
extern "C" fn delete_domain(state: usize) {
    let Some(places) = domain::places() else { return };
    // SAFETY: the domain's state, here and below.
    let domain = unsafe { word(state, places.profiler) } as *mut Domain;
    // SAFETY: as above.
    unsafe { set_word(state, places.profiler, 0) };
    // SAFETY: made by `new_domain`, and nobody else knows it now.
    unsafe { domain::destroy(domain) };
}

/// A thread of a domain is about to begin. NULL makes its creation fail.
extern "C" fn new_thread(state: usize) -> *mut Thread {
    let Some(places) = domain::places() else { return std::ptr::null_mut() };
    // SAFETY: the domain's state.
    let domain = unsafe { word(state, places.profiler) } as *mut Domain;
    // SAFETY: asks for memory, which may be refused.
    let place = unsafe { libc::malloc(size_of::<Thread>()) }.cast::<Thread>();
    if !place.is_null() {
        // SAFETY: room for it.
        unsafe { place.write(Thread { domain, suspended: false, label: 0 }) };
    }
    place
}

/// The first thread of a domain.
extern "C" fn main_thread(state: usize) -> *mut Thread {
    // SAFETY: a hook.
    let domain = unsafe { domain::domain(state) };
    domain.map_or(std::ptr::null_mut(), Domain::first_thread)
}

/// Another thread goes on.
extern "C" fn enter_thread(thread: *mut Thread) {
    // SAFETY: the caller is in the domain of the thread.
    unsafe { with(current_state(), |domain| domain.enter(thread)) };
}

/// A thread is over.
extern "C" fn delete_thread(thread: *mut Thread) {
    // SAFETY: one of the domain's threads.
    let Some(domain) = (unsafe { thread.as_ref() }).map(|thread| thread.domain) else { return };
    // SAFETY: the domain, which outlives its threads.
    let Some(domain) = (unsafe { domain.as_mut() }) else { return };
    let first = domain.first_thread();
    if domain.current == thread {
        domain.current = first;
    }
    if thread != first {
        // SAFETY: made by `new_thread`, and not used again.
        unsafe { libc::free(thread.cast()) };
    }
}

// --- The program's own profiles ---

/// `Gc.Memprof.start`: there is one profiler at a time.
extern "C" fn refuse_start() -> usize {
    fail(c"Gc.Memprof.start: heaptap is tracing this program")
}

/// `Gc.Memprof.stop`: as if none was started.
extern "C" fn refuse_stop() -> usize {
    fail(c"Gc.Memprof.stop: no profile running.")
}

/// `Gc.Memprof.discard`: there is no profile it could be given.
extern "C" fn refuse_discard() -> usize {
    fail(c"Gc.Memprof.discard: profile not stopped.")
}

fn fail(message: &'static CStr) -> usize {
    let Some(runtime) = runtime() else { return UNIT };
    // SAFETY: the runtime's function, and the hooks that call this own nothing.
    unsafe { raise_failure(runtime.failwith, message) }
}
