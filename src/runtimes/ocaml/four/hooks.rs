//! What the runtime's profiler is replaced by.
//!
//! Each function does what the one of the same name in `runtime/memprof.c` is
//! for, as far as the runtime's heap is concerned. Those that are called for
//! every allocation outside the young heap return at once if no sample falls on
//! it.
//!
//! All run under the runtime's master lock but [`new_context`]. None allocates
//! in the runtime's heap or calls OCaml. The two that raise own nothing.

use std::ffi::{CStr, c_int};
use std::sync::atomic::Ordering;

use heaptap_trace::Source;

use super::gc_entry::NoRoom;
use super::host::{Context, FAILWITH, Host, MAIN_CONTEXT, host, on_own_stack};
use super::layout::is_white;
use super::symbols::{FUNCTIONS, Runtime};
use crate::blocks::Fate;
use crate::runtimes::attach::patch::Replacement;
use crate::runtimes::ocaml::values::{UNIT, header, part_sizes, raise_failure, words};
use crate::sampling::{PartSizes, WORD};
use crate::stack::native::Registers;
use crate::tracer::{AllocatedBlock, Followed};

/// The runtime's functions and ours: those of the profiler, and where native code
/// comes from, if that is known.
pub(super) fn replacements(runtime: &Runtime, gc_entry: Option<&NoRoom>) -> Vec<Replacement> {
    let ours: [*const (); FUNCTIONS.len()] = [
        track_young as *const (),
        track_major as *const (),
        track_custom as *const (),
        track_interned as *const (),
        renew_young_sample as *const (),
        after_minor_collection as *const (),
        after_marking as *const (),
        compacting as *const (),
        nothing as *const (),
        nothing as *const (),
        nothing_pending as *const (),
        set_suspended as *const (),
        new_context as *const (),
        enter_thread as *const (),
        leave_thread as *const (),
        delete_context as *const (),
        refuse_start as *const (),
        refuse_stop as *const (),
    ];
    let mut all = Replacement::each(FUNCTIONS, runtime.functions, ours).to_vec();
    all.extend(gc_entry.map(NoRoom::replacement));
    all
}

// --- Allocations ---

/// A sample falls on what has just been allocated in the young heap: one block,
/// or `count` in one go. The young pointer has been moved already, and must not
/// be touched (`caml_alloc_small_dispatch` in `runtime/minor_gc.c`).
extern "C" fn track_young(wosize: usize, _from_ocaml: c_int, count: c_int, lengths: *const u8) {
    if count == 1 || lengths.is_null() {
        young_hit(std::iter::once(wosize.saturating_add(1)));
    } else {
        // SAFETY: as the runtime calls it.
        young_hit(unsafe { part_sizes(count, lengths) });
    }
}

/// The same, by the blocks' words with their headers.
#[inline]
pub(super) fn young_hit(parts: impl PartSizes) {
    // SAFETY: a hook.
    unsafe { on_own_stack(|host| host.young_hit(parts)) };
}

/// A block was allocated in the major heap (`runtime/memory.c`).
extern "C" fn track_major(block: usize) {
    // SAFETY: a block.
    let header = unsafe { header(block) };
    count(Source::Major, block, words(header), Some(Followed::Major));
}

/// A custom block owns memory outside the heap (`runtime/custom.c`): dies with
/// the block.
extern "C" fn track_custom(block: usize, bytes: usize) {
    count(Source::External, block, bytes / WORD, None);
}

/// Takes an allocation off the words until the next sample. `followed`: `None`
/// if it is to be seen from the block's address.
#[inline]
fn count(source: Source, block: usize, words: usize, followed: Option<Followed>) {
    // SAFETY: a hook, and the reference ends before the stack is changed.
    let Some(host) = (unsafe { host() }) else { return };
    if host.suspended {
        return;
    }
    host.left = host.left.saturating_sub_unsigned(words);
    if host.left < 0 {
        // SAFETY: a hook.
        unsafe { on_own_stack(|host| sampled(host, source, block, words, followed)) };
    }
}

fn sampled(
    host: &mut Host,
    source: Source,
    block: usize,
    words: usize,
    followed: Option<Followed>,
) {
    let young = || if host.is_young(block) { Followed::Young } else { Followed::Major };
    let followed = followed.unwrap_or_else(young);
    let mut left = host.left;
    // A lost sample is counted.
    let allocation = AllocatedBlock { source, address: block, words };
    let _ = host.mutator.hit_followed(&mut left, allocation, followed, Registers::NONE);
    host.left = left;
}

/// Blocks were read from marshalled data, one behind the other from `start` to
/// `end`, all young or all major (`runtime/intern.c`).
extern "C" fn track_interned(start: *const usize, end: *const usize) {
    let work = |host: &mut Host| {
        if host.suspended {
            return;
        }
        let first = start as usize + WORD;
        let (source, followed) = if host.is_young(first) {
            (Source::Minor, Followed::Young)
        } else {
            (Source::Major, Followed::Major)
        };
        let mut at = start;
        while at < end {
            // SAFETY: a block's header, between start and end.
            let words = words(unsafe { at.read() });
            host.left = host.left.saturating_sub_unsigned(words);
            if host.left < 0 {
                sampled(host, source, at as usize + WORD, words, Some(followed));
            }
            at = at.wrapping_add(words);
        }
    };
    // SAFETY: a hook.
    unsafe { on_own_stack(work) };
}

// --- Collections ---

/// The young heap is empty or another, or an allocation was not to be sampled.
extern "C" fn renew_young_sample() {
    // SAFETY: a hook.
    unsafe { on_own_stack(Host::renew) };
}

/// Young blocks were promoted or are dead (`caml_empty_minor_heap`,
/// `runtime/minor_gc.c`): a header of 0 means that the first field holds the new
/// address.
extern "C" fn after_minor_collection() {
    let fate = |block: usize| {
        // SAFETY: a young block, whose memory is not used again yet.
        if unsafe { header(block) } != 0 {
            return Fate::Dead;
        }
        // SAFETY: as above; every block has a field.
        Fate::Promoted(unsafe { (block as *const usize).read() })
    };
    // SAFETY: a hook. If tracing is over there is nothing to follow.
    unsafe { on_own_stack(|host| _ = host.mutator.sweep_young(fate)) };
}

/// Marking is done (`mark_slice`, `runtime/major_gc.c`): white means dead.
extern "C" fn after_marking() {
    let fate = |block: usize| {
        // SAFETY: a major block that was alive before this cycle, not swept yet.
        let header = unsafe { header(block) };
        if is_white(header) { Fate::Dead } else { Fate::Alive(block) }
    };
    // SAFETY: a hook.
    unsafe { on_own_stack(|host| _ = host.mutator.sweep_major(fate)) };
}

/// The heap is being compacted (`do_compaction`, `runtime/compact.c`): it wants
/// to know every place that holds an address, and changes them all by the end.
/// No other hook is called until then.
extern "C" fn compacting() {
    let work = |host: &mut Host| {
        let invert = host.invert_root;
        for address in host.mutator.major_addresses() {
            let block = *address;
            invert(block, address);
        }
    };
    // SAFETY: a hook.
    unsafe { on_own_stack(work) };
}

/// We have no values of the runtime's, so there are no roots.
extern "C" fn nothing() {}

/// Nothing of ours waits to be called.
extern "C" fn nothing_pending() -> usize {
    UNIT
}

// --- Threads ---

/// While an exception that nobody catches is printed nothing is sampled
/// (`runtime/printexc.c`).
extern "C" fn set_suspended(suspended: c_int) {
    let work = |host: &mut Host| {
        host.suspended = suspended != 0;
        // SAFETY: NULL or the context of the running thread.
        if let Some(place) = unsafe { host.context.cast::<c_int>().as_mut() } {
            *place = suspended;
        }
        host.renew();
    };
    // SAFETY: a hook.
    unsafe { on_own_stack(work) };
}

/// A context for a thread. Any thread.
extern "C" fn new_context() -> *mut Context {
    // SAFETY: a context of zeros.
    unsafe { libc::calloc(1, size_of::<Context>()) }.cast()
}

extern "C" fn delete_context(context: *mut Context) {
    // SAFETY: a hook.
    if let Some(host) = unsafe { host() }
        && host.context == context
    {
        host.context = std::ptr::null_mut();
    }
    if context as usize != MAIN_CONTEXT.load(Ordering::Relaxed) {
        // SAFETY: made by `new_context`, and not used again.
        unsafe { libc::free(context.cast()) };
    }
}

/// Another thread goes on.
extern "C" fn enter_thread(context: *mut Context) {
    let work = |host: &mut Host| {
        host.context = context;
        host.take_label();
        // SAFETY: NULL where there was no memory, else a context.
        let suspended = unsafe { context.cast::<c_int>().as_ref() }.is_some_and(|&flag| flag != 0);
        if suspended != host.suspended {
            host.suspended = suspended;
            host.renew();
        }
    };
    // SAFETY: a hook.
    unsafe { on_own_stack(work) };
}

extern "C" fn leave_thread() {
    // SAFETY: a hook.
    if let Some(host) = unsafe { host() } {
        host.context = std::ptr::null_mut();
    }
}

// --- The program's own profiles ---

/// `Gc.Memprof.start`: there is one profiler at a time.
extern "C" fn refuse_start() -> usize {
    fail(c"Gc.Memprof.start: heaptap is tracing this program")
}

/// `Gc.Memprof.stop`: as if none was started.
extern "C" fn refuse_stop() -> usize {
    fail(c"Gc.Memprof.stop: not started.")
}

fn fail(message: &'static CStr) -> usize {
    // SAFETY: the runtime's function, and the hooks that call this own nothing.
    unsafe { raise_failure(FAILWITH.load(Ordering::Relaxed), message) }
}
