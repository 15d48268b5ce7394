//! The slots of stacks that hold values, frame by frame, through all fibers.
//!
//! As `caml_do_local_roots` and `caml_scan_stack` (`runtime/roots.c` and `fiber.c`, 5.3.0),
//! which report the same slots without saying whose they are.

use heaptap_heap::RootOwner;

use super::stack_slot::{MOST_EMPTY_FIBERS, SlotPlace, StackTop};
use crate::runtimes::ocaml::Descriptors;
use crate::runtimes::ocaml::five::layout::{HANDLER_PARENT, STACK_HANDLER, STACK_SP};
use crate::runtimes::ocaml::frame_descriptor::{LiveSlots, RETURN_TO_C};
use crate::runtimes::ocaml::heap::{BlockWriter, Words};
use crate::snapshot::WalkError;
use crate::sys::process_memory::ProcessMemory;
use crate::tracer::WORD;

/// `Saved_gc_regs` and `Stack_header_size` (`runtime/caml/stack.h`), in bytes.
const SAVED_GC_REGS: usize = 24;
const STACK_HEADER: usize = 32;

/// `stack_handler`: value, exception and effect.
const HANDLERS: usize = 3;

/// Names the slot of a stack.
pub(super) type Owner<'a> = &'a dyn Fn(SlotPlace) -> RootOwner;

/// A slot of a stack, or of the registers that were saved with it, that holds a value.
#[derive(Clone, Copy)]
pub(super) struct StackSlot {
    pub(super) address: usize,
    place: SlotPlace,
}

/// What is called for each slot. An error ends the walk.
type SlotVisitor<'a> = &'a mut dyn FnMut(StackSlot) -> Result<(), WalkError>;

/// Writes the roots of a stack and of its parents. Returns how many slots there are.
pub(super) fn write(
    writer: &mut BlockWriter<'_, '_>,
    descriptors: &Descriptors,
    top: StackTop,
    owner: Owner<'_>,
) -> Result<u64, WalkError> {
    let words = writer.words;
    let mut slots = 0;
    for_each_slot(words, descriptors, top, &mut |slot| {
        slots += 1;
        writer.root(owner(slot.place), words.word(slot.address))
    })?;
    Ok(slots)
}

/// Visits the slots of a stack and of its parents in the order in which `caml_scan_stack`
/// reports them.
pub(super) fn for_each_slot(
    words: Words,
    descriptors: &Descriptors,
    top: StackTop,
    visit: SlotVisitor<'_>,
) -> Result<(), WalkError> {
    let (mut stack, mut depth, mut fiber) = (top.stack, 0, 0);
    while stack != 0 {
        depth = for_each_in_fiber(words, descriptors, StackTop { stack, ..top }, depth, visit)?;
        let handler = words.field(stack, STACK_HANDLER);
        let parent = words.field(handler, HANDLER_PARENT);
        let return_address = newest_frame(words, descriptors, parent);
        for index in 0..HANDLERS {
            let (depth, index_in_handler) = (fiber, index as u32);
            let place =
                SlotPlace { depth, return_address, index: index_in_handler, is_handler: true };
            visit(StackSlot { address: handler + index * WORD, place })?;
        }
        stack = parent;
        fiber += 1;
    }
    Ok(())
}

/// The return address of the newest frame of a stack or its parents; 0 if it is not near. A fiber
/// that was begun by a tail call has none on top.
fn newest_frame(words: Words, descriptors: &Descriptors, first: usize) -> u64 {
    let mut stack = first;
    for _ in 0..MOST_EMPTY_FIBERS {
        if stack == 0 {
            break;
        }
        let (sp, high) = (words.field(stack, STACK_SP), words.field(stack, STACK_HANDLER));
        if sp != high {
            let return_address = words.word(sp) as u64;
            let descriptor = descriptors.record(return_address) as usize;
            // SAFETY: a descriptor of the runtime's index, which is constant data of the program.
            if descriptor == 0 || unsafe { LiveSlots::read(descriptor) }.frame != RETURN_TO_C {
                return return_address;
            }
        }
        stack = words.field(high, HANDLER_PARENT);
    }
    0
}

/// Whether every frame of a stack and of its parents can be found.
///
/// A continuation that is dead may point to a stack that is running or freed: after
/// `Effect.Unhandled` its first field is left as it was (`caml_perform`, `runtime/amd64.S`, 5.3.0).
/// The stack of one that is alive always passes. The reads cannot fault.
pub(super) fn is_whole(memory: &ProcessMemory, descriptors: &Descriptors, first: usize) -> bool {
    ends(first, |stack| parent_of_whole(memory, descriptors, stack))
}

/// Whether a chain of stacks ends, where `parent` finds that of each, or `None` if it is no stack.
pub(super) fn ends(first: usize, parent: impl Fn(usize) -> Option<usize>) -> bool {
    const MOST_FIBERS: usize = 1 << 20;
    let chain = std::iter::successors(Some(first), |&stack| parent(stack));
    chain.take(MOST_FIBERS).any(|stack| stack == 0)
}

/// The parent of a stack whose frames end at its handler; `None` if they do not.
fn parent_of_whole(
    memory: &ProcessMemory,
    descriptors: &Descriptors,
    stack: usize,
) -> Option<usize> {
    let word = |address: usize, index: usize| memory.word(address.checked_add(index * WORD)?);
    let high = word(stack, STACK_HANDLER)?;
    let (mut sp, mut has_regs) = (word(stack, STACK_SP)?, false);
    if sp <= stack || !sp.is_multiple_of(WORD) {
        return None;
    }
    while sp != high {
        sp += WORD;
        loop {
            if sp > high {
                return None;
            }
            let descriptor = descriptors.record(memory.word(sp - WORD)? as u64) as usize;
            if descriptor == 0 {
                return None;
            }
            // SAFETY: a descriptor of the runtime's index, which is constant data of the program.
            let frame = unsafe { LiveSlots::read(descriptor) };
            if frame.frame == RETURN_TO_C {
                has_regs = true;
                sp += STACK_HEADER;
                break;
            }
            if !has_regs && frame.offsets.iter().any(|&offset| offset & 1 == 1) {
                return None;
            }
            sp += frame.size();
        }
    }
    word(high, HANDLER_PARENT)
}

/// Visits the slots of one stack, whose first frame has this depth. Returns the depth of the
/// frame after its last.
fn for_each_in_fiber(
    words: Words,
    descriptors: &Descriptors,
    top: StackTop,
    mut depth: u32,
    visit: SlotVisitor<'_>,
) -> Result<u32, WalkError> {
    const NO_FRAME: WalkError = WalkError::Heap("a return address without a frame descriptor");
    let high = words.field(top.stack, STACK_HANDLER);
    let (mut sp, mut regs) = (words.field(top.stack, STACK_SP), top.gc_regs);
    while sp != high {
        // `First_frame`
        sp += WORD;
        loop {
            if sp > high {
                return Err(NO_FRAME);
            }
            let return_address = words.word(sp - WORD) as u64;
            let descriptor = descriptors.record(return_address) as usize;
            if descriptor == 0 {
                return Err(NO_FRAME);
            }
            // SAFETY: a descriptor of the runtime's index, which is constant data of the program.
            let frame = unsafe { LiveSlots::read(descriptor) };
            if frame.frame == RETURN_TO_C {
                regs = words.word(sp + SAVED_GC_REGS);
                sp += STACK_HEADER;
                break;
            }
            for (index, address) in (0..).zip(frame.slots(sp, regs)) {
                let place = SlotPlace { depth, return_address, index, is_handler: false };
                visit(StackSlot { address, place })?;
            }
            sp += frame.size();
            depth += 1;
        }
    }
    Ok(depth)
}
