//! Where things are in a domain's state and in what it points to.
//!
//! `caml_state` points to words in the order of `runtime/caml/domain_state.tbl`.

/// Words of the state: the table of 5.4 has 64 entries, that of 5.3 four less, and
/// then an area for further parameters.
pub(super) const STATE_WORDS: usize = 64;

/// `young_limit`
pub(super) const LIMIT: usize = 0;
/// `young_ptr`
pub(super) const POINTER: usize = 1;
/// `young_start`
pub(super) const START: usize = 2;
/// `young_end`
pub(super) const END: usize = 3;
/// `young_trigger`
pub(super) const TRIGGER: usize = 4;
/// `current_stack`
pub(super) const CURRENT_STACK: usize = 5;
/// `action_pending`
pub(super) const ACTION_PENDING: usize = 7;

/// Where in the state of a version the others are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// `final_info`
    pub(super) final_info: usize,
    /// `minor_heap_wsz`
    pub(super) young_words: usize,
    /// `trap_sp_off`, of bytecode
    pub(super) trap_offset: usize,
    /// `memprof`: ours to use. NULL makes the domain's creation fail.
    pub(super) profiler: usize,
    /// `memprof_young_trigger`
    pub(super) sample_trigger: usize,
}

/// Of 5.3, and of 5.4, which has four more behind `allocated_words_direct`.
const KNOWN: [Places; 2] = [
    Places { final_info: 22, young_words: 34, trap_offset: 54, profiler: 58, sample_trigger: 59 },
    Places { final_info: 26, young_words: 38, trap_offset: 58, profiler: 62, sample_trigger: 63 },
];

impl Places {
    /// Those of the version that has the profiler's part there.
    pub(super) fn by_profiler(profiler: usize) -> Option<Places> {
        KNOWN.into_iter().find(|places| places.profiler == profiler)
    }
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

/// The colour in a header (`runtime/caml/shared_heap.h`).
pub(super) const COLOUR: usize = 3 << 8;
/// `caml_global_heap_state`: `UNMARKED`
pub(super) const UNMARKED: usize = 1;

/// `CAML_MEMPROF_SRC_NORMAL` (`runtime/caml/memprof.h`): allocated in the major
/// heap.
pub(super) const SOURCE_NORMAL: libc::c_int = 0;
/// `CAML_MEMPROF_SRC_CUSTOM`: memory outside the heap, owned by the block.
pub(super) const SOURCE_CUSTOM: libc::c_int = 2;
/// `CAML_MEMPROF_SRC_MAP_FILE`, from 5.4 on: a file that is mapped.
pub(super) const SOURCE_MAPPED: libc::c_int = 3;

/// A word of what begins at `base`.
///
/// # Safety
/// It has such a word.
#[inline]
pub(super) unsafe fn word(base: usize, index: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { (base as *const usize).wrapping_add(index).read() }
}

/// Changes one.
///
/// # Safety
/// As above, and it is ours to change.
#[inline]
pub(super) unsafe fn set_word(base: usize, index: usize, value: usize) {
    // SAFETY: the caller's promise.
    unsafe { (base as *mut usize).wrapping_add(index).write(value) };
}
