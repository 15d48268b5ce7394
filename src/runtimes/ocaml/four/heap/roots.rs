//! The roots: modules, stacks, C code, and what hooks of libraries report.

use heaptap_heap::RootOwner;

use super::stack::{self, Stack};
use super::variables::{Scan, Variables};
use crate::runtimes::attach::symbols::function_at;
use crate::runtimes::ocaml::heap::scan::{self, scan};
use crate::runtimes::ocaml::heap::threads;
use crate::runtimes::ocaml::heap::{
    BlockWriter, Globals, Thread, Words, bytecode_globals, modules,
};
use crate::snapshot::WalkError;
use crate::sys::memory::MappedVec;

/// Writes all roots but finalisers and ephemerons.
pub(super) fn write(
    variables: &Variables,
    Globals { modules: program, units }: Globals<'_>,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    let words = writer.words;
    match writer.take_globals() {
        Some(globals) => bytecode_globals::write(&globals, units, writer)?,
        None => modules::write(program, writer, |slot| Ok(words.word(slot)))?,
    }
    let all_threads = find_threads(variables, words);
    let all_threads = all_threads.as_deref().unwrap_or_default();
    let stack_slots = write_running(variables, all_threads, writer)?;
    let from_c = write_from_c(variables, writer)?;
    let from_hook = write_hook(variables, all_threads, writer)?;
    let counted = Counted { stack_slots, from_c, from_hook };
    write_plugins(variables, program.len() as u32, &counted, writer)
}

/// How many slots each part has reported, blocks or not.
struct Counted {
    stack_slots: u64,
    from_c: u64,
    from_hook: u64,
}

/// The threads, the running one first; `None` if the program does not use the systhreads
/// library.
pub(super) fn find_threads(variables: &Variables, words: Words) -> Option<MappedVec<Thread>> {
    let hook = hook(variables, words)?;
    let mut first = None;
    let visit = &mut |_, slot| {
        first.get_or_insert(slot);
        Ok(())
    };
    scan(|action| hook(action), visit).ok()?;
    threads::ring(first?)
}

/// `caml_scan_roots_hook`, if it is set.
fn hook(variables: &Variables, words: Words) -> Option<Scan> {
    let hook = words.word(variables.scan_roots_hook);
    // SAFETY: `void (*caml_scan_roots_hook) (scanning_action)`, `runtime/caml/roots.h`.
    (hook != 0).then(|| unsafe { function_at(hook) })
}

/// The stack of the thread that runs, or ran last. Returns how many slots it has.
fn write_running(
    variables: &Variables,
    all_threads: &[Thread],
    writer: &mut BlockWriter<'_, '_>,
) -> Result<u64, WalkError> {
    let words = writer.words;
    let id = all_threads.first().map_or(0, |thread| thread.id(words));
    writer.encoder.thread(id, 0, b"")?;
    let local_roots = variables.state(words, variables.layout.local_roots);
    let running = Stack::running(variables, words);
    let slots = stack::write(variables, writer, running, id, local_roots)?;
    check_native(variables, running, local_roots, slots)
}

/// The runtime must find as many slots as we did.
fn check_native(
    variables: &Variables,
    stack: Stack,
    local_roots: usize,
    slots: u64,
) -> Result<u64, WalkError> {
    let Some(scan_stack) = variables.scan_stack else { return Ok(slots) };
    let Stack::Native { sp, return_address, gc_regs } = stack else { return Ok(slots) };
    let expected =
        scan::count(|action| scan_stack(action, sp, return_address, gc_regs, local_roots));
    if expected == slots { Ok(slots) } else { Err(WalkError::Heap("the roots on a stack")) }
}

/// Global variables of C code. Returns how many there are, with those of the profiler.
fn write_from_c(variables: &Variables, writer: &mut BlockWriter<'_, '_>) -> Result<u64, WalkError> {
    let mut count = 0;
    for report in [variables.scan_global_roots, variables.scan_profiler] {
        scan(|action| report(action), &mut |value, slot| {
            count += 1;
            writer.root(RootOwner::GlobalC { slot: slot as u64 }, value)
        })?;
    }
    Ok(count)
}

/// What hooks of libraries report: the other threads of systhreads, each with its descriptor,
/// its last exception and its stack; and whatever else. Returns how many slots there are.
fn write_hook(
    variables: &Variables,
    all_threads: &[Thread],
    writer: &mut BlockWriter<'_, '_>,
) -> Result<u64, WalkError> {
    let Some(hook) = hook(variables, writer.words) else { return Ok(0) };
    let words = writer.words;
    // The library goes over the threads in the order of the ring.
    let (mut next, mut on_stack, mut of_thread) = (0, 0, 0);
    let mut count = 0;
    scan(|action| hook(action), &mut |value, slot| {
        count += 1;
        if let Some(&thread) = all_threads.get(next)
            && slot == thread.0
        {
            next += 1;
            of_thread = 2;
            on_stack = if next > 1 { write_other(variables, thread, writer)? } else { 0 };
        }
        if of_thread > 0 {
            of_thread -= 1;
            let id = all_threads.get(next - 1).map_or(0, |thread| thread.id(words));
            return writer.root(RootOwner::LocalC { thread: id }, value);
        }
        if on_stack > 0 {
            // Written by its own walk.
            on_stack -= 1;
            return Ok(());
        }
        writer.root(RootOwner::Hook { slot: slot as u64 }, value)
    })?;
    Ok(count)
}

/// The stack of a thread that waits. Returns how many slots it has.
fn write_other(
    variables: &Variables,
    thread: Thread,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<u64, WalkError> {
    let words = writer.words;
    let id = thread.id(words);
    writer.encoder.thread(id, 0, b"")?;
    let stack = Stack::saved(variables, words, thread);
    if let Stack::Native { sp: 0, .. } = stack {
        // It has not begun, and the library does not look at it either.
        return Ok(0);
    }
    let local_roots = thread.local_roots(words);
    let slots = stack::write(variables, writer, stack, id, local_roots)?;
    check_native(variables, stack, local_roots, slots)
}

/// Modules of plugins: they are in a list that only the runtime knows. It reports them first,
/// before everything that was counted.
fn write_plugins(
    variables: &Variables,
    id: u32,
    counted: &Counted,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    if !variables.code.is_native() {
        return Ok(());
    }
    let report = |action| (variables.scan_all)(action, 0);
    let all = scan::count(report);
    let finalisers = scan::count(|action| (variables.scan_finalisers)(action));
    let other = counted.stack_slots + counted.from_c + counted.from_hook + finalisers;
    let Some(of_plugins) = all.checked_sub(other) else {
        return Err(WalkError::Heap("the number of roots"));
    };
    if of_plugins == 0 {
        return Ok(());
    }
    writer.encoder.module(id, b"plugins")?;
    let mut fields = (0..).take_while(|&field| u64::from(field) < of_plugins);
    scan(report, &mut |value, _| match fields.next() {
        Some(field) => writer.root(RootOwner::Global { module: id, field }, value),
        None => Ok(()),
    })
}
