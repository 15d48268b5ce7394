//! What the structure of a thread of the systhreads library leads to, compared with what the
//! library's scan hook has reported.
//!
//! Until a stack is known to be one, the kernel reads memory for us, so that a wrong address
//! cannot fault. Runs while the heap stands still; neither allocates nor locks.

use std::ffi::c_void;

use super::scan::{Reported, scan};
use super::stack;
use super::stack_slot::StackTop;
use super::variables::Variables;
use crate::runtimes::ocaml::five::layout::{HANDLER_PARENT, STACK_HANDLER, STACK_SP, ThreadLayout};
use crate::runtimes::ocaml::five::symbols::ScanningAction;
use crate::runtimes::ocaml::heap::{CodeKind, Thread, Words};
use crate::snapshot::WalkError;
use crate::sys::process_memory::read_word;
use crate::tracer::WORD;

/// The roots of a thread.
pub(super) struct ThreadRoots<'a> {
    /// `Thread.id`
    pub(super) id: u32,
    /// Its descriptor, its last exception, and local variables of C code.
    pub(super) local: &'a [Reported],
    /// `None` for the thread that runs, whose stack is the domain's, and for one without a stack.
    pub(super) stack: Option<StackTop>,
}

/// Compares the structures of threads with what was reported.
pub(super) struct ThreadStructures<'a> {
    pub(super) words: Words,
    pub(super) layout: &'a ThreadLayout,
    /// Whether structures have `trap_sp_off`.
    pub(super) has_trap_offset: bool,
    /// How many slots a stack has, if a report begins with exactly these.
    pub(super) count_stack_slots: &'a dyn Fn(StackTop, &[Reported]) -> Option<usize>,
}

impl ThreadStructures<'_> {
    /// The roots of a thread, if a report begins with them, and how many they are.
    pub(super) fn find<'r>(
        &self,
        thread: Thread,
        is_running: bool,
        reported: &'r [Reported],
    ) -> Option<(ThreadRoots<'r>, usize)> {
        let layout = self.layout;
        let field = |index| read_field(thread.0, index);
        let [descriptor, exception, others @ ..] = reported else { return None };
        let last_exception = thread.0 + layout.last_exception * WORD;
        if descriptor.slot != thread.0 || exception.slot != last_exception {
            return None;
        }
        let id = thread.known_id(self.words)?;
        let stack = field(layout.current_stack)?;
        if is_running || stack == 0 {
            return Some((ThreadRoots { id, local: reported.get(..2)?, stack: None }, 2));
        }
        let local = 2 + count_local_roots(field(layout.local_roots)?, others)?;
        let handler_offset =
            if self.has_trap_offset { Some(field(layout.trap_sp_off)? as isize) } else { None };
        let top = StackTop { stack, gc_regs: field(layout.gc_regs)?, handler_offset };
        if !is_readable(stack) {
            return None;
        }
        let slots = (self.count_stack_slots)(top, reported.get(local..)?)?;
        let roots = ThreadRoots { id, local: reported.get(..local)?, stack: Some(top) };
        Some((roots, local + slots))
    }
}

/// How many local roots a list has, if a report begins with exactly these: as
/// `caml_do_local_roots` (`runtime/roots.c`, 5.3.0).
fn count_local_roots(first: usize, reported: &[Reported]) -> Option<usize> {
    /// Words of `struct caml__roots_block` (`runtime/caml/memory.h`), and how many tables it has.
    const NEXT: usize = 0;
    const TABLES: usize = 1;
    const ITEMS: usize = 2;
    const FIRST_TABLE: usize = 3;
    const MOST_TABLES: usize = 5;
    const MOST_BLOCKS: usize = 1 << 20;
    let (mut block, mut count) = (first, 0);
    for _ in 0..MOST_BLOCKS {
        if block == 0 {
            return Some(count);
        }
        let (tables, items) = (read_field(block, TABLES)?, read_field(block, ITEMS)?);
        if tables > MOST_TABLES {
            return None;
        }
        for table in 0..tables {
            let start = read_field(block, FIRST_TABLE + table)?;
            for item in 0..items {
                let slot = start.wrapping_add(item.wrapping_mul(WORD));
                if reported.get(count).is_some_and(|root| root.slot == slot) {
                    count += 1;
                } else if read_word(slot)? != 0 {
                    return None;
                }
            }
        }
        block = read_field(block, NEXT)?;
    }
    None
}

/// How many slots a stack has, if a report begins with exactly these.
pub(super) fn count_stack_slots(
    variables: &Variables,
    words: Words,
    top: StackTop,
    reported: &[Reported],
) -> Option<usize> {
    const DIFFERENT: WalkError = WalkError::Heap("the roots on the stack of a thread");
    let mut count = 0;
    let mut compare = |is_same: &dyn Fn(&Reported) -> bool| {
        let is_next = reported.get(count).is_some_and(is_same);
        count += 1;
        if is_next { Ok(()) } else { Err(DIFFERENT) }
    };
    match &variables.code {
        CodeKind::Native { descriptors, .. } => {
            stack::for_each_slot(words, descriptors, top, &mut |slot| {
                compare(&|root| root.slot == slot.address)
            })
        }
        CodeKind::Bytecode { .. } => {
            let report = |action: ScanningAction, data: *mut c_void| {
                (variables.scan_stack)(action, 0, data, top.stack, top.gc_regs);
            };
            scan(report, &mut |value, slot| compare(&|root| *root == Reported { value, slot }))
        }
    }
    .ok()?;
    Some(count)
}

/// Whether a stack and its parents can be read from their newest words to their handlers.
pub(super) fn is_readable(first: usize) -> bool {
    const PAGE: usize = 4096;
    stack::ends(first, |stack| {
        let (sp, high) = (read_field(stack, STACK_SP)?, read_field(stack, STACK_HANDLER)?);
        let is_ordered = stack < sp && sp <= high && (sp | high).is_multiple_of(WORD);
        let is_mapped = || (sp..high).step_by(PAGE).all(|address| read_word(address).is_some());
        if is_ordered && is_mapped() { read_field(high, HANDLER_PARENT) } else { None }
    })
}

/// A word of a structure; `None` if there is no memory.
pub(super) fn read_field(structure: usize, index: usize) -> Option<usize> {
    read_word(structure.checked_add(index * WORD)?)
}
