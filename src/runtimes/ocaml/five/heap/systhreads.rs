//! The threads of a domain, found in what the scan hook of the systhreads library reports
//! (`caml_thread_scan_roots`, `otherlibs/systhreads/st_stubs.c`, 5.3.0).
//!
//! The library keeps a ring of structures for each domain. Its hook begins with the thread that
//! runs, and reports two fields of each structure. For the threads that wait, it then reports
//! local variables of C code and the slots of their stacks. Nothing in the report separates
//! threads, frames, and what other libraries' hooks add.
//!
//! So the structures are recognised by the distance between these two fields, and the rest is
//! computed from them (`thread_structure`). A thread counts as found only if exactly the slots
//! result that the hook has reported. All other roots of the report are those of an unknown hook.
//!
//! Runs while the heap stands still; neither allocates nor locks.

use std::ffi::{c_int, c_void};

use super::scan::{Reported, collect};
use super::thread_structure::{ThreadRoots, ThreadStructures, count_stack_slots, read_field};
use super::variables::Variables;
use crate::runtimes::attach::symbols::function_at;
use crate::runtimes::ocaml::five::layout::ThreadLayout;
use crate::runtimes::ocaml::five::symbols::ScanningAction;
use crate::runtimes::ocaml::heap::threads;
use crate::runtimes::ocaml::heap::{NO_MEMORY, Thread, Words};
use crate::snapshot::WalkError;
use crate::sys::memory::MappedVec;
use crate::tracer::WORD;

/// What the scan hook reports for a domain.
pub(super) struct HookReport {
    reported: MappedVec<Reported>,
    /// The domain's threads, the running one first; none if the library is not used, or not
    /// recognised.
    ring: Option<Ring>,
}

/// The threads of a domain.
struct Ring {
    /// Not empty. The first is the one that runs.
    threads: MappedVec<Thread>,
    /// Where the first one is in the report.
    at: usize,
}

/// A part of a report.
pub(super) enum HookPart<'a> {
    /// Of another library's hook, or of a thread whose slots are not those that were expected.
    Unknown(&'a [Reported]),
    Thread(ThreadRoots<'a>),
}

impl HookReport {
    /// Has the hook report the roots of a domain.
    pub(super) fn collect(
        variables: &Variables,
        words: Words,
        state: usize,
    ) -> Result<HookReport, WalkError> {
        type Hook = extern "C" fn(ScanningAction, c_int, *mut c_void, usize);
        let mut reported = MappedVec::new(1 << 8).ok_or(NO_MEMORY)?;
        let hook = words.word(variables.scan_roots_hook);
        if hook != 0 {
            // SAFETY: `scan_roots_hook` (`runtime/caml/roots.h`).
            let hook: Hook = unsafe { function_at(hook) };
            collect(|action, data| hook(action, 0, data, state), &mut reported)?;
        }
        let domain = words.field(state, variables.heap.id) as i32;
        let ring = find_ring(&variables.heap.thread, &reported, domain);
        Ok(HookReport { reported, ring })
    }

    /// The `Thread.id` of the thread that runs.
    pub(super) fn running(&self, words: Words) -> Option<u32> {
        self.ring.as_ref()?.threads.first()?.known_id(words)
    }

    /// Calls `visit` for the parts of the report, in its order. Together they are the whole
    /// report, but for the slots of stacks.
    pub(super) fn for_each_part(
        &self,
        variables: &Variables,
        words: Words,
        visit: &mut dyn FnMut(HookPart<'_>) -> Result<(), WalkError>,
    ) -> Result<(), WalkError> {
        let count = |top, reported: &[Reported]| count_stack_slots(variables, words, top, reported);
        let structures = ThreadStructures {
            words,
            layout: &variables.heap.thread,
            has_trap_offset: !variables.code.is_native(),
            count_stack_slots: &count,
        };
        self.for_each_part_of(&structures, visit)
    }

    fn for_each_part_of(
        &self,
        structures: &ThreadStructures<'_>,
        visit: &mut dyn FnMut(HookPart<'_>) -> Result<(), WalkError>,
    ) -> Result<(), WalkError> {
        let Some(ring) = &self.ring else { return visit(HookPart::Unknown(&self.reported)) };
        let (before, mut rest) = self.reported.split_at(ring.at);
        visit(HookPart::Unknown(before))?;
        for (index, &thread) in ring.threads.iter().enumerate() {
            let next = ring.threads.get(index + 1).copied();
            let begins_next = |root: &Reported| next.is_some_and(|next| root.slot == next.0);
            let (part, length) = match structures.find(thread, index == 0, rest) {
                Some((roots, length))
                    if next.is_none() || rest.get(length).is_some_and(begins_next) =>
                {
                    (HookPart::Thread(roots), length)
                }
                _ => {
                    let length = rest.iter().position(begins_next).unwrap_or(rest.len());
                    (HookPart::Unknown(rest.get(..length).unwrap_or_default()), length)
                }
            };
            visit(part)?;
            rest = rest.get(length..).unwrap_or_default();
        }
        visit(HookPart::Unknown(rest))
    }
}

/// The threads of a domain, if the library has reported any.
fn find_ring(layout: &ThreadLayout, reported: &[Reported], domain: i32) -> Option<Ring> {
    /// Each one that is tried costs a few system calls. The library's own comes first unless
    /// another library has set its hook later.
    const MOST_TRIED: usize = 1_000;
    let is_of_domain =
        |thread: &Thread| read_field(thread.0, layout.domain).is_some_and(|id| id as i32 == domain);
    let is_structure = |pair: &[Reported]| {
        matches!(pair, [descriptor, exception]
            if exception.slot.wrapping_sub(descriptor.slot) == layout.last_exception * WORD)
    };
    let pairs = reported.windows(2).enumerate().filter(|(_, pair)| is_structure(pair));
    pairs.take(MOST_TRIED).find_map(|(at, pair)| {
        let threads = threads::ring(pair.first()?.slot)?;
        threads.iter().all(is_of_domain).then_some(Ring { threads, at })
    })
}

#[cfg(test)]
#[path = "systhreads_tests.rs"]
mod tests;
