//! What is used of the runtime, by name.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::kinds::AllocateFunction;
use super::names::GetInfo;
use super::places::Places;
use crate::runtimes::attach::hook_table::RuntimeFunction;
use crate::runtimes::attach::{Refusal, symbols};

/// `lua_State *lua_newstate (lua_Alloc f, void *ud)`
pub(super) type NewState = extern "C-unwind" fn(AllocateFunction, *mut c_void) -> usize;
/// `void lua_close (lua_State *L)`
pub(super) type Close = extern "C-unwind" fn(usize);
/// `int lua_resume (lua_State *L, lua_State *from, int narg, int *nres)`
pub(super) type Resume = extern "C-unwind" fn(usize, usize, c_int, *mut c_int) -> c_int;
/// `void lua_setallocf (lua_State *L, lua_Alloc f, void *ud)`
pub(super) type SetAllocator = extern "C-unwind" fn(usize, AllocateFunction, *mut c_void);

/// The functions that are replaced.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    pub(super) new_state: RuntimeFunction<NewState>,
    pub(super) close: RuntimeFunction<Close>,
    pub(super) resume: RuntimeFunction<Resume>,
    pub(super) set_allocator: RuntimeFunction<SetAllocator>,
}

const REPLACED: [&CStr; 4] = [c"lua_newstate", c"lua_close", c"lua_resume", c"lua_setallocf"];

impl Functions {
    pub(super) fn find() -> Result<Functions, Refusal> {
        let (found, []) = symbols::functions(REPLACED, [])?;
        let [new_state, close, resume, set_allocator] = found;
        Ok(Functions {
            new_state: RuntimeFunction::new(REPLACED[0], new_state),
            close: RuntimeFunction::new(REPLACED[1], close),
            resume: RuntimeFunction::new(REPLACED[2], resume),
            set_allocator: RuntimeFunction::new(REPLACED[3], set_allocator),
        })
    }
}

/// The rest, of which the proof uses most.
#[derive(Clone, Copy)]
pub(super) struct Calls {
    pub(super) get_info: GetInfo,
    /// `int lua_getstack (lua_State *L, int level, lua_Debug *ar)`
    pub(super) get_stack: unsafe extern "C-unwind" fn(usize, c_int, *mut c_void) -> c_int,
    /// `lua_Alloc lua_getallocf (lua_State *L, void **ud)`
    pub(super) get_allocator:
        unsafe extern "C-unwind" fn(usize, *mut *mut c_void) -> Option<AllocateFunction>,
    /// `lua_State *luaL_newstate (void)`
    pub(super) standard_state: unsafe extern "C-unwind" fn() -> usize,
    /// `int lua_gc (lua_State *L, int what, ...)`
    pub(super) collect: unsafe extern "C-unwind" fn(usize, c_int, ...) -> c_int,
    /// `int luaL_loadbufferx (lua_State *L, const char *, size_t, const char *name, const char *mode)`
    pub(super) load: unsafe extern "C-unwind" fn(
        usize,
        *const c_char,
        usize,
        *const c_char,
        *const c_char,
    ) -> c_int,
    /// `void lua_pushcclosure (lua_State *L, lua_CFunction, int)`
    pub(super) push_function:
        unsafe extern "C-unwind" fn(usize, unsafe extern "C-unwind" fn(usize) -> c_int, c_int),
    /// `void lua_setglobal (lua_State *L, const char *name)`
    pub(super) set_global: unsafe extern "C-unwind" fn(usize, *const c_char),
    /// `lua_State *lua_newthread (lua_State *L)`
    pub(super) new_thread: unsafe extern "C-unwind" fn(usize) -> usize,
}

impl Calls {
    pub(super) fn find() -> Result<Calls, Refusal> {
        Ok(Calls {
            // SAFETY: `lua.h` of Lua 5.4 declares it with this type.
            get_info: unsafe { symbols::function(c"lua_getinfo") }?,
            // SAFETY: `lua.h` of Lua 5.4 declares it with this type.
            get_stack: unsafe { symbols::function(c"lua_getstack") }?,
            // SAFETY: `lua.h` of Lua 5.4 declares it with this type.
            get_allocator: unsafe { symbols::function(c"lua_getallocf") }?,
            // SAFETY: `lauxlib.h` of Lua 5.4 declares it with this type.
            standard_state: unsafe { symbols::function(c"luaL_newstate") }?,
            // SAFETY: `lua.h` of Lua 5.4 declares it with this type.
            collect: unsafe { symbols::function(c"lua_gc") }?,
            // SAFETY: `lauxlib.h` of Lua 5.4 declares it with this type.
            load: unsafe { symbols::function(c"luaL_loadbufferx") }?,
            // SAFETY: `lua.h` of Lua 5.4 declares it with this type.
            push_function: unsafe { symbols::function(c"lua_pushcclosure") }?,
            // SAFETY: `lua.h` of Lua 5.4 declares it with this type.
            set_global: unsafe { symbols::function(c"lua_setglobal") }?,
            // SAFETY: `lua.h` of Lua 5.4 declares it with this type.
            new_thread: unsafe { symbols::function(c"lua_newthread") }?,
        })
    }
}

/// What hooks need of the runtime.
pub(super) struct Lua {
    pub(super) get_info: GetInfo,
    /// That of `luaL_newstate`, whose argument is NULL.
    pub(super) standard_allocator: AllocateFunction,
    pub(super) places: &'static Places,
}
