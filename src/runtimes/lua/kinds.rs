//! What a block is for, as the runtime tells its allocator.
//!
//! The one place where it is known: for a new block the allocator is called with this number in
//! the place of the old size (`luaM_malloc_`, `lmem.c`, Lua 5.4.4; the numbers are in `lua.h` and
//! `lobject.h`). Arrays, buffers and stacks have none.

/// `LUA_TTABLE`
pub(super) const TABLE: usize = 5;
/// `LUA_TTHREAD`
pub(super) const THREAD: usize = 8;
/// `LUA_TPROTO`
pub(super) const PROTO: usize = 10;
/// Of a block that is resized, which has none.
pub(super) const NONE: usize = 0;
