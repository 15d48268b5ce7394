//! The hooks that replace the runtime's profiler.
//!
//! Each does for the trace what the function of the same name in `runtime/memprof.c`
//! does for a profile, as far as the runtime's heap is concerned. Those that are called
//! for every allocation outside the young heap return at once if no sample falls on it.
//!
//! All run under the runtime's master lock. None allocates in the runtime's heap or calls OCaml.
//! Those that raise own nothing. A session may end while the runtime works that a hook has
//! called: what that hook does behind is nothing of the session's.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::Ordering;

use heaptap_trace::Source;

use super::gc_entry::GcEntry;
use super::host::{FAILWITH, Host, host, on_own_stack};
use super::layout::is_white;
use super::polls;
use super::symbols::{EnterThread, GcEntryFunction, ProfilerHooks, Runtime, SetSuspended};
use crate::runtimes::attach::Replacement;
use crate::runtimes::attach::patch::Original;
use crate::runtimes::ocaml::values::{Header, UNIT, header, part_sizes, raise_failure, young_fate};
use crate::tracer::{self, AllocatedBlock, Fate, Generation, PartSizes, Registers, Tracked, WORD};

/// What is replaced: the profiler, and the entry from native code if there is a shortcut
/// for it.
pub(super) fn replacements(runtime: &Runtime, has_shortcut: bool) -> Vec<Replacement> {
    let gc_entry = runtime.gc_entry.filter(|_| has_shortcut);
    let hook: GcEntryFunction = caml_garbage_collection;
    let mut all = runtime.functions.replacements::<Hooks>();
    all.extend(gc_entry.map(|function| function.replaced_by(hook)));
    all.push(runtime.enter_thread.wrapped_by(caml_memprof_enter_thread, &ENTER_THREAD));
    all.push(runtime.set_suspended.wrapped_by(caml_memprof_set_suspended, &SET_SUSPENDED));
    all
}

/// The runtime's own functions, which keep the context of the running thread.
static ENTER_THREAD: Original<EnterThread> = Original::new();
static SET_SUSPENDED: Original<SetSuspended> = Original::new();

/// Behind the runtime's: another thread runs, whose context says whether it is suspended. The
/// runtime's has taken the trigger for its own.
extern "C" fn caml_memprof_enter_thread(context: *mut c_void) {
    // SAFETY: the type with which the runtime declares it.
    if let Some(original) = unsafe { ENTER_THREAD.get() } {
        original(context);
    }
    // SAFETY: NULL where there was no memory, else a context (`caml_memprof_th_ctx`,
    // `runtime/memprof.c`), which begins with this flag.
    let flag = unsafe { context.cast::<c_int>().as_ref() };
    let suspended = flag.is_some_and(|&flag| flag != 0);
    in_hook(|host| {
        host.take_label();
        host.suspended = suspended;
        host.renew();
    });
}

/// Behind the runtime's, which has noted it in the context of the running thread.
extern "C" fn caml_memprof_set_suspended(suspended: c_int) {
    // SAFETY: the type with which the runtime declares it.
    if let Some(original) = unsafe { SET_SUSPENDED.get() } {
        original(suspended);
    }
    // Only while such an exception is printed (`runtime/printexc.c`).
    tracer::note_uncaught_exception(suspended != 0);
    in_hook(|host| {
        host.suspended = suspended != 0;
        host.renew();
    });
}

/// See [`ProfilerHooks`] for when each is called.
struct Hooks;

impl ProfilerHooks for Hooks {
    // --- Allocations ---

    extern "C" fn caml_memprof_track_young(
        wosize: usize,
        _from_caml: c_int,
        count: c_int,
        lengths: *const u8,
    ) {
        if count == 1 || lengths.is_null() {
            young_hit(std::iter::once(wosize.saturating_add(1)));
        } else {
            // SAFETY: `caml_alloc_small_dispatch` passes `count` encoded lengths.
            young_hit(unsafe { part_sizes(count, lengths) });
        }
    }

    extern "C" fn caml_memprof_track_alloc_shr(block: usize) {
        // SAFETY: `caml_alloc_shr` passes the block that it has just allocated.
        let words = unsafe { header(block) }.words();
        count(Source::Major, block, words, Some(Tracked::Major));
    }

    extern "C" fn caml_memprof_track_custom(block: usize, bytes: usize) {
        count(Source::External, block, bytes / WORD, None);
    }

    extern "C" fn caml_memprof_track_interned(start: *const usize, end: *const usize) {
        in_hook(|host| interned(host, start, end));
    }

    // --- Collections ---

    extern "C" fn caml_memprof_renew_minor_sample() {
        in_hook(Host::renew);
    }

    extern "C" fn caml_memprof_minor_update() {
        // SAFETY: a young block, whose memory is reused only after this hook.
        let fate = |block| unsafe { young_fate(block) };
        // If tracing is over there is nothing to track.
        in_hook(|host| _ = host.mutator.sweep(Generation::Young, fate));
    }

    /// White means dead.
    extern "C" fn caml_memprof_update_clean_phase() {
        let fate = |block: usize| {
            // SAFETY: a major block that was alive before this cycle, and is swept only
            // after this hook.
            let header = unsafe { header(block) };
            if is_white(header) { Fate::Dead } else { Fate::Alive(block) }
        };
        let work = |host: &mut Host| {
            if host.mutator.sweep(Generation::Major, fate).is_ok() {
                host.cycle_marked();
                // SAFETY: marking is done, and sweeping begins after this hook.
                unsafe { host.measure_tags() };
            }
        };
        in_hook(work);
    }

    extern "C" fn caml_memprof_invert_tracked() {
        let work = |host: &mut Host| {
            let invert = host.invert_root;
            for address in host.mutator.major_addresses() {
                let block = *address;
                invert(block, address);
            }
        };
        in_hook(work);
    }

    /// A trace holds no values of the runtime's, so there are no roots.
    extern "C" fn caml_memprof_oldify_young_roots() {}

    /// No roots either.
    extern "C" fn caml_memprof_do_roots(_action: *mut c_void) {}

    /// No callback ever waits.
    extern "C" fn caml_memprof_handle_postponed_exn() -> usize {
        UNIT
    }

    // --- The program's own profiles ---

    /// There is one profiler at a time.
    extern "C" fn caml_memprof_start(_rate: usize, _depth: usize, _tracker: usize) -> usize {
        fail(c"Gc.Memprof.start: heaptap is tracing this program")
    }

    /// As if none was started.
    extern "C" fn caml_memprof_stop(_unit: usize) -> usize {
        fail(c"Gc.Memprof.stop: not started.")
    }
}

/// In place of the runtime's: an allocation of native code has led below the young
/// limit. May raise, and owns nothing.
extern "C-unwind" fn caml_garbage_collection() {
    // SAFETY: native code calls this function, and runs under the master lock. The
    // reference is not used once another function that makes one is called.
    let Some(host) = (unsafe { host() }) else { return };
    let return_address = host.state.last_return_address();
    // It is there before the jump to this hook is.
    let Some(gc_entry) = &host.gc_entry else { return };
    let only_sampled = !gc_entry.is_pending() && host.is_sampled();
    if only_sampled && let Some(words) = gc_entry.singles.find(return_address) {
        return young_hit(std::iter::once(words));
    }
    let allocation = gc_entry.allocation(return_address);
    let GcEntry { process_pending, dispatch, .. } = *gc_entry;
    if allocation.count == 0 {
        if host.state.limit_is_raised() {
            polls::at_raised_limit(host.update_young_limit);
        }
        return process_pending();
    }
    if !only_sampled {
        return allocation.pass_to(dispatch);
    }
    let Some(words) = allocation.single() else { return young_hit(allocation.parts()) };
    if let Some(gc_entry) = &mut host.gc_entry {
        gc_entry.singles.add(return_address, words);
    }
    young_hit(std::iter::once(words));
}

/// Runs `work` on the host, in a hook.
#[inline]
fn in_hook(work: impl FnOnce(&mut Host)) {
    // SAFETY: only hooks call this, which the runtime calls under the master lock. They do not
    // nest, so no other `&mut Host` is in use.
    unsafe { on_own_stack(work) };
}

/// A sample falls on blocks of these words, with their headers, in the young heap.
#[inline]
fn young_hit(parts: impl PartSizes) {
    in_hook(|host| host.young_hit(parts));
}

/// Takes an allocation off the words until the next sample. `tracked` is `None` if it
/// depends on the block's address.
#[inline]
fn count(source: Source, block: usize, words: usize, tracked: Option<Tracked>) {
    // SAFETY: only hooks call this, and the runtime calls those under the master lock;
    // the reference is not used once `on_own_stack` is called.
    let Some(host) = (unsafe { host() }) else { return };
    if host.suspended {
        return;
    }
    host.left = host.left.saturating_sub_unsigned(words);
    if host.left < 0 {
        in_hook(|host| sampled(host, source, block, words, tracked));
    }
}

fn sampled(host: &mut Host, source: Source, block: usize, words: usize, tracked: Option<Tracked>) {
    let young = || if host.state.is_young(block) { Tracked::Young } else { Tracked::Major };
    let tracked = tracked.unwrap_or_else(young);
    let mut left = host.left;
    // A lost sample is counted.
    let allocation = AllocatedBlock { source, address: block, words, kind: 0 };
    let _ = host.mutator.hit_tracked(&mut left, allocation, tracked, Registers::NONE);
    host.left = left;
}

/// Counts blocks one behind the other, all young or all major.
fn interned(host: &mut Host, start: *const usize, end: *const usize) {
    if host.suspended {
        return;
    }
    let first = start as usize + WORD;
    let (source, tracked) = if host.state.is_young(first) {
        (Source::Minor, Tracked::Young)
    } else {
        (Source::Major, Tracked::Major)
    };
    let mut at = start;
    while at < end {
        // SAFETY: `intern_add_to_heap` (`runtime/intern.c`) passes whole blocks, and a
        // header lies where the block before it ends.
        let words = Header(unsafe { at.read() }).words();
        host.left = host.left.saturating_sub_unsigned(words);
        if host.left < 0 {
            sampled(host, source, at as usize + WORD, words, Some(tracked));
        }
        at = at.wrapping_add(words);
    }
}

fn fail(message: &'static CStr) -> usize {
    // SAFETY: the address of the runtime's `caml_failwith`, and the hooks that call this
    // own nothing.
    unsafe { raise_failure(FAILWITH.load(Ordering::Relaxed), message) }
}
