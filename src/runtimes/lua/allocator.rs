//! The allocator of a state that is traced: the program's own, and what a trace needs around it.
//!
//! `lua_Alloc` (manual, 4.6): a new size of 0 frees the block, no block makes one, and anything
//! else resizes it. Resizing counts as the end of one block and the allocation of another.

use std::ffi::c_void;

use super::constructors::Request;
use super::kinds;
use super::state::TracedState;
use crate::tracer::WORD;

/// # Safety
/// As the manual has it, with a `TracedState` as `data` that nobody else is using.
pub(super) unsafe extern "C-unwind" fn allocate(
    data: *mut c_void,
    block: *mut c_void,
    old: usize,
    new: usize,
) -> *mut c_void {
    // SAFETY: the contract of this function.
    let state = unsafe { &mut *data.cast::<TracedState>() };
    if new == 0 {
        if state.knows(block as usize, old) {
            state.freed(block as usize, old);
        }
        let (allocate, data) = (state.allocate, state.data);
        // SAFETY: the program's allocator, with its arguments.
        return unsafe { allocate(data, block, old, new) };
    }
    if !block.is_null() {
        return resize(state, block, old, new);
    }
    // SAFETY: the program's allocator, with its arguments.
    let made = unsafe { (state.allocate)(state.data, block, old, new) };
    if !made.is_null() {
        state.left = state.left.wrapping_sub_unsigned(new.div_ceil(WORD));
        if state.left < 0 {
            state.sampled_new(made as usize, old, new);
        }
    }
    made
}

#[inline(never)]
fn resize(state: &mut TracedState, block: *mut c_void, old: usize, new: usize) -> *mut c_void {
    let request = Request { is_new: false, kind: kinds::NONE, size: new };
    let left = state.left.wrapping_sub_unsigned(new.div_ceil(WORD));
    if left < 0 {
        state.capture(request);
    }
    // Before the address may be another thread's.
    let before = state.detach(block as usize);
    // SAFETY: the program's allocator, with its arguments.
    let made = unsafe { (state.allocate)(state.data, block, old, new) };
    if made.is_null() {
        state.discard();
        if let Some(before) = before {
            state.reattach(block as usize, before);
        }
        return made;
    }
    if let Some(before) = before {
        state.ended(before);
    }
    state.left = left;
    if left < 0 {
        state.sampled(made as usize, request);
    }
    made
}
