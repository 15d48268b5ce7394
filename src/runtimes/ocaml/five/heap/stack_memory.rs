//! The memory of stacks, which is outside the heap (`runtime/fiber.c`, 5.3.0).
//!
//! Every thread and every fiber has a stack from malloc that grows by being copied. What fibers
//! leave is kept by their domain for later. The stack of a continuation that was collected without being
//! resumed is never freed, and nobody knows it any more.

use heaptap_heap::{MetaKey, OutsideArea, OutsideKind};

use super::variables::Variables;
use crate::runtimes::ocaml::five::layout::{HANDLER_PARENT, HANDLER_WORDS, STACK_HANDLER};
use crate::runtimes::ocaml::heap::Words;
use crate::snapshot::{HeapEncoder, WalkError};
use crate::tracer::WORD;

/// `stack_info`: `exception_ptr`, which in a stack that is free leads to the next one.
const NEXT_FREE: usize = 1;
/// `NUM_STACK_SIZE_CLASSES`
const FREE_LISTS: usize = 5;

/// Bytes of stacks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StackMemory {
    suspended_fibers: u64,
    suspended: u64,
    running: u64,
    free: u64,
}

/// A continuation that was not resumed.
#[derive(Clone, Copy)]
pub(super) struct Continuation {
    pub(super) block: usize,
    pub(super) stack: usize,
}

impl StackMemory {
    /// A stack that runs or belongs to a thread that waits, and those below it.
    pub(super) fn add_running(&mut self, words: Words, stack: usize) {
        for_each(words, stack, |_, bytes| self.running += bytes);
    }

    /// The stacks of a continuation, which keeps them.
    pub(super) fn write_suspended(
        &mut self,
        encoder: &mut HeapEncoder<'_>,
        words: Words,
        continuation: Continuation,
    ) -> Result<(), WalkError> {
        let Continuation { block, stack } = continuation;
        let mut result = Ok(());
        for_each(words, stack, |stack, bytes| {
            self.suspended_fibers += 1;
            self.suspended += bytes;
            let (block, start) = (block as u64, stack as u64);
            // No custom block, so there are no operations.
            let area =
                OutsideArea { block, operations: 0, start, bytes, kind: OutsideKind::Allocated };
            if result.is_ok() {
                result = encoder.outside_area(area);
            }
        });
        Ok(result?)
    }

    /// What a domain keeps for later.
    pub(super) fn add_free(&mut self, variables: &Variables, words: Words, state: usize) {
        let lists = words.field(state, variables.heap.stack_cache);
        for list in 0..if lists == 0 { 0 } else { FREE_LISTS } {
            let mut stack = words.field(lists, list);
            while stack != 0 {
                self.free += bytes_of(words, stack);
                stack = words.field(stack, NEXT_FREE);
            }
        }
    }

    pub(super) fn write(&self, encoder: &mut HeapEncoder<'_>) -> Result<(), WalkError> {
        let facts = [
            (MetaKey::SUSPENDED_FIBERS, self.suspended_fibers),
            (MetaKey::SUSPENDED_STACKS, self.suspended),
            (MetaKey::RUNNING_STACKS, self.running),
            (MetaKey::FREE_STACKS, self.free),
        ];
        for (key, number) in facts {
            encoder.meta_number(key, number)?;
        }
        Ok(())
    }
}

/// Calls `visit` with a stack and each below it, and its bytes.
fn for_each(words: Words, first: usize, mut visit: impl FnMut(usize, u64)) {
    let mut stack = first;
    while stack != 0 {
        visit(stack, bytes_of(words, stack));
        stack = words.field(words.field(stack, STACK_HANDLER), HANDLER_PARENT);
    }
}

/// From the `stack_info` at its beginning to the handler at its end.
fn bytes_of(words: Words, stack: usize) -> u64 {
    let end = words.field(stack, STACK_HANDLER).wrapping_add(HANDLER_WORDS * WORD);
    end.saturating_sub(stack) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_counts_with_those_below_it() {
        let mut below = [0usize; 20];
        below[STACK_HANDLER] = below[16..].as_ptr() as usize;
        let mut above = [0usize; 30];
        above[STACK_HANDLER] = above[26..].as_ptr() as usize;
        above[26 + HANDLER_PARENT] = below.as_ptr() as usize;
        // SAFETY: words of this test.
        let words = unsafe { Words::at_rest() };
        let mut memory = StackMemory::default();
        memory.add_running(words, above.as_ptr() as usize);
        memory.add_running(words, below.as_ptr() as usize);
        memory.add_running(words, 0);
        let bytes = |words: usize| (words * WORD) as u64;
        let expected = StackMemory { running: bytes(70), ..StackMemory::default() };
        assert_eq!(memory, expected);
        std::hint::black_box((&above, &below));
    }
}
