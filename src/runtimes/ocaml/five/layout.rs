//! What is known about each release: where things are in a domain's state and in what it
//! points to.
//!
//! `caml_state` points to words in the order of `runtime/caml/domain_state.tbl`. To
//! support a release that moved a word, add a row to [`KNOWN`]; `prove` checks it.

use crate::runtimes::ocaml::releases::layout;
use crate::runtimes::ocaml::{MajorVersion, Releases};

/// All that depends on the release. `prove` checks that the runtime is as one of them says, and
/// whatever depends on the release is read from that one.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownRelease {
    pub(super) releases: Releases,
    pub(super) state: StateLayout,
    /// `None` if it is not known which parameters it has: the trace info has those of the environment.
    pub(super) params: Option<ParamsLayout>,
    /// `None` if it is not known what its heap is like: it is not walked.
    pub(super) heap: Option<HeapLayout>,
}

/// Words of the state: the table of 5.4 has 64 entries, that of 5.3 four less, and
/// then an area for further parameters.
pub(super) const STATE_WORDS: usize = 64;

layout! {
    /// Indices of words in a domain's state, by their names in `domain_state.tbl`.
    pub(super) struct StateLayout, const STATE_5_3 {
        young_limit = 0,
        young_ptr = 1,
        young_start = 2,
        young_end = 3,
        young_trigger = 4,
        current_stack = 5,
        action_pending = 7,
        final_info = 22,
        minor_heap_wsz = 34,
        backtrace_active = 24,
        parser_trace = 33,
        /// Of bytecode.
        trap_sp_off = 54,
        /// The profiler's. NULL makes the domain's creation fail.
        memprof = 58,
        memprof_young_trigger = 59,
    }
}

layout! {
    /// Indices of words in `struct caml_params` (`runtime/caml/startup_aux.h`).
    pub(super) struct ParamsLayout, const PARAMS_5_3 {
        trace_level = 5,
        /// `runtime_events_log_wsize`
        events_log_wsize = 6,
        verify_heap = 7,
        cleanup_on_exit = 18,
        max_domains = 20,
    }
}

/// What walks of the heap need besides: indices of further words in a domain's state, and in
/// what it leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeapLayout {
    /// The releases whose source says so. A row that takes the heap of another release over
    /// without being checked does not compile.
    pub(super) releases: Releases,
    pub(super) stack_cache: usize,
    pub(super) gc_regs: usize,
    pub(super) local_roots: usize,
    pub(super) ephe_info: usize,
    pub(super) requested_minor_gc: usize,
    pub(super) allocated_words: usize,
    pub(super) stat_minor_words: usize,
    pub(super) stat_promoted_words: usize,
    pub(super) stat_major_words: usize,
    pub(super) shared_heap: usize,
    pub(super) id: usize,
    pub(super) unique_id: usize,
    pub(super) dls_root: usize,
    pub(super) thread: ThreadLayout,
}

layout! {
    /// Indices of words in `struct caml_thread_struct` (`otherlibs/systhreads/st_stubs.c`).
    pub(super) struct ThreadLayout, const THREAD_5_3 {
        domain = 3,
        current_stack = 4,
        local_roots = 6,
        last_exception = 9,
        gc_regs = 10,
        /// Of bytecode.
        trap_sp_off = 15,
    }
}

/// The release of a program that does not state it, if its heap can be walked.
pub(super) const WALKABLE: &str = "5.3";

/// Of rows without a heap.
pub(super) const NOT_WALKABLE: &str = "heap snapshots of OCaml 5 are supported for 5.3 only";

const V5_3: KnownRelease = KnownRelease {
    releases: minor(3),
    state: STATE_5_3,
    params: Some(PARAMS_5_3),
    heap: Some(HeapLayout {
        releases: minor(3),
        stack_cache: 9,
        gc_regs: 11,
        local_roots: 20,
        ephe_info: 21,
        requested_minor_gc: 31,
        allocated_words: 16,
        stat_minor_words: 48,
        stat_promoted_words: 49,
        stat_major_words: 50,
        shared_heap: 35,
        id: 36,
        unique_id: 37,
        dls_root: 38,
        thread: THREAD_5_3,
    }),
};

/// 5.4 has four more words behind `allocated_words_direct`.
const V5_4: KnownRelease = KnownRelease {
    releases: minor(4),
    state: StateLayout {
        final_info: 26,
        minor_heap_wsz: 38,
        backtrace_active: 28,
        parser_trace: 37,
        trap_sp_off: 58,
        memprof: 62,
        memprof_young_trigger: 63,
        ..V5_3.state
    },
    params: None,
    // Free slots look different (ocaml/ocaml#13616).
    heap: None,
};

/// All releases that changed something, the newest first.
pub(super) static KNOWN: [KnownRelease; 2] = [V5_4, V5_3];

const _: () = assert!(are_sound(&KNOWN));

const fn minor(minor: u8) -> Releases {
    Releases::new(MajorVersion::Five, minor, minor)
}

/// Whether the rows are of one major version, the newest first, and each has its own heap or none.
const fn are_sound(rows: &[KnownRelease]) -> bool {
    let mut index = 0;
    while index < rows.len() {
        let KnownRelease { releases, heap, .. } = rows[index];
        let is_older = index == 0 || releases.are_older_than(rows[index - 1].releases);
        let is_own = match heap {
            Some(heap) => heap.releases.are(releases),
            None => true,
        };
        if !is_older || !is_own {
            return false;
        }
        index += 1;
    }
    true
}

/// `young_limit` when the runtime has something to do (`interrupt_domain`,
/// `runtime/domain.c`).
pub(super) const INTERRUPT: usize = usize::MAX;

/// In `caml_final_info` (`runtime/caml/finalise.h`): pairs of what
/// `caml_final_empty_young` makes equal, as words: to, from.
pub(super) const FINAL_OLD_YOUNG: [(usize, usize); 2] = [(1, 2), (6, 7)];

/// `stack_info` (`runtime/caml/fiber.h`): `sp`
pub(super) const STACK_SP: usize = 0;
/// `stack_info`: `handler`, which is also where the stack ends.
pub(super) const STACK_HANDLER: usize = 2;
/// `stack_handler`: `parent`
pub(super) const HANDLER_PARENT: usize = 3;
/// Words of a `stack_handler`: value, exception, effect, parent.
pub(super) const HANDLER_WORDS: usize = 4;

/// `POOL_WSIZE` and `POOL_HEADER_WSIZE` (`runtime/shared_heap.c`), in words.
pub(super) const POOL: usize = 4096;
pub(super) const POOL_HEADER: usize = 4;

/// `caml_global_heap_state`: `UNMARKED`
pub(super) const UNMARKED: usize = 1;

/// `CAML_MEMPROF_SRC_NORMAL` (`runtime/caml/memprof.h`): allocated in the major
/// heap.
pub(super) const SOURCE_NORMAL: libc::c_int = 0;
/// `CAML_MEMPROF_SRC_CUSTOM`: memory outside the heap, owned by the block.
pub(super) const SOURCE_CUSTOM: libc::c_int = 2;
/// `CAML_MEMPROF_SRC_MAP_FILE`, from 5.4 on: a file that is mapped.
pub(super) const SOURCE_MAPPED: libc::c_int = 3;

/// The word at an index of the structure that begins at `base`.
///
/// # Safety
/// The structure has such a word, and it can be read.
#[inline]
pub(super) unsafe fn word(base: usize, index: usize) -> usize {
    // SAFETY: readable, by this function's contract.
    unsafe { (base as *const usize).wrapping_add(index).read() }
}

/// Changes the word at an index of the structure that begins at `base`.
///
/// # Safety
/// The structure has such a word, and no other thread uses it now.
#[inline]
pub(super) unsafe fn set_word(base: usize, index: usize, value: usize) {
    // SAFETY: writable, by this function's contract.
    unsafe { (base as *mut usize).wrapping_add(index).write(value) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_may_change_a_word_but_not_take_over_an_unchecked_heap() {
        let moved = StateLayout { memprof: 64, ..V5_4.state };
        let unwalked = KnownRelease { releases: minor(5), state: moved, ..V5_4 };
        assert!(are_sound(&[unwalked, V5_4, V5_3]));
        let inherited = KnownRelease { releases: minor(5), state: moved, ..V5_3 };
        assert!(!are_sound(&[inherited, V5_4, V5_3]));
        let heap = inherited.heap.map(|heap| HeapLayout { releases: minor(5), id: 37, ..heap });
        assert!(are_sound(&[KnownRelease { heap, ..inherited }, V5_4, V5_3]));
        assert!(!are_sound(&[V5_3, V5_4]));
    }
}
