//! What a block is for, as the runtime tells its allocator.
//!
//! For a new block the allocator is called with this number in the place of the old size
//! (`luaM_malloc_`, `lmem.c`, Lua 5.4.4; the numbers are in `lua.h` and `lobject.h`): 4 for a
//! string, 5 a table, 6 a closure, 7 userdata, 8 a thread, 9 the variable of a closure, 10 the
//! prototype of a function. Arrays, buffers and stacks have none. `Request::kind` brings it to
//! where a sample is recorded (`TracedState::sampled`).

use std::ffi::c_void;

/// `LUA_TTABLE`
pub(super) const TABLE: usize = 5;
/// `LUA_TTHREAD`
pub(super) const THREAD: usize = 8;
/// `LUA_TPROTO`
pub(super) const PROTO: usize = 10;
/// Of a block that is resized, which has none.
pub(super) const NONE: usize = 0;

/// `lua_Alloc`: the argument of the program, a block, its size or kind, and the size that it gets.
pub(super) type AllocateFunction =
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, usize, usize) -> *mut c_void;
