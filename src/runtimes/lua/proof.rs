//! The proof in the live process that the runtime is laid out as `layout` says.
//!
//! A state of our own runs a small program. What the walk of its stack finds is compared with
//! what the runtime itself says, call by call; that each table constructor is found where it is
//! with the lines of the program. All of the state's memory comes from an allocator of ours, so
//! that no pointer is followed before it is known to point to a block of that state. Before
//! `main`, on one thread: may allocate.

use std::ffi::c_int;
use std::ptr;

use super::kinds;
use super::kinds::AllocateFunction;
use super::layout::{self, CallInfo, Thread};
use super::places::Places;
use super::proof_calls;
use super::stack::StateStack;
use super::symbols::{Calls, Functions};
use super::watched::{Watched, watch};
use crate::runtimes::attach::Refusal;

/// The program that the state runs. The lines of its tables are in [`expected`].
const PROGRAM: &str = "local make, several
function several() return 1, 2, 3 end
function make(n)
  if n == 0 then inspect() return {} end
  local t = { n }
  local u = {
    several() }
  local h = { x = 1,
    y = {} }
  return make(n - 1), t, u, h
end
inspect()
make(15)
return { inspect }
";

/// For each table and array of the program, whether it is an array, and its line.
fn expected() -> Vec<(bool, u32)> {
    let make = [(false, 5), (true, 5), (false, 6), (true, 7), (false, 8), (true, 8), (false, 9)];
    let mut all = make.repeat(15);
    all.extend([(false, 4), (false, 14), (true, 14)]);
    all
}

/// Proves the layout, and returns the allocator of `luaL_newstate`.
pub(super) fn prove(
    calls: &Calls,
    functions: &Functions,
    places: &'static Places,
) -> Result<AllocateFunction, Refusal> {
    let standard_allocator = standard_allocator(calls, functions)?;
    let stack = StateStack::new(places, calls.get_info, 64);
    let stack = stack.ok_or(Refusal::Layout("there is no memory for its proof"))?;
    let mut watched = Watched::new(calls, standard_allocator, stack, places);
    // Used through this pointer only, as long as the state lives.
    let watched = &raw mut watched;
    // SAFETY: `Functions` has the type of `lua.h`, and nothing is replaced yet.
    let new_state = unsafe { functions.new_state.get() };
    // SAFETY: the same.
    let close = unsafe { functions.close.get() };
    let thread = new_state(watch, watched.cast());
    if thread == 0 {
        return Err(Refusal::Layout("it makes no state"));
    }
    // SAFETY: the allocator, which has the pointer too, is not running.
    let checked = check_state(thread, unsafe { &*watched });
    let outcome = checked.and_then(|()| run(thread, watched, functions));
    close(thread);
    outcome?;
    // SAFETY: the state is closed.
    let watched = unsafe { &*watched };
    if watched.bytes() != 0 {
        return Err(Refusal::Layout("a state that is closed keeps memory"));
    }
    Ok(standard_allocator)
}

/// The allocator of states that the program makes by `luaL_newstate`.
fn standard_allocator(calls: &Calls, functions: &Functions) -> Result<AllocateFunction, Refusal> {
    // SAFETY: as `lauxlib.h` has it.
    let thread = unsafe { (calls.standard_state)() };
    if thread == 0 {
        return Err(Refusal::Layout("it makes no state"));
    }
    let mut data = ptr::null_mut();
    // SAFETY: a state that was just made.
    let found = unsafe { (calls.get_allocator)(thread, &raw mut data) };
    // SAFETY: as `lua.h` has it, and nothing is replaced yet.
    let close = unsafe { functions.close.get() };
    close(thread);
    found.filter(|_| data.is_null()).ok_or(Refusal::Layout("its allocator"))
}

/// The state as it was made: everything that is read is in its first block.
fn check_state(thread: usize, watched: &Watched) -> Result<(), Refusal> {
    let (block, size, kind) = watched.first().ok_or(Refusal::Layout("it allocates nothing"))?;
    if (size, kind) != (layout::STATE_SIZE, kinds::THREAD) || thread != block + layout::EXTRA_SPACE
    {
        return Err(Refusal::Layout("the size of a state"));
    }
    // SAFETY: a block of the size that a state of this layout has.
    let thread = unsafe { Thread::at(thread) };
    let global = thread.global();
    if global.address() != thread.address() + layout::THREAD_SIZE {
        return Err(Refusal::Layout("its global state"));
    }
    let ours = (watch as *const () as usize, ptr::from_ref(watched) as usize);
    if global.allocator() != ours || global.main_thread() != thread.address() {
        return Err(Refusal::Layout("the members of its global state"));
    }
    if thread.innermost().map(CallInfo::address) != Some(thread.address() + layout::BASE_CALL) {
        return Err(Refusal::Layout("the first call of a thread"));
    }
    if counted(thread, watched) != global.bytes() || watched.bytes() != global.bytes() {
        return Err(Refusal::Layout("the bytes that it counts"));
    }
    Ok(())
}

/// The bytes in use, as the collector says.
fn counted(thread: Thread, watched: &Watched) -> isize {
    /// `LUA_GCCOUNT` and `LUA_GCCOUNTB`
    const KIB_AND_BYTES: [c_int; 2] = [3, 4];
    let ask = |what| {
        // SAFETY: a state of ours; both questions take no arguments.
        unsafe { (watched.calls.collect)(thread.address(), what) as isize }
    };
    let [kib, bytes] = KIB_AND_BYTES.map(ask);
    kib * 1024 + bytes
}

/// Runs the program in a thread of the state.
fn run(main: usize, watched: *mut Watched, functions: &Functions) -> Result<(), Refusal> {
    // SAFETY: only the allocator and `inspect` use it, which are not running.
    let calls = unsafe { &*watched }.calls;
    // If memory runs out while no function runs protected, the runtime ends the process.
    // SAFETY: a state of ours, and a function of the type that it calls.
    unsafe { (calls.push_function)(main, proof_calls::inspect, 0) };
    // SAFETY: a state of ours, with that function on its stack.
    unsafe { (calls.set_global)(main, c"inspect".as_ptr()) };
    // SAFETY: a state of ours.
    let thread = unsafe { (calls.new_thread)(main) };
    let (text, length) = (PROGRAM.as_ptr().cast(), PROGRAM.len());
    // SAFETY: a thread of a state of ours, and a text of that length.
    let loaded = unsafe { (calls.load)(thread, text, length, c"=proof".as_ptr(), ptr::null()) };
    // SAFETY: as above.
    unsafe { &mut *watched }.enter(thread);
    let mut results = 0;
    // SAFETY: `Functions` has the type of `lua.h`, and nothing is replaced yet.
    let resume = unsafe { functions.resume.get() };
    let status = if loaded == 0 { resume(thread, main, 0, &raw mut results) } else { loaded };
    // SAFETY: as above.
    let watched = unsafe { &*watched };
    match watched.difference {
        Some(difference) => Err(Refusal::Layout(difference)),
        None if status != 0 || results != 1 => Err(Refusal::Layout("it runs no program")),
        None if watched.inspected != 2 => Err(Refusal::Layout("its functions in C")),
        None if watched.tables() != expected() => Err(Refusal::Layout("the lines of tables")),
        None => Ok(()),
    }
}
