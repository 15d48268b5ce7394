//! Which instruction runs while a table is constructed.
//!
//! Every instruction of Lua 5.4.4 that may allocate saves its place first, except for two
//! (`lvm.c`): `OP_NEWTABLE` makes the table and gives it its size, and `OP_SETLIST` makes it
//! larger. There the interpreter's place in the code is only in a register, or on the C stack
//! where a function that it has called has saved that register. So registers and the words of
//! the C stack are searched for a place just behind such an instruction of the function that
//! runs, which also must be about to allocate just what is allocated. Runs in hooks.

use super::layout::{CallInfo, NODE_SIZE, Proto, TABLE_SIZE, Thread, VALUE_SIZE};

/// Registers that a function must leave as they were, and the stack pointer.
#[derive(Clone, Copy)]
pub(super) struct Registers {
    saved: [usize; 6],
    sp: usize,
}

impl Registers {
    /// Those of the function this is inlined into.
    #[inline(always)]
    pub(super) fn capture() -> Registers {
        let mut saved = [0usize; 6];
        let sp;
        // SAFETY: writes six words to `saved`, and copies a register; no flags, no stack.
        unsafe {
            core::arch::asm!(
                "mov [{to}], rbx",
                "mov [{to} + 8], rbp",
                "mov [{to} + 16], r12",
                "mov [{to} + 24], r13",
                "mov [{to} + 32], r14",
                "mov [{to} + 40], r15",
                "mov {sp}, rsp",
                to = in(reg) saved.as_mut_ptr(),
                sp = out(reg) sp,
                options(nostack, preserves_flags),
            );
        }
        Registers { saved, sp }
    }
}

/// What the runtime asks its allocator for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// A new block, not another size for one.
    pub(super) is_new: bool,
    /// Of a new block what it is for: `LUA_TTABLE`, ….
    pub(super) kind: usize,
    /// In bytes.
    pub(super) size: usize,
}

/// The words of the C stack that are searched: more than the frames from a hook to the
/// interpreter have, most of which are ours.
const MOST_WORDS: usize = 192;
/// The same where the end of the stack is not known: these are there below any thread's first
/// frame.
const UNPROTECTED_WORDS: usize = 64;

/// `LUA_TTABLE`
const TABLE: usize = 5;

const OP_NEWTABLE: u32 = 19;
const OP_SETLIST: u32 = 78;

/// The instruction of a table constructor that the innermost call of `thread` executes while
/// it makes this request; `None` if it is at another one, which it has saved.
pub(super) fn running(
    thread: Thread,
    call: CallInfo,
    proto: Proto,
    request: Request,
    registers: &Registers,
) -> Option<usize> {
    let code = proto.code();
    let length = proto.instructions() * 4;
    let constructor = |word: usize| {
        let behind = word.wrapping_sub(code);
        if behind > length || !behind.is_multiple_of(4) {
            return None;
        }
        // The instruction may have another one behind it, with the rest of its argument.
        [1, 2].into_iter().find_map(|back| {
            let index = (behind / 4).checked_sub(back)?;
            asks(thread, call, proto, index, request).then_some(index)
        })
    };
    registers
        .saved
        .iter()
        .copied()
        .chain(stack_words(registers.sp, thread.error_jump()))
        .find_map(constructor)
}

/// The words from the stack pointer outwards, up to `end` at most.
fn stack_words(sp: usize, end: usize) -> impl Iterator<Item = usize> {
    let words = match end.checked_sub(sp) {
        Some(bytes) => (bytes / 8).min(MOST_WORDS),
        None => UNPROTECTED_WORDS,
    };
    // SAFETY: the words of the calling thread's stack between its stack pointer and a variable
    // of the function that runs this call protected, or of the frames that have called us.
    (0..words).map(move |index| unsafe { ((sp + index * 8) as *const usize).read_volatile() })
}

/// Whether an instruction is one of a table constructor and makes this request.
fn asks(thread: Thread, call: CallInfo, proto: Proto, index: usize, request: Request) -> bool {
    let Some(instruction) = proto.instruction(index) else { return false };
    let field = |shift: u32, mask: u32| (instruction >> shift & mask) as usize;
    let (a, b, c) = (field(7, 0xff), field(16, 0xff), field(24, 0xff));
    let rest = || {
        let has_rest = field(15, 1) != 0;
        let next = proto.instruction(index + 1).filter(|_| has_rest);
        next.map_or(0, |argument| (argument >> 7) as usize * 0x100)
    };
    match instruction & 0x7f {
        OP_NEWTABLE => {
            // Nothing behind its register is in use.
            if thread.top() != call.register(a + 1) {
                return false;
            }
            if request.kind == TABLE && request.is_new {
                return request.size == TABLE_SIZE;
            }
            let nodes = b.checked_sub(1).map(|power| NODE_SIZE << power.min(30));
            request.size == (c + rest()) * VALUE_SIZE || Some(request.size) == nodes
        }
        OP_SETLIST => {
            let open = || thread.top().wrapping_sub(call.register(a + 1)) / VALUE_SIZE;
            let count = if b == 0 { open() } else { b };
            call.holds_table(a) && request.size == (c + rest() + count) * VALUE_SIZE
        }
        _ => false,
    }
}
