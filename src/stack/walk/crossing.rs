//! From one chunk of managed frames to the next, behind the C code or the fiber
//! in between: one rule for each table format.
//!
//! A rule reports every word that it looks at, in the order in which it does, so
//! that the words' staying the same means the crossing's staying the same, and
//! so that each may be read again if those before it are unchanged.

use super::super::formats::{
    CROSS_NEUTRAL, CROSS_NEUTRAL_HIDDEN, CROSS_OCAML4, CROSS_OCAML5_CALLBACK, CROSS_OCAML5_FIBER,
    Step,
};
use super::super::memory::Memory;

/// OCaml's `Val_unit`.
const UNIT: u64 = 1;

/// Where a crossing leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crossing {
    /// To a frame, whose return address was read at `read_at`.
    Frame { sp: u64, return_address: u64, read_at: u64 },
    /// There are no more frames.
    End,
    /// The words make no sense.
    Broken,
}

/// Whether the stack ends at a boundary frame whose stack pointer is `sp`.
#[inline(always)]
pub(super) fn ends<M: Memory>(memory: &M, step: Step, sp: u64) -> bool {
    cross(memory, step, sp, &mut Unwitnessed) == Crossing::End
}

/// Reads words for a rule.
pub(super) trait Reads {
    fn read<M: Memory>(&mut self, memory: &M, at: u64) -> Option<u64>;
}

/// Of a crossing that need not be known again.
struct Unwitnessed;

impl Reads for Unwitnessed {
    #[inline(always)]
    fn read<M: Memory>(&mut self, memory: &M, at: u64) -> Option<u64> {
        memory.word(at)
    }
}

/// A word and where it was read.
pub(super) type Witness = (u64, u64);

/// The witnesses of one crossing: no rule looks at more than three words.
#[derive(Default)]
pub(super) struct Witnesses {
    words: [Witness; 3],
    count: usize,
}

impl Witnesses {
    pub(super) fn iter(&self) -> impl Iterator<Item = Witness> {
        self.words.iter().take(self.count).copied()
    }
}

impl Reads for Witnesses {
    fn read<M: Memory>(&mut self, memory: &M, at: u64) -> Option<u64> {
        let value = memory.word(at)?;
        *self.words.get_mut(self.count)? = (at, value);
        self.count += 1;
        Some(value)
    }
}

/// Crosses at a boundary frame whose stack pointer is `sp`.
#[inline(always)]
pub(super) fn cross<M: Memory>(
    memory: &M,
    step: Step,
    sp: u64,
    witnesses: &mut impl Reads,
) -> Crossing {
    let crossing = match step {
        CROSS_NEUTRAL | CROSS_NEUTRAL_HIDDEN => neutral(memory, sp, witnesses),
        CROSS_OCAML4 => ocaml4(memory, sp, witnesses),
        CROSS_OCAML5_CALLBACK => ocaml5_callback(memory, sp, witnesses),
        CROSS_OCAML5_FIBER => ocaml5_fiber(memory, sp, witnesses),
        _ => None,
    };
    crossing.unwrap_or(Crossing::Broken)
}

/// A `heaptap_frame_link` {sp, return address} at `sp`; return address 0 ends.
fn neutral<M: Memory>(memory: &M, sp: u64, witnesses: &mut impl Reads) -> Option<Crossing> {
    let read_at = sp.checked_add(8)?;
    let next = witnesses.read(memory, sp)?;
    let return_address = witnesses.read(memory, read_at)?;
    Some(match return_address {
        0 => Crossing::End,
        _ => Crossing::Frame { sp: next, return_address, read_at },
    })
}

/// A `caml_context` {`bottom_of_stack`, `last_retaddr`, `gc_regs`} at `sp + 16`
/// (`Callback_link`, `runtime/caml/stack.h`, 4.14.1); NULL bottom ends
/// (`caml_next_frame_descriptor`, `runtime/backtrace_nat.c`).
fn ocaml4<M: Memory>(memory: &M, sp: u64, witnesses: &mut impl Reads) -> Option<Crossing> {
    let read_at = sp.checked_add(24)?;
    let bottom = witnesses.read(memory, read_at - 8)?;
    if bottom == 0 {
        return Some(Crossing::End);
    }
    let return_address = witnesses.read(memory, read_at)?;
    Some(Crossing::Frame { sp: bottom, return_address, read_at })
}

/// At a return from `caml_start_program`: behind `Stack_header_size` = 32 bytes
/// (`runtime/caml/stack.h`, 5.3.0) the next chunk of the same stack begins with
/// its return address, or, if this was the first call on a thread's own stack,
/// there is that stack's `stack_handler`, which begins with the unit value
/// (`caml_alloc_main_stack`, `runtime/fiber.c`) and has no parent.
fn ocaml5_callback<M: Memory>(memory: &M, sp: u64, witnesses: &mut impl Reads) -> Option<Crossing> {
    let read_at = sp.checked_add(32)?;
    let return_address = witnesses.read(memory, read_at)?;
    if return_address == UNIT {
        return Some(Crossing::End);
    }
    Some(Crossing::Frame { sp: read_at.checked_add(8)?, return_address, read_at })
}

/// At a return to `caml_runstack`, a fiber's first frame: behind the same 32
/// bytes lies its `stack_handler` {`handle_value`, `handle_exn`,
/// `handle_effect`, `parent`} (`runtime/caml/fiber.h`, 5.3.0). The parent's
/// frames begin at its `sp`, its first field (`caml_get_stack_sp_pc`,
/// `runtime/fiber.c`). While a callback from C runs, the parent is NULL, and
/// the runtime's own backtraces end there too.
fn ocaml5_fiber<M: Memory>(memory: &M, sp: u64, witnesses: &mut impl Reads) -> Option<Crossing> {
    let parent = witnesses.read(memory, sp.checked_add(32 + 24)?)?;
    if parent == 0 {
        return Some(Crossing::End);
    }
    let read_at = witnesses.read(memory, parent)?;
    let return_address = witnesses.read(memory, read_at)?;
    Some(Crossing::Frame { sp: read_at.checked_add(8)?, return_address, read_at })
}

#[cfg(test)]
mod tests {
    use super::super::super::memory::Words;
    use super::*;

    fn crossed(words: Vec<u64>, step: Step, sp: u64) -> (Crossing, Vec<Witness>) {
        let memory = Words { base: 0x1000, words };
        let mut witnesses = Witnesses::default();
        let crossing = cross(&memory, step, sp, &mut witnesses);
        (crossing, witnesses.iter().collect())
    }

    #[test]
    fn a_neutral_link_lies_at_sp() {
        let (crossing, witnesses) = crossed(vec![0, 0x2000, 0xC0DE], CROSS_NEUTRAL, 0x1008);
        let return_address = 0xC0DE;
        assert_eq!(crossing, Crossing::Frame { sp: 0x2000, return_address, read_at: 0x1010 });
        assert_eq!(witnesses, [(0x1008, 0x2000), (0x1010, 0xC0DE)]);
        assert_eq!(crossed(vec![0x2000, 0], CROSS_NEUTRAL_HIDDEN, 0x1000).0, Crossing::End);
        assert_eq!(crossed(vec![0x2000], CROSS_NEUTRAL, 0x1000).0, Crossing::Broken);
    }

    #[test]
    fn an_ocaml_4_context_lies_16_bytes_up() {
        let (crossing, _) = crossed(vec![9, 9, 0x2000, 0xC0DE], CROSS_OCAML4, 0x1000);
        let return_address = 0xC0DE;
        assert_eq!(crossing, Crossing::Frame { sp: 0x2000, return_address, read_at: 0x1018 });
        assert_eq!(crossed(vec![9, 9, 0, 0xC0DE], CROSS_OCAML4, 0x1000).0, Crossing::End);
    }

    #[test]
    fn an_ocaml_5_chunk_or_handler_lies_32_bytes_up() {
        let words = vec![9, 9, 9, 9, 0xC0DE];
        let (crossing, _) = crossed(words, CROSS_OCAML5_CALLBACK, 0x1000);
        let return_address = 0xC0DE;
        assert_eq!(crossing, Crossing::Frame { sp: 0x1028, return_address, read_at: 0x1020 });
        let words = vec![9, 9, 9, 9, 1, 1, 1, 0];
        assert_eq!(crossed(words.clone(), CROSS_OCAML5_CALLBACK, 0x1000).0, Crossing::End);
        assert_eq!(crossed(words, CROSS_OCAML5_FIBER, 0x1000).0, Crossing::End);

        let handler = vec![9, 9, 9, 9, 8, 8, 8, 0x1040, 0x1050, 9, 0xC0DE];
        let (crossing, witnesses) = crossed(handler, CROSS_OCAML5_FIBER, 0x1000);
        assert_eq!(crossing, Crossing::Frame { sp: 0x1058, return_address, read_at: 0x1050 });
        assert_eq!(witnesses, [(0x1038, 0x1040), (0x1040, 0x1050), (0x1050, 0xC0DE)]);
        let words = vec![9, 9, 9, 9, 8, 8, 8, 0x1041];
        assert_eq!(crossed(words, CROSS_OCAML5_FIBER, 0x1000).0, Crossing::Broken);
    }
}
