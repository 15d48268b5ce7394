//! The part of the proof that runs inside the program of the state that is watched: each call of
//! the stack is what the runtime says.

use std::ffi::{CStr, c_int};

use super::layout::{CallInfo, Proto, Thread};
use super::lines;
use super::names::Debug;
use super::watched::{Watched, watched_of};

/// More calls than the program has.
const MOST_CALLS: c_int = 100;

/// `lua_CFunction`: the program calls it.
///
/// # Safety
/// `thread` is one of the state that `proof` has made.
pub(super) unsafe extern "C-unwind" fn inspect(thread: usize) -> c_int {
    // SAFETY: the contract of this function. What is read until the first call is compared has
    // been found in the state's first block before.
    let thread = unsafe { Thread::at(thread) };
    // SAFETY: the same; the allocator is not running.
    if let Some(watched) = unsafe { watched_of(thread.global()) } {
        match difference(thread, watched) {
            None => watched.inspected += 1,
            Some(difference) => watched.difference = watched.difference.or(Some(difference)),
        }
    }
    0
}

/// In which respect a stack is not what the runtime says.
fn difference(thread: Thread, watched: &Watched) -> Option<&'static str> {
    let mut next = thread.innermost();
    for level in 0..MOST_CALLS {
        // SAFETY: for a place in a thread, which `lua_getstack` fills.
        let mut debug = unsafe { std::mem::zeroed::<Debug>() };
        // SAFETY: a thread that runs, and a `lua_Debug`.
        let exists =
            unsafe { (watched.calls.get_stack)(thread.address(), level, (&raw mut debug).cast()) };
        let call = next?;
        if exists == 0 {
            // The first call of a thread is of no function.
            let is_last = call.is_c() && call.caller().is_none() && level > 1;
            return (!is_last).then_some("the first call of a stack");
        }
        if debug.call() != call.address() || !watched.holds(call.address(), CallInfo::SIZE) {
            return Some("the calls of a stack");
        }
        // SAFETY: a call that `lua_getstack` has found.
        unsafe { (watched.calls.get_info)(thread.address(), c"Sl".as_ptr(), &raw mut debug) };
        if !watched.holds(call.function_slot(), 16) {
            return Some("the function of a call");
        }
        if call.is_c() != (debug.current_line == -1) {
            return Some("the kind of a call");
        }
        if !call.is_c() && !is_as_said(call, &debug, watched) {
            return Some("a function");
        }
        next = call.caller();
    }
    Some("the depth of a stack")
}

/// Whether a call of a Lua function is what the runtime says. Follows no pointer that does not
/// point to a block of its kind.
fn is_as_said(call: CallInfo, debug: &Debug, watched: &Watched) -> bool {
    let has_proto = call.lua_closure().is_some_and(|closure| watched.holds(closure, 32));
    let Some(proto) = call.lua_function_if(has_proto) else { return false };
    if !watched.is_proto(proto.address()) || !has_arrays(proto, watched) {
        return false;
    }
    let index = (call.saved_pc().wrapping_sub(proto.code()) / 4).wrapping_sub(1);
    let line = lines::line_of(proto, index);
    // SAFETY: `lua_getinfo` has set it to a C string of the function.
    let source = unsafe { CStr::from_ptr(debug.source) }.to_bytes();
    i32::try_from(line) == Ok(debug.current_line)
        && i32::try_from(proto.line_defined()) == Ok(debug.line_defined)
        && source.len() == debug.source_length
        && watched.holds(proto.source_address(), 24 + source.len())
        && proto.source() == Some(source)
}

fn has_arrays(proto: Proto, watched: &Watched) -> bool {
    let is_there = |&(address, size): &(usize, usize)| {
        if size == 0 { address == 0 } else { watched.is_block(address, size) }
    };
    proto.instructions() > 0 && proto.arrays().iter().all(is_there)
}
