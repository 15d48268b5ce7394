//! The hooks that replace the runtime's profiler.
//!
//! Each does for the trace what the function of the same name in `runtime/memprof.c`
//! does for a profile, as far as the runtime's heap is concerned. Those that are called
//! for every allocation outside the young heap return at once if no sample falls on it.
//!
//! Each runs with the lock of the domain it is about; several domains run theirs at
//! once. None allocates in the runtime's heap or calls OCaml. Those that raise own
//! nothing. They run on the stack of C, which has enough room: OCaml code has its own.

use std::ffi::{CStr, c_int, c_void};

use heaptap_trace::Source;

use super::domain::{self, Domain, current_state, runtime, with};
use super::fiber_stacks;
use super::layout::{
    FINAL_OLD_YOUNG, SOURCE_CUSTOM, SOURCE_MAPPED, SOURCE_NORMAL, UNMARKED, set_word, word,
};
use super::small_alloc;
use super::symbols::{
    CamlResult, DeleteDomain, EnterThread, NewDomain, ProfilerHooks, Runtime, ScanningAction,
    UpdateSuspended, WrappedFunctions,
};
use crate::runtimes::attach::Replacement;
use crate::runtimes::attach::patch::Original;
use crate::runtimes::ocaml::tag_sizes;
use crate::runtimes::ocaml::thread_state::{self, ThreadState};
use crate::runtimes::ocaml::values::{UNIT, header, raise_failure, young_fate};
use crate::tracer::{self, AllocatedBlock, Fate, Generation, Registers, Tracked};

/// What is replaced.
pub(super) fn replacements(runtime: &Runtime) -> Vec<Replacement> {
    let mut all = runtime.functions.replacements::<Hooks>();
    all.push(small_alloc::replacement(runtime));
    let WrappedFunctions { new_domain, delete_domain, enter_thread, update_suspended } =
        &runtime.wrapped;
    all.push(new_domain.wrapped_by(caml_memprof_new_domain, &NEW_DOMAIN));
    all.push(delete_domain.wrapped_by(caml_memprof_delete_domain, &DELETE_DOMAIN));
    all.push(enter_thread.wrapped_by(caml_memprof_enter_thread, &ENTER_THREAD));
    all.push(update_suspended.wrapped_by(caml_memprof_update_suspended, &UPDATE_SUSPENDED));
    all
}

/// The runtime's own functions, which keep what the runtime has of domains and threads.
static NEW_DOMAIN: Original<NewDomain> = Original::new();
static DELETE_DOMAIN: Original<DeleteDomain> = Original::new();
static ENTER_THREAD: Original<EnterThread> = Original::new();
static UPDATE_SUSPENDED: Original<UpdateSuspended> = Original::new();

/// Behind the runtime's: on the thread of the new domain, before it allocates anything.
extern "C" fn caml_memprof_new_domain(parent: usize, child: usize) {
    // SAFETY: the type with which the runtime declares it.
    if let Some(original) = unsafe { NEW_DOMAIN.get() } {
        original(parent, child);
    }
    tracer::guard(|| domain::create(child));
}

/// Before the runtime's: a domain ends, or could not be started.
extern "C" fn caml_memprof_delete_domain(state: usize) {
    // SAFETY: the domain's own thread calls this function, and no other hook for it.
    if let Some(domain) = unsafe { domain::remove(state) } {
        domain::destroy(domain);
    }
    // SAFETY: the type with which the runtime declares it.
    if let Some(original) = unsafe { DELETE_DOMAIN.get() } {
        original(state);
    }
}

/// Behind the runtime's: the calling thread goes on. The runtime's has taken the trigger for its
/// own.
extern "C" fn caml_memprof_enter_thread(thread: *mut c_void) {
    // SAFETY: the type with which the runtime declares it.
    if let Some(original) = unsafe { ENTER_THREAD.get() } {
        original(thread);
    }
    in_hook(current_state(), Domain::enter);
}

/// Behind the runtime's: the calling thread is suspended, or is not any more.
extern "C" fn caml_memprof_update_suspended(suspended: bool) {
    // SAFETY: the type with which the runtime declares it.
    if let Some(original) = unsafe { UPDATE_SUSPENDED.get() } {
        original(suspended);
    }
    // Only while an exception is printed that nobody has caught (`runtime/printexc.c`).
    tracer::note_uncaught_exception(suspended);
    thread_state::set(ThreadState { suspended, ..thread_state::get() });
    in_hook(current_state(), Domain::enter);
}

/// See [`ProfilerHooks`] for when each is called.
struct Hooks;

impl ProfilerHooks for Hooks {
    // --- Allocations ---

    extern "C" fn caml_memprof_sample_young(
        wosize: usize,
        _from_caml: c_int,
        count: c_int,
        lengths: *const u8,
    ) {
        let work = |domain: &mut Domain| {
            // SAFETY: the runtime passes what it allocates.
            unsafe { small_alloc::sample(domain, wosize, count, lengths) };
        };
        in_hook(current_state(), work);
    }

    extern "C" fn caml_memprof_sample_block(
        block: usize,
        _allocated: usize,
        words: usize,
        source: c_int,
    ) {
        let state = current_state();
        // SAFETY: the running domain calls this function, with its own lock. Hooks do not
        // nest, and the reference is not used once `with` makes another.
        let Some(domain) = (unsafe { domain::domain(state) }) else { return };
        if domain.is_suspended() {
            return;
        }
        domain.left = domain.left.saturating_sub_unsigned(words);
        if domain.left < 0 {
            // SAFETY: the running domain calls this function, with its own lock; the
            // reference above is no longer used.
            unsafe { with(state, |domain| sampled(domain, block, words, source)) };
        }
    }

    extern "C" fn caml_memprof_set_trigger(state: usize) {
        in_hook(state, Domain::renew);
    }

    // --- Collections ---

    extern "C" fn caml_memprof_after_minor_gc(state: usize) {
        let work = |domain: &mut Domain| {
            if domain.unsettled {
                domain.give_up("its minor collections do not end as known");
            }
            domain.unsettled = true;
        };
        in_hook(state, work);
    }

    /// Does what the runtime's does, and settles young blocks, which
    /// `try_update_object_header` (`runtime/minor_gc.c`) has marked.
    extern "C" fn caml_final_empty_young(state: usize) {
        let Some(layout) = domain::layout() else { return };
        // SAFETY: the state of a domain, and `prove` has shown the layout.
        let finalisers = unsafe { word(state, layout.final_info) };
        for (to, from) in FINAL_OLD_YOUNG {
            // SAFETY: words of `caml_final_info`, as `prove` has shown.
            let young = unsafe { word(finalisers, from) };
            // SAFETY: the runtime's own function writes this word here.
            unsafe { set_word(finalisers, to, young) };
        }
        // SAFETY: a young block, whose memory is reused only after this hook.
        let fate = |block| unsafe { young_fate(block) };
        let work = |domain: &mut Domain| {
            domain.unsettled = false;
            let Some(mutator) = &mut domain.mutator else { return };
            // If tracing is over there is nothing to track.
            let _ = mutator.sweep(Generation::Young, fate);
            if std::mem::take(&mut domain.tags_due) {
                // SAFETY: this minor collection is part of a major cycle's end, where all
                // domains wait for each other once it is over (`stw_cycle_all_domains`).
                unsafe { tag_sizes::measure(&mut domain.tag_sizes, mutator, |_| true) };
                // SAFETY: the state of this domain; the same moment.
                unsafe { fiber_stacks::count(state, domain.heap_layout) };
            }
            if domain.is_terminating()
                && let Some(mutator) = &mut domain.mutator
            {
                tag_sizes::withdraw(&mut domain.tag_sizes, mutator);
                mutator.leave_blocks_to_session();
                // SAFETY: the state of this domain.
                unsafe { fiber_stacks::withdraw(state, domain.heap_layout) };
            }
        };
        in_hook(state, work);
    }

    /// Unmarked means dead.
    extern "C" fn caml_memprof_after_major_gc(state: usize) {
        let Some(runtime) = runtime() else { return };
        // SAFETY: `caml_global_heap_state`, which changes only after this hook.
        let unmarked = unsafe { word(runtime.heap_state, UNMARKED) };
        let fate = |block: usize| {
            // SAFETY: a major block that was alive before this cycle, and is swept only
            // after this hook.
            let header = unsafe { header(block) };
            if header.colour() == unmarked { Fate::Dead } else { Fate::Alive(block) }
        };
        let work = |domain: &mut Domain| {
            domain.adopt_orphans();
            if let Some(mutator) = &mut domain.mutator {
                // If tracing is over there is nothing to track.
                domain.tags_due = mutator.sweep(Generation::Major, fate).is_ok();
                // The colours change places at the end of each cycle.
                mutator.cycle_marked(unmarked as u64);
            }
            // `create` takes them down too, but perhaps no domain is created any more. Only
            // one, since all domains are waiting.
            domain::take_down_ended(1);
        };
        in_hook(state, work);
    }

    /// A trace holds no values of the runtime's, so there are no roots; but it holds the
    /// addresses of blocks.
    extern "C" fn caml_memprof_scan_roots(
        action: ScanningAction,
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
        in_hook(state, work);
    }

    /// No callback ever waits.
    extern "C" fn caml_memprof_run_callbacks_res() -> CamlResult {
        CamlResult { is_exception: 0, data: UNIT }
    }

    // --- The program's own profiles ---

    /// There is one profiler at a time.
    extern "C" fn caml_memprof_start(_rate: usize, _depth: usize, _tracker: usize) -> usize {
        fail(c"Gc.Memprof.start: heaptap is tracing this program")
    }

    /// As if none was started.
    extern "C" fn caml_memprof_stop(_unit: usize) -> usize {
        fail(c"Gc.Memprof.stop: no profile running.")
    }

    /// There is no profile it could be given.
    extern "C" fn caml_memprof_discard(_profile: usize) -> usize {
        fail(c"Gc.Memprof.discard: profile not stopped.")
    }
}

/// Runs `work` on the domain with this state, in a hook.
#[inline]
fn in_hook(state: usize, work: impl FnOnce(&mut Domain)) {
    // SAFETY: only hooks call this, with the state that the runtime passes or that of the running
    // domain; this thread holds its lock. Hooks do not nest, so no other `&mut Domain` of it is
    // alive.
    unsafe { with(state, work) };
}

fn sampled(domain: &mut Domain, block: usize, words: usize, source: c_int) {
    domain.take_label_if_due();
    let young = source != SOURCE_NORMAL && domain.is_young(block);
    let source = match (source, young) {
        (SOURCE_CUSTOM | SOURCE_MAPPED, _) => Source::External,
        (_, true) => Source::Minor,
        (_, false) => Source::Major,
    };
    let tracked = if young { Tracked::Young } else { Tracked::Major };
    let Domain { mutator: Some(mutator), left, .. } = domain else { return };
    // A lost sample is counted.
    let allocation = AllocatedBlock { source, address: block, words, kind: 0 };
    let _ = mutator.hit_tracked(left, allocation, tracked, Registers::NONE);
}

fn fail(message: &'static CStr) -> usize {
    let Some(runtime) = runtime() else { return UNIT };
    // SAFETY: the address of the runtime's `caml_failwith`, and the hooks that call this
    // own nothing.
    unsafe { raise_failure(runtime.failwith, message) }
}
