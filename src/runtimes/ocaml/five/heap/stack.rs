//! The slots of stacks that hold values, frame by frame, through all fibers.
//!
//! As `caml_do_local_roots` and `caml_scan_stack` (`runtime/roots.c` and `fiber.c`, 5.3.0),
//! which report the same slots without saying whose they are.

use heaptap_heap::RootOwner;

use crate::runtimes::ocaml::descriptors::Descriptors;
use crate::runtimes::ocaml::five::layout::{HANDLER_PARENT, STACK_HANDLER, STACK_SP};
use crate::runtimes::ocaml::heap::blocks::BlockWriter;
use crate::snapshot::WalkError;
use crate::tracer::WORD;

/// `frame_descr` (`runtime/caml/frame_descriptors.h`): where its parts are, in bytes.
const FRAME_SIZE: usize = 8;
const LIVE_COUNT: usize = 10;
const LIVE_SLOTS: usize = 12;

/// The frame at which OCaml code was called from C.
const RETURN_TO_C: u16 = 0xffff;
/// `Saved_gc_regs` and `Stack_header_size` (`runtime/caml/stack.h`), in bytes.
const SAVED_GC_REGS: usize = 24;
const STACK_HEADER: usize = 32;

/// `stack_handler`: value, exception and effect.
const HANDLERS: usize = 3;

/// Names the slot of a stack: depth of its frame, return address, number of the slot.
pub(super) type Owner<'a> = &'a dyn Fn(u32, u64, u32) -> RootOwner;

/// Writes the roots of a stack and of its parents. Returns how many slots there are.
pub(super) fn write(
    writer: &mut BlockWriter<'_, '_>,
    descriptors: &Descriptors,
    first: usize,
    gc_regs: usize,
    owner: Owner<'_>,
) -> Result<u64, WalkError> {
    let words = writer.words;
    let (mut stack, mut depth, mut slots) = (first, 0, 0);
    while stack != 0 {
        slots += write_frames(writer, descriptors, stack, gc_regs, &mut depth, owner)?;
        let handler = words.field(stack, STACK_HANDLER);
        for index in 0..HANDLERS {
            writer.root(owner(depth, 0, index as u32), words.field(handler, index))?;
            slots += 1;
        }
        stack = words.field(handler, HANDLER_PARENT);
    }
    Ok(slots)
}

fn write_frames(
    writer: &mut BlockWriter<'_, '_>,
    descriptors: &Descriptors,
    stack: usize,
    gc_regs: usize,
    depth: &mut u32,
    owner: Owner<'_>,
) -> Result<u64, WalkError> {
    let words = writer.words;
    let high = words.field(stack, STACK_HANDLER);
    let (mut sp, mut regs, mut slots) = (words.field(stack, STACK_SP), gc_regs, 0);
    while sp != high {
        // `First_frame`
        sp += WORD;
        loop {
            let return_address = words.word(sp - WORD) as u64;
            let descriptor = descriptors.record(return_address) as usize;
            if descriptor == 0 {
                return Err(WalkError::Heap("a return address without a frame descriptor"));
            }
            let size = words.short(descriptor + FRAME_SIZE);
            if size == RETURN_TO_C {
                regs = words.word(sp + SAVED_GC_REGS);
                sp += STACK_HEADER;
                break;
            }
            let count = usize::from(words.short(descriptor + LIVE_COUNT));
            for index in 0..count {
                let offset = usize::from(words.short(descriptor + LIVE_SLOTS + 2 * index));
                // An odd offset is the number of a register.
                let slot = if offset & 1 == 1 { regs + (offset >> 1) * WORD } else { sp + offset };
                writer.root(owner(*depth, return_address, index as u32), words.word(slot))?;
                slots += 1;
            }
            // The lowest bits are flags.
            sp += usize::from(size & 0xfffc);
            *depth += 1;
        }
    }
    Ok(slots)
}
