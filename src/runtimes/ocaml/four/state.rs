//! The runtime's state, as hooks read it.

use super::layout::StateLayout;
use super::proof::Proved;
use super::symbols::Runtime;

/// The state of a runtime whose layout is proved.
#[derive(Clone, Copy)]
pub(super) struct State {
    /// `Caml_state`: where the pointer to the state is.
    pub(super) pointer: *const *const usize,
    pub(super) layout: &'static StateLayout,
}

// SAFETY: `Caml_state` lives as long as the program, and is read inside hooks only, under the
// master lock.
unsafe impl Send for State {}
// SAFETY: nothing is changed through it, and it is read under the master lock only.
unsafe impl Sync for State {}

impl State {
    pub(super) fn of(runtime: &Runtime, proved: Proved) -> State {
        State { pointer: runtime.state as *const *const usize, layout: &proved.known.state }
    }

    /// Whether the runtime has made it.
    pub(super) fn exists(self) -> bool {
        // SAFETY: `Caml_state` is a variable of the runtime, which is never unloaded.
        !unsafe { self.pointer.read() }.is_null()
    }

    /// The word at an index of the layout. Inside hooks.
    #[inline]
    pub(super) fn word(self, index: usize) -> usize {
        // SAFETY: `Caml_state` is a variable of the runtime, which is never unloaded.
        let state = unsafe { self.pointer.read() };
        // SAFETY: `caml_init_domain` (`runtime/domain.c`) sets it before anything is allocated
        // and the first hook is called, and `prove` has shown that the state has this word.
        unsafe { state.wrapping_add(index).read() }
    }

    /// `last_return_address`
    pub(super) fn last_return_address(self) -> u64 {
        self.word(self.layout.last_return_address) as u64
    }

    /// Whether native code is to enter the runtime as soon as it can.
    pub(super) fn limit_is_raised(self) -> bool {
        self.word(self.layout.young_limit) == self.word(self.layout.young_alloc_end)
    }

    /// `young_ptr`
    pub(super) fn young_pointer(self) -> usize {
        self.word(self.layout.young_ptr)
    }

    /// `young_alloc_start`
    pub(super) fn young_start(self) -> usize {
        self.word(self.layout.young_alloc_start)
    }

    /// `Is_young` (`runtime/caml/address_class.h`).
    pub(super) fn is_young(self, block: usize) -> bool {
        block > self.word(self.layout.young_start) && block < self.word(self.layout.young_end)
    }
}
