//! The hooks that replace functions of the runtime, each of which calls the one it replaces.
//!
//! A state is made with our allocator around the program's, and found again by that. None of the
//! hooks allocates in the runtime's heap. An exception of the program may pass through them.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use super::allocator::allocate;
use super::kinds::AllocateFunction;
use super::layout::Thread;
use super::state::TracedState;
use super::symbols::{Close, Functions, Lua, NewState, Resume, SetAllocator};
use crate::runtimes::attach::Replacement;
use crate::runtimes::attach::patch::Original;
use crate::tracer::{self, Session, say};

static NEW_STATE: Original<NewState> = Original::new();
static CLOSE: Original<Close> = Original::new();
static RESUME: Original<Resume> = Original::new();
static SET_ALLOCATOR: Original<SetAllocator> = Original::new();

/// The session that states are traced in from now on.
static SESSION: Mutex<Option<Arc<Session>>> = Mutex::new(None);

/// What was found of the runtime; NULL before.
static LUA: AtomicPtr<Lua> = AtomicPtr::new(std::ptr::null_mut());

/// Before [`replacements`].
pub(super) fn set_runtime(lua: Lua) {
    LUA.store(Box::into_raw(Box::new(lua)), Ordering::Release);
}

/// States that are made from now on are traced in this session, or in none.
pub(super) fn set_session(session: Option<Arc<Session>>) {
    *SESSION.lock().unwrap_or_else(PoisonError::into_inner) = session;
}

pub(super) fn replacements(functions: &Functions) -> Vec<Replacement> {
    vec![
        functions.new_state.wrapped_by(lua_newstate, &NEW_STATE),
        functions.close.wrapped_by(lua_close, &CLOSE),
        functions.resume.wrapped_by(lua_resume, &RESUME),
        functions.set_allocator.wrapped_by(lua_setallocf, &SET_ALLOCATOR),
    ]
}

/// The state that a thread belongs to, if it is traced.
///
/// # Safety
/// `thread` is a `lua_State` that the calling thread uses, of the runtime that was proved; and no
/// other reference to the result is in use.
unsafe fn state_of<'a>(thread: usize) -> Option<&'a mut TracedState> {
    // SAFETY: this function's contract.
    let (function, data) = unsafe { Thread::at(thread) }.global().allocator();
    let is_ours = function == allocate as *const () as usize;
    // SAFETY: with our allocator the argument is a `TracedState`, which stays.
    is_ours.then(|| unsafe { &mut *(data as *mut TracedState) })
}

/// `lua_newstate` (`lstate.c`)
extern "C-unwind" fn lua_newstate(function: AllocateFunction, data: *mut c_void) -> usize {
    // SAFETY: the type with which `lua.h` declares it.
    let Some(original) = (unsafe { NEW_STATE.get() }) else { return 0 };
    let state = tracer::guard(|| traced_state(function, data)).flatten();
    let Some(state) = state.map(Box::into_raw) else { return original(function, data) };
    let thread = original(allocate, state.cast());
    // SAFETY: from `Box::into_raw`, and the runtime's until the state is closed; it is not
    // allocating now.
    let state = unsafe { &mut *state };
    if thread == 0 {
        state.give_up();
    } else {
        state.with_stack(|stack| stack.enter(thread));
    }
    thread
}

/// What is needed for a state with this allocator; `None` if it is not traced.
fn traced_state(function: AllocateFunction, data: *mut c_void) -> Option<Box<TracedState>> {
    // SAFETY: NULL, or from `Box::into_raw` and never freed.
    let lua = unsafe { LUA.load(Ordering::Acquire).as_ref() }?;
    let first = SESSION.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
    let session = tracer::session_in_this_process(&first)?;
    let standard = lua.standard_allocator as *const ();
    if function as *const () != standard || !data.is_null() {
        say_once("a Lua state with an allocator of the program's own is not traced");
        return None;
    }
    let state = TracedState::new(lua, &session, function, data);
    if state.is_none() && session.is_live() {
        say_once("a Lua state is not traced: there is no memory for it");
    }
    state
}

/// `lua_close` (`lstate.c`)
extern "C-unwind" fn lua_close(thread: usize) {
    // SAFETY: the type with which `lua.h` declares it.
    let Some(original) = (unsafe { CLOSE.get() }) else { return };
    // SAFETY: the program closes a state that it uses.
    let Some(state) = (unsafe { state_of(thread) }) else { return original(thread) };
    state.close_begins();
    let state: *mut TracedState = state;
    original(thread);
    // SAFETY: from `state_of`; it stays when the state is gone.
    unsafe { &mut *state }.close_ends();
}

/// The thread that resumes another runs again, also when an exception has ended the call.
struct Resumed {
    state: *mut TracedState,
    before: usize,
}

impl Drop for Resumed {
    fn drop(&mut self) {
        // SAFETY: from `state_of`, and stays; the runtime is not allocating now.
        unsafe { &mut *self.state }.with_stack(|stack| stack.leave(self.before));
    }
}

/// `lua_resume` (`ldo.c`): errors end in it.
extern "C-unwind" fn lua_resume(
    thread: usize,
    from: usize,
    arguments: c_int,
    results: *mut c_int,
) -> c_int {
    // SAFETY: the type with which `lua.h` declares it.
    let Some(original) = (unsafe { RESUME.get() }) else { return c_int::MAX };
    // SAFETY: the program resumes a thread of a state that it uses.
    let state = unsafe { state_of(thread) };
    let resumed = state.and_then(|state| {
        let before = state.with_stack(|stack| stack.enter(thread))?;
        Some(Resumed { state, before })
    });
    let status = original(thread, from, arguments, results);
    drop(resumed);
    status
}

/// `lua_setallocf` (`lapi.c`): what the program's function does with the memory of ours is not
/// known.
extern "C-unwind" fn lua_setallocf(thread: usize, function: AllocateFunction, data: *mut c_void) {
    // SAFETY: the program changes a state that it uses.
    if let Some(state) = unsafe { state_of(thread) }
        && tracer::guard(|| state.give_up()) == Some(true)
    {
        say_once("a Lua state is traced no further: the program has given it another allocator");
    }
    // SAFETY: the type with which `lua.h` declares it.
    if let Some(original) = unsafe { SET_ALLOCATOR.get() } {
        original(thread, function, data);
    }
}

/// A message that many states may cause.
fn say_once(message: &str) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| say(format_args!("{message}")));
}
