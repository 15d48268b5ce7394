//! The slots of stacks that hold values, frame by frame.
//!
//! As `caml_do_local_roots_nat` and `caml_do_local_roots_byt` (`runtime/roots_nat.c` and
//! `roots_byt.c`, 4.14.1), which report the same slots without saying whose they are.

use heaptap_heap::RootOwner;

use super::variables::Variables;
use crate::runtimes::ocaml::Descriptors;
use crate::runtimes::ocaml::bytecode::{BytecodeStack, Code, HandlerLink};
use crate::runtimes::ocaml::frame_descriptor::{LiveSlots, RETURN_TO_C};
use crate::runtimes::ocaml::heap::{
    BlockWriter, BytecodeFrame, BytecodeFrames, CodeKind, Thread, Words,
};
use crate::snapshot::WalkError;
use crate::tracer::WORD;

/// `Callback_link`: where a frame at which OCaml code was called from C keeps the `caml_context` of the OCaml code below.
const CALLBACK_LINK: usize = 16;

/// A stack that is not being run, or whose thread stands still.
#[derive(Clone, Copy)]
pub(super) enum Stack {
    Native {
        /// `bottom_of_stack`: 0 if no OCaml code has run.
        sp: usize,
        return_address: usize,
        gc_regs: usize,
    },
    Bytecode(BytecodeStack),
}

impl Stack {
    /// The running thread's.
    pub(super) fn running(variables: &Variables, words: Words) -> Stack {
        let state = |index| variables.state(words, index);
        let layout = variables.layout;
        if variables.code.is_native() {
            Stack::Native {
                sp: state(layout.bottom_of_stack),
                return_address: state(layout.last_return_address),
                gc_regs: state(layout.gc_regs),
            }
        } else {
            bytecode(state(layout.extern_sp), state(layout.stack_high), state(layout.trapsp))
        }
    }

    /// Another thread's, as it has saved it (`struct caml_thread_struct`).
    pub(super) fn saved(variables: &Variables, words: Words, thread: Thread) -> Stack {
        let saved = |index| words.field(thread.0, index);
        if variables.code.is_native() {
            Stack::Native { sp: saved(4), return_address: saved(5), gc_regs: saved(6) }
        } else {
            bytecode(saved(6), saved(4), saved(7))
        }
    }
}

fn bytecode(sp: usize, high: usize, handler: usize) -> Stack {
    Stack::Bytecode(BytecodeStack { sp, high, handler, link: HandlerLink::FromHandler })
}

/// Writes the roots of a thread: its stack, and its local variables in C. Returns how many
/// slots there are.
pub(super) fn write(
    variables: &Variables,
    writer: &mut BlockWriter<'_, '_>,
    stack: Stack,
    thread: u32,
    local_roots: usize,
) -> Result<u64, WalkError> {
    let on_stack = match (stack, &variables.code) {
        (Stack::Native { sp, return_address, gc_regs }, CodeKind::Native { descriptors, .. }) => {
            let frame = Frame { sp, return_address, gc_regs };
            write_native(writer, descriptors, frame, thread)?
        }
        (Stack::Bytecode(stack), &CodeKind::Bytecode { code, .. }) => {
            write_bytecode(writer, code, stack, thread)?
        }
        _ => 0,
    };
    Ok(on_stack + write_local(writer, local_roots, thread)?)
}

/// Where a walk over frames is.
struct Frame {
    sp: usize,
    return_address: usize,
    /// Where registers were saved.
    gc_regs: usize,
}

fn write_native(
    writer: &mut BlockWriter<'_, '_>,
    descriptors: &Descriptors,
    mut frame: Frame,
    thread: u32,
) -> Result<u64, WalkError> {
    let words = writer.words;
    let (mut depth, mut slots) = (0, 0);
    while frame.sp != 0 {
        let descriptor = descriptors.record(frame.return_address as u64) as usize;
        if descriptor == 0 {
            return Err(WalkError::Heap("a return address without a frame descriptor"));
        }
        // SAFETY: a descriptor of the runtime's index, which is constant data of the program.
        let live = unsafe { LiveSlots::read(descriptor) };
        if live.frame == RETURN_TO_C {
            let context = frame.sp + CALLBACK_LINK;
            frame = Frame {
                sp: words.field(context, 0),
                return_address: words.field(context, 1),
                gc_regs: words.field(context, 2),
            };
            continue;
        }
        let return_address = frame.return_address as u64;
        for (slot, address) in (0..).zip(live.slots(frame.sp, frame.gc_regs)) {
            let owner = RootOwner::Stack { thread, depth, return_address, slot };
            writer.root(owner, words.word(address))?;
            slots += 1;
        }
        frame.sp += live.size();
        frame.return_address = words.word(frame.sp - WORD);
        depth += 1;
    }
    Ok(slots)
}

/// Every word may be a value.
fn write_bytecode(
    writer: &mut BlockWriter<'_, '_>,
    code: Option<Code>,
    stack: BytecodeStack,
    thread: u32,
) -> Result<u64, WalkError> {
    let words = writer.words;
    let mut frames = code.map(|code| BytecodeFrames::new(words, code.now(), stack, 0));
    let mut slots = 0;
    for at in (stack.sp..stack.high).step_by(WORD) {
        let frame = frames.as_mut().map(|frames| frames.of(at)).unwrap_or_default();
        let BytecodeFrame { depth, return_address } = frame;
        let owner = RootOwner::Stack { thread, depth, return_address, slot: slots as u32 };
        writer.root(owner, words.word(at))?;
        slots += 1;
    }
    Ok(slots)
}

/// `struct caml__roots_block` (`runtime/caml/memory.h`): next, number of tables, number of
/// items in each, tables.
fn write_local(
    writer: &mut BlockWriter<'_, '_>,
    first: usize,
    thread: u32,
) -> Result<u64, WalkError> {
    let words = writer.words;
    let (mut roots, mut slots) = (first, 0);
    while roots != 0 {
        let (tables, items) = (words.field(roots, 1), words.field(roots, 2));
        for table in 0..tables {
            let table = words.field(roots, 3 + table);
            for item in 0..items {
                writer.root(RootOwner::LocalC { thread }, words.field(table, item))?;
                slots += 1;
            }
        }
        roots = words.field(roots, 0);
    }
    Ok(slots)
}
