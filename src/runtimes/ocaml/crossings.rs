//! How a walk gets from OCaml code to the OCaml code behind it: past the C code that
//! called back, or from a fiber to its parent.
//!
//! Runs on mutators, inside hooks.

use crate::stack::formats::{Crossing, CrossingRule, StackReader};

/// `Val_unit` (`runtime/caml/mlvalues.h`).
const UNIT: u64 = 1;

/// OCaml 4, the return from `caml_start_program`: a `caml_context`
/// {`bottom_of_stack`, `last_retaddr`, `gc_regs`} lies at `sp + 16`
/// (`Callback_link`, `runtime/caml/stack.h`, 4.14.1). A NULL bottom ends the stack
/// (`caml_next_frame_descriptor`, `runtime/backtrace_nat.c`).
pub(super) static CONTEXT: CrossingRule = CrossingRule { offset: 16, end: 0, cross: cross_context };

fn cross_context(at: u64, bottom: u64, stack: &mut dyn StackReader) -> Option<Crossing> {
    let read_at = at.checked_add(8)?;
    let return_address = stack.word(read_at)?;
    Some(Crossing::Frame { sp: bottom, return_address, read_at })
}

/// OCaml 5, the return from `caml_start_program`: behind `Stack_header_size` = 32
/// bytes (`runtime/caml/stack.h`, 5.3.0) the next chunk of the same stack begins with
/// its return address. If this was the first call on a thread's own stack, that
/// stack's `stack_handler` is there instead, which begins with the unit value
/// (`caml_alloc_main_stack`, `runtime/fiber.c`) and has no parent.
pub(super) static CALLBACK: CrossingRule =
    CrossingRule { offset: 32, end: UNIT, cross: cross_callback };

fn cross_callback(at: u64, return_address: u64, _: &mut dyn StackReader) -> Option<Crossing> {
    Some(Crossing::Frame { sp: at.checked_add(8)?, return_address, read_at: at })
}

/// OCaml 5, the return to `caml_runstack`, a fiber's first frame: behind the same 32
/// bytes lies the fiber's `stack_handler` {`handle_value`, `handle_exn`,
/// `handle_effect`, `parent`} (`runtime/caml/fiber.h`, 5.3.0). The parent's frames
/// begin at its `sp`, its first field (`caml_get_stack_sp_pc`, `runtime/fiber.c`).
/// While a callback from C runs, the parent is NULL, and the runtime's own
/// backtraces end there too.
pub(super) static FIBER: CrossingRule =
    CrossingRule { offset: 32 + 24, end: 0, cross: cross_fiber };

fn cross_fiber(_: u64, parent: u64, stack: &mut dyn StackReader) -> Option<Crossing> {
    let read_at = stack.word(parent)?;
    let return_address = stack.word(read_at)?;
    Some(Crossing::Frame { sp: read_at.checked_add(8)?, return_address, read_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::formats::MAX_WITNESSES;

    /// Words from address 0x1000 up, and what was read of them.
    struct Stack {
        words: Vec<u64>,
        read: Vec<(u64, u64)>,
    }

    impl StackReader for Stack {
        fn word(&mut self, address: u64) -> Option<u64> {
            let offset = address.checked_sub(0x1000).filter(|offset| offset % 8 == 0)?;
            let word = *self.words.get(offset as usize / 8)?;
            self.read.push((address, word));
            Some(word)
        }
    }

    fn crossed(words: &[u64], rule: &CrossingRule) -> (Option<Crossing>, Vec<(u64, u64)>) {
        let mut stack = Stack { words: words.to_vec(), read: Vec::new() };
        let crossing = rule.apply(0x1000, &mut stack);
        assert!(stack.read.len() <= MAX_WITNESSES);
        (crossing, stack.read)
    }

    #[test]
    fn a_context_of_ocaml_4_lies_16_bytes_up() {
        let (crossing, read) = crossed(&[9, 9, 0x2000, 0xC0DE], &CONTEXT);
        let return_address = 0xC0DE;
        assert_eq!(crossing, Some(Crossing::Frame { sp: 0x2000, return_address, read_at: 0x1018 }));
        assert_eq!(read, [(0x1010, 0x2000), (0x1018, 0xC0DE)]);
        assert_eq!(crossed(&[9, 9, 0, 0xC0DE], &CONTEXT).0, Some(Crossing::End));
        assert_eq!(crossed(&[9, 9, 0x2000], &CONTEXT).0, None);
    }

    #[test]
    fn a_chunk_or_handler_of_ocaml_5_lies_32_bytes_up() {
        let (crossing, _) = crossed(&[9, 9, 9, 9, 0xC0DE], &CALLBACK);
        let return_address = 0xC0DE;
        assert_eq!(crossing, Some(Crossing::Frame { sp: 0x1028, return_address, read_at: 0x1020 }));
        let first_stack = [9, 9, 9, 9, 1, 1, 1, 0];
        assert_eq!(crossed(&first_stack, &CALLBACK).0, Some(Crossing::End));
        assert_eq!(crossed(&first_stack, &FIBER).0, Some(Crossing::End));

        let handler = [9, 9, 9, 9, 8, 8, 8, 0x1040, 0x1050, 9, 0xC0DE];
        let (crossing, read) = crossed(&handler, &FIBER);
        assert_eq!(crossing, Some(Crossing::Frame { sp: 0x1058, return_address, read_at: 0x1050 }));
        assert_eq!(read, [(0x1038, 0x1040), (0x1040, 0x1050), (0x1050, 0xC0DE)]);
        assert_eq!(crossed(&[9, 9, 9, 9, 8, 8, 8, 0x1041], &FIBER).0, None);
    }
}
