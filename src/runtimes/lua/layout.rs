//! How Lua 5.4.4 lays out what a stack walk reads, on amd64.
//!
//! Offsets are of `lstate.h` and `lobject.h` of that release, with Debian's configuration, which
//! is Lua's own. `proof` compares them with the live process before anything is changed.

/// A place in the memory of a Lua state: whoever makes one promises that the object is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory(usize);

impl Memory {
    /// # Safety
    /// An object of the runtime lives at this address, or none of the methods is called; and it
    /// does not change or end while this value is used.
    pub(super) const unsafe fn at(address: usize) -> Memory {
        Memory(address)
    }

    #[inline]
    fn read<T: Copy>(self, offset: usize) -> T {
        // SAFETY: an object of the runtime, by `Memory::at`; the callers below name offsets of
        // fields that it has, of this type.
        unsafe { ((self.0 + offset) as *const T).read_unaligned() }
    }
}

/// `lua_State`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thread(Memory);

/// `CallInfo`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallInfo(Memory);

/// `Proto`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proto(Memory);

/// `global_State`
#[derive(Clone, Copy, Debug)]
pub(super) struct Global(Memory);

/// The bytes in front of a `lua_State` in its block (`LUA_EXTRASPACE`).
pub(super) const EXTRA_SPACE: usize = 8;
pub(super) const THREAD_SIZE: usize = 200;
pub(super) const GLOBAL_SIZE: usize = 1416;
/// The first block of a state: `LG`.
pub(super) const STATE_SIZE: usize = EXTRA_SPACE + THREAD_SIZE + GLOBAL_SIZE;
pub(super) const PROTO_SIZE: usize = 128;
pub(super) const TABLE_SIZE: usize = 56;
pub(super) const NODE_SIZE: usize = 24;
/// `TValue` and `StackValue`
pub(super) const VALUE_SIZE: usize = 16;

/// Where the first `CallInfo` of a thread is in it (`base_ci`).
pub(super) const BASE_CALL: usize = 96;

/// `CIST_C`
const IS_C: u16 = 1 << 1;
/// `ctb(LUA_VLCL)` and `ctb(LUA_VTABLE)`
const LUA_CLOSURE: u8 = 0x46;
const TABLE: u8 = 0x45;

impl Thread {
    /// # Safety
    /// See [`Memory::at`]: a `lua_State` of a runtime that was proved.
    #[inline]
    pub(super) const unsafe fn at(address: usize) -> Thread {
        // SAFETY: the same contract.
        Thread(unsafe { Memory::at(address) })
    }

    pub(super) fn address(self) -> usize {
        self.0.0
    }

    #[inline]
    pub(super) fn top(self) -> usize {
        self.0.read(16)
    }

    #[inline]
    pub(super) fn global(self) -> Global {
        // SAFETY: `l_G` points to the state that the thread belongs to.
        Global(unsafe { Memory::at(self.0.read(24)) })
    }

    #[inline]
    pub(super) fn innermost(self) -> Option<CallInfo> {
        CallInfo::of(self.0.read(32))
    }

    /// `errorJmp`: on the C stack, outside of the frames of what runs protected; 0 if nothing is.
    #[inline]
    pub(super) fn error_jump(self) -> usize {
        self.0.read(88)
    }
}

impl Global {
    pub(super) fn address(self) -> usize {
        self.0.0
    }

    /// `frealloc` and `ud`
    #[inline]
    pub(super) fn allocator(self) -> (usize, usize) {
        (self.0.read(0), self.0.read(8))
    }

    /// The bytes in use, as the collector counts them: `totalbytes + GCdebt`.
    pub(super) fn bytes(self) -> isize {
        self.0.read::<isize>(16) + self.0.read::<isize>(24)
    }

    #[inline]
    pub(super) fn main_thread(self) -> usize {
        self.0.read(264)
    }
}

impl CallInfo {
    pub(super) const SIZE: usize = 64;

    fn of(address: usize) -> Option<CallInfo> {
        // SAFETY: the innermost call of a thread, or one that a call of it was called from; all
        // are alive until that one returns.
        (address != 0).then(|| CallInfo(unsafe { Memory::at(address) }))
    }

    pub(super) fn address(self) -> usize {
        self.0.0
    }

    /// The slot of the function, below its first register.
    #[inline]
    pub(super) fn function_slot(self) -> usize {
        self.0.read(0)
    }

    #[inline]
    pub(super) fn caller(self) -> Option<CallInfo> {
        CallInfo::of(self.0.read(16))
    }

    /// The Lua function that runs in it; `None` if it is written in C.
    #[inline]
    pub(super) fn lua_function(self) -> Option<Proto> {
        if self.is_c() {
            return None;
        }
        // SAFETY: a closure in Lua, which has a prototype.
        let closure = unsafe { Memory::at(self.lua_closure()?) };
        // SAFETY: the prototype, which the closure keeps alive.
        Some(Proto(unsafe { Memory::at(closure.read(24)) }))
    }

    /// The same for the proof, which has found out whether there is a closure of that size.
    pub(super) fn lua_function_if(self, has_closure: bool) -> Option<Proto> {
        if has_closure { self.lua_function() } else { None }
    }

    /// Whether the function that runs in it is written in C, or nothing runs in it.
    #[inline]
    pub(super) fn is_c(self) -> bool {
        self.0.read::<u16>(62) & IS_C != 0
    }

    /// The closure in the slot of the function, if that is one in Lua.
    #[inline]
    pub(super) fn lua_closure(self) -> Option<usize> {
        // SAFETY: the stack's slot of this call's function.
        let slot = unsafe { Memory::at(self.function_slot()) };
        (slot.read::<u8>(8) == LUA_CLOSURE).then(|| slot.read(0))
    }

    /// The instruction behind the one that was last saved. Of a Lua function.
    #[inline]
    pub(super) fn saved_pc(self) -> usize {
        self.0.read(32)
    }

    /// Whether this register of a Lua function holds a table.
    pub(super) fn holds_table(self, register: usize) -> bool {
        // SAFETY: a register that an instruction of the running function names is on the stack.
        let slot = unsafe { Memory::at(self.register(register)) };
        slot.read::<u8>(8) == TABLE
    }

    /// The address of a register of a Lua function.
    pub(super) fn register(self, register: usize) -> usize {
        self.function_slot() + (1 + register) * VALUE_SIZE
    }
}

impl Proto {
    /// # Safety
    /// See [`Memory::at`]: a `Proto` of a runtime that was proved.
    #[cfg(test)]
    pub(super) const unsafe fn at(address: usize) -> Proto {
        // SAFETY: the same contract.
        Proto(unsafe { Memory::at(address) })
    }

    pub(super) fn address(self) -> usize {
        self.0.0
    }

    /// The first instruction.
    #[inline]
    pub(super) fn code(self) -> usize {
        self.0.read(64)
    }

    /// The number of instructions.
    #[inline]
    pub(super) fn instructions(self) -> usize {
        usize::try_from(self.0.read::<i32>(24)).unwrap_or(0)
    }

    /// An instruction that the function has.
    pub(super) fn instruction(self, index: usize) -> Option<u32> {
        let is_there = index < self.instructions();
        // SAFETY: the array of instructions, which has this one.
        is_there.then(|| unsafe { Memory::at(self.code()) }.read(index * 4))
    }

    /// Where it was defined; 0: it is a main chunk.
    pub(super) fn line_defined(self) -> u32 {
        u32::try_from(self.0.read::<i32>(44)).unwrap_or(0)
    }

    /// The difference of this instruction's line to the one before. `None` if the chunk was
    /// stripped.
    pub(super) fn line_difference(self, index: usize) -> Option<i8> {
        let (count, array): (i32, usize) = (self.0.read(28), self.0.read(88));
        let is_there = array != 0 && index < usize::try_from(count).unwrap_or(0);
        // SAFETY: `lineinfo` has `sizelineinfo` bytes.
        is_there.then(|| unsafe { Memory::at(array) }.read(index))
    }

    /// An entry of `abslineinfo`: an instruction, and its line.
    pub(super) fn absolute_line(self, index: usize) -> Option<(usize, i32)> {
        let (count, array): (i32, usize) = (self.0.read(40), self.0.read(96));
        if array == 0 || index >= usize::try_from(count).unwrap_or(0) {
            return None;
        }
        // SAFETY: `abslineinfo` has `sizeabslineinfo` pairs of `int`.
        let entry = unsafe { Memory::at(array + index * 8) };
        Some((usize::try_from(entry.read::<i32>(0)).ok()?, entry.read(4)))
    }

    /// The address and the size in bytes of what it points to: its instructions, the differences
    /// of their lines, and lines as they are. For the proof.
    pub(super) fn arrays(self) -> [(usize, usize); 3] {
        let size = |count: usize, of: usize| {
            usize::try_from(self.0.read::<i32>(count)).unwrap_or(0).saturating_mul(of)
        };
        [(self.code(), size(24, 4)), (self.0.read(88), size(28, 1)), (self.0.read(96), size(40, 8))]
    }

    /// The address of the name of its chunk.
    pub(super) fn source_address(self) -> usize {
        self.0.read(112)
    }

    /// The name of its chunk: `@file`, `=name` or the text itself. `None` if it was stripped.
    pub(super) fn source(self) -> Option<&'static [u8]> {
        /// `LUA_VLNGSTR`
        const LONG: u8 = 0x14;
        let address = self.source_address();
        if address == 0 {
            return None;
        }
        // SAFETY: a string that the function keeps alive.
        let string = unsafe { Memory::at(address) };
        let is_long = string.read::<u8>(8) & 0x3f == LONG;
        let length = if is_long { string.read(16) } else { usize::from(string.read::<u8>(11)) };
        // SAFETY: its characters, which its length counts. Used while the function is alive only:
        // callers copy them.
        Some(unsafe { std::slice::from_raw_parts((address + 24) as *const u8, length) })
    }
}
