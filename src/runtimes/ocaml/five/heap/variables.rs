//! What snapshots use of the runtime.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::runtimes::attach::Refusal;
use crate::runtimes::attach::symbols::{Symbol, code_of, function, functions, needed};
use crate::runtimes::attach::thread_pointer::thread_pointer;
use crate::runtimes::ocaml::five::layout::{
    HeapLayout, KnownRelease, NOT_WALKABLE, ParamsLayout, StateLayout,
};
use crate::runtimes::ocaml::five::symbols::{Runtime, ScanningAction};
use crate::runtimes::ocaml::heap::CodeKind;
use crate::runtimes::ocaml::{MajorVersion, Releases};

/// Addresses of variables and functions of the runtime.
pub(super) struct Variables {
    /// The releases with these layouts.
    pub(super) releases: Releases,
    pub(super) layout: &'static StateLayout,
    pub(super) heap: &'static HeapLayout,
    params: &'static ParamsLayout,
    /// `caml_params`
    params_place: usize,
    /// How far from the thread pointer `caml_state` lies.
    state_offset: usize,
    /// `caml_global_heap_state`
    pub(super) heap_state: usize,
    /// `caml_minor_gc_begin_hook`
    pub(super) minor_gc_begin_hook: usize,
    /// `caml_major_cycles_completed`
    pub(super) major_cycles: usize,
    /// `caml_scan_roots_hook`
    pub(super) scan_roots_hook: usize,
    /// `caml_ephe_none`
    pub(super) ephemeron_none: usize,
    /// `pool_freelist`, which has no symbol.
    pub(super) pool_freelist: usize,
    /// `orph_structs`, which has no symbol: ephemerons, and finalisers.
    pub(super) orphans: usize,
    /// `caml_global_barrier_num_participating`
    pub(super) participants: extern "C" fn() -> c_int,
    /// `caml_init_domain_self`
    pub(super) init_domain_self: extern "C" fn(c_int),
    /// `caml_scan_global_roots`
    pub(super) scan_global_roots: extern "C" fn(ScanningAction, *mut c_void),
    /// `caml_do_local_roots`
    pub(super) scan_local_roots:
        extern "C" fn(ScanningAction, c_int, *mut c_void, usize, usize, usize),
    /// `caml_scan_stack`
    pub(super) scan_stack: extern "C" fn(ScanningAction, c_int, *mut c_void, usize, usize),
    /// `caml_interrupt_all_signal_safe`
    pub(super) interrupt_all: extern "C" fn(),
    /// `caml_bt_is_in_blocking_section`
    is_in_blocking_section: extern "C" fn() -> c_int,
    /// `caml_num_domains_running`
    running: usize,
    /// `caml_acquire_domain_lock`
    pub(super) acquire_domain_lock: extern "C" fn(),
    /// `caml_release_domain_lock`
    pub(super) release_domain_lock: extern "C" fn(),
    /// `caml_empty_minor_heaps_once`
    pub(super) collect_young: extern "C" fn(),
    pub(super) code: CodeKind,
}

impl Variables {
    /// Before `main`.
    pub(super) fn find(
        runtime: &Runtime,
        known: &'static KnownRelease,
    ) -> Result<Variables, Refusal> {
        let KnownRelease { releases, state: layout, params: Some(params), heap: Some(heap) } =
            known
        else {
            return Err(Refusal::Snapshots(NOT_WALKABLE));
        };
        let (found, []) =
            functions([c"caml_accum_orphan_heap_stats", c"caml_orphan_finalisers"], [])?;
        let [accumulate_stats, orphan_finalisers] = found;
        Ok(Variables {
            releases: *releases,
            layout,
            heap,
            params,
            params_place: needed(c"caml_params")?,
            state_offset: runtime.state_offset,
            heap_state: runtime.heap_state,
            minor_gc_begin_hook: needed(c"caml_minor_gc_begin_hook")?,
            major_cycles: needed(c"caml_major_cycles_completed")?,
            scan_roots_hook: needed(c"caml_scan_roots_hook")?,
            ephemeron_none: needed(c"caml_ephe_none")?,
            pool_freelist: pool_freelist(accumulate_stats)?,
            orphans: orphans(orphan_finalisers)?,
            // SAFETY: `int caml_global_barrier_num_participating(void)`, `runtime/domain.c`.
            participants: unsafe { function(c"caml_global_barrier_num_participating")? },
            // SAFETY: `void caml_init_domain_self(int)`, `runtime/domain.c`.
            init_domain_self: unsafe { function(c"caml_init_domain_self")? },
            // SAFETY: `void caml_scan_global_roots(scanning_action, void *)`, `globroots.c`.
            scan_global_roots: unsafe { function(c"caml_scan_global_roots")? },
            // SAFETY: as in `runtime/caml/roots.h`.
            scan_local_roots: unsafe { function(c"caml_do_local_roots")? },
            // SAFETY: as in `runtime/caml/fiber.h`.
            scan_stack: unsafe { function(c"caml_scan_stack")? },
            // SAFETY: `void caml_interrupt_all_signal_safe(void)`, `runtime/domain.c`.
            interrupt_all: unsafe { function(c"caml_interrupt_all_signal_safe")? },
            // SAFETY: `int caml_bt_is_in_blocking_section(void)`, `runtime/domain.c`.
            is_in_blocking_section: unsafe { function(c"caml_bt_is_in_blocking_section")? },
            running: needed(c"caml_num_domains_running")?,
            // SAFETY: `void caml_acquire_domain_lock(void)`, `runtime/domain.c`.
            acquire_domain_lock: unsafe { function(c"caml_acquire_domain_lock")? },
            // SAFETY: `void caml_release_domain_lock(void)`, `runtime/domain.c`.
            release_domain_lock: unsafe { function(c"caml_release_domain_lock")? },
            // SAFETY: `void caml_empty_minor_heaps_once(void)`, `runtime/minor_gc.c`.
            collect_young: unsafe { function(c"caml_empty_minor_heaps_once")? },
            code: CodeKind::find(MajorVersion::Five, runtime.is_native)?,
        })
    }

    /// A word of the runtime's parameters, which it sets when it starts.
    pub(super) fn param(&self, index: impl FnOnce(&ParamsLayout) -> usize) -> usize {
        // SAFETY: `const struct caml_params * const caml_params` (`runtime/startup_aux.c`).
        let params = unsafe { (self.params_place as *const *const usize).read() };
        // SAFETY: the structure has the words of its layout.
        unsafe { params.wrapping_add(index(self.params)).read_volatile() }
    }

    /// How many domains are running.
    pub(super) fn running_domains(&self) -> usize {
        let running = self.running as *const AtomicUsize;
        // SAFETY: `atomic_uintnat caml_num_domains_running` is a variable of the runtime
        // (`runtime/domain.c`), which is never unloaded.
        unsafe { &*running }.load(Ordering::Acquire)
    }

    /// The state of a domain, which this thread belongs to then; 0 if there was none with this number yet. On
    /// threads that do not run OCaml code.
    pub(super) fn enter_domain(&self, number: usize) -> usize {
        (self.init_domain_self)(number as c_int);
        self.current_state()
    }

    /// Whether the threads of the domain that this thread belongs to are all in blocking sections, and its
    /// backup thread takes part in collections. Never if it is the only domain.
    pub(super) fn is_covered(&self) -> bool {
        (self.is_in_blocking_section)() != 0
    }

    /// This thread's `caml_state`; 0 if it has none.
    pub(super) fn current_state(&self) -> usize {
        let place = thread_pointer().wrapping_add(self.state_offset) as *const usize;
        // SAFETY: this thread's `caml_state`, a pointer.
        unsafe { place.read() }
    }
}

/// The address that an instruction refers to whose last four of `length` bytes are its
/// distance from the next instruction.
fn relative(code: &[u8], base: usize, at: usize, length: usize) -> Option<usize> {
    let bytes = code.get(at + length - 4..at + length)?;
    let distance = i32::from_le_bytes(bytes.try_into().ok()?);
    Some(base.wrapping_add(at + length).wrapping_add_signed(distance as isize))
}

/// `caml_accum_orphan_heap_stats` (`runtime/shared_heap.c`) locks the list, and adds what is
/// in its statistics: the two addresses that it loads are 0x30 bytes apart.
fn pool_freelist(accumulate_stats: Symbol) -> Result<usize, Refusal> {
    const STATS: usize = 0x30;
    let (base, code) = (accumulate_stats.address, code_of(accumulate_stats, 96));
    // lea reg, [rip + disp32]
    let is_lea = |bytes: &[u8]| {
        matches!(bytes[0], 0x48 | 0x4c) && bytes[1] == 0x8d && bytes[2] & 0xc7 == 0x05
    };
    let loaded = || {
        let leas = code.windows(7).enumerate().filter(|(_, bytes)| is_lea(bytes));
        leas.filter_map(|(at, _)| relative(code, base, at, 7))
    };
    loaded()
        .find(|&list| loaded().any(|stats| stats == list + STATS))
        .ok_or(Refusal::Layout("the list of free pools"))
}

/// `caml_orphan_finalisers` (`runtime/major_gc.c`) puts the domain's finalisers in front of
/// those in `orph_structs`: it loads these, and stores them as `next`, 0x68 bytes into a
/// `caml_final_info`. The ephemerons are the word before.
fn orphans(orphan_finalisers: Symbol) -> Result<usize, Refusal> {
    const NEXT: u8 = 0x68;
    let (base, code) = (orphan_finalisers.address, code_of(orphan_finalisers, 512));
    // mov reg, [rip + disp32]
    let is_load = |bytes: &[u8]| {
        matches!(bytes[0], 0x48 | 0x4c) && bytes[1] == 0x8b && bytes[2] & 0xc7 == 0x05
    };
    // mov [reg + 0x68], reg
    let is_store = |bytes: &[u8]| bytes[1] == 0x89 && bytes[2] & 0xc0 == 0x40 && bytes[3] == NEXT;
    let store = code.windows(4).position(|bytes| bytes[0] & 0xf8 == 0x48 && is_store(bytes));
    let before = store.and_then(|store| code.get(..store)).unwrap_or_default();
    let load = before.windows(7).rposition(is_load);
    let finalisers = load.and_then(|load| relative(code, base, load, 7));
    finalisers
        .map(|finalisers| finalisers - size_of::<usize>())
        .ok_or(Refusal::Layout("the finalisers of domains that have ended"))
}
