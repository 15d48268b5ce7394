//! The roots: modules, C code, stacks, continuations, and what hooks of libraries report.

use std::ffi::c_void;
use std::sync::Mutex;

use heaptap_heap::RootOwner;

use super::domains::Domains;
use super::fiber_frames::FiberFrames;
use super::scan::{Reported, collect, scan};
use super::stack;
use super::stack_memory::{Continuation, StackMemory};
use super::stack_slot::{SlotPlace, StackTop};
use super::systhreads::{HookPart, HookReport};
use super::thread_structure::{ThreadRoots, is_readable};
use super::variables::Variables;
use crate::runtimes::ocaml::five::symbols::ScanningAction;
use crate::runtimes::ocaml::heap::{
    BlockWriter, CodeKind, Globals, NO_MEMORY, Words, bytecode_globals, modules,
};
use crate::snapshot::WalkError;
use crate::sys::memory::MappedVec;
use crate::sys::process_memory::ProcessMemory;
use crate::tracer::WORD;

/// The global roots. They are behind a lock that a domain which is ending may hold when the
/// process is copied, so they are collected before. Locked only by the domain that carries a
/// snapshot out, and in the copy, which cannot be made while it is locked.
static GLOBAL: Mutex<Option<MappedVec<Reported>>> = Mutex::new(None);

/// Collects the global roots. While all domains wait.
pub(super) fn collect_global(variables: &Variables) {
    let Ok(mut global) = GLOBAL.lock() else { return };
    if global.is_none() {
        *global = MappedVec::new(1 << 14);
    }
    let Some(roots) = global.as_mut() else { return };
    roots.truncate(0);
    if collect(|action, data| (variables.scan_global_roots)(action, data), roots).is_err() {
        *global = None;
    }
}

/// Writes all roots but finalisers and ephemerons.
pub(super) fn write(
    variables: &Variables,
    domains: &Domains,
    globals: Globals<'_>,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    write_global(variables, domains, globals, writer)?;
    let uses_threads = uses_threads(variables, domains, writer.words)?;
    let mut memory = StackMemory::default();
    for state in domains.waiting() {
        write_domain(variables, DomainRoots { state, uses_threads }, writer, &mut memory)?;
        memory.add_free(variables, writer.words, state);
    }
    write_continuations(variables, writer, &mut memory)?;
    memory.write(writer.encoder)
}

/// A domain whose roots are written.
#[derive(Clone, Copy)]
struct DomainRoots {
    state: usize,
    /// Whether the program uses the systhreads library.
    uses_threads: bool,
}

/// The runtime reports the roots of C code first, then the fields of the modules, then those
/// of plugins (`caml_scan_global_roots`, `runtime/globroots.c`). In bytecode the table of globals
/// is one of the roots of C code (`caml_interprete`, `runtime/interp.c`).
fn write_global(
    variables: &Variables,
    domains: &Domains,
    Globals { modules: program, units }: Globals<'_>,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    const WRONG: WalkError = WalkError::Heap("the roots of modules");
    let Ok(global) = GLOBAL.lock() else { return Err(WRONG) };
    let roots = global.as_ref().ok_or(NO_MEMORY)?;
    let words = writer.words;
    let first = program.iter().map(|module| words.word(module.blocks)).find(|&block| block != 0);
    let from_c = first
        .and_then(|first| roots.iter().position(|root| root.slot == first))
        .unwrap_or(roots.len());
    let table = match variables.code {
        CodeKind::Bytecode { global_data, .. } => writer.take_globals().zip(Some(global_data)),
        CodeKind::Native { .. } => None,
    };
    // Its fields are in no block.
    if table.as_ref().is_some_and(|(_, slot)| !roots.iter().any(|root| root.slot == *slot)) {
        return Err(WalkError::Heap("the table of globals"));
    }
    for root in roots.iter().take(from_c) {
        match &table {
            Some((blocks, slot)) if *slot == root.slot => {
                bytecode_globals::write(blocks, units, writer)?;
            }
            _ => writer.root(global_owner(variables, domains, words, root.slot), root.value)?,
        }
    }
    let mut rest = roots.iter().skip(from_c);
    modules::write(program, writer, |slot| {
        rest.next().filter(|root| root.slot == slot).map(|root| root.value).ok_or(WRONG)
    })?;
    let module = program.len() as u32;
    for (field, root) in (0..).zip(rest) {
        if field == 0 {
            writer.encoder.module(module, b"plugins")?;
        }
        writer.root(RootOwner::Global { module, field }, root.value)?;
    }
    Ok(())
}

/// What a root of C code is. The values of domains are among them (`caml_ml_domain_spawn` and
/// others, `runtime/domain.c`).
fn global_owner(variables: &Variables, domains: &Domains, words: Words, slot: usize) -> RootOwner {
    let is_local = |state: &usize| *state + variables.heap.dls_root * WORD == slot;
    match domains.all().map(|domain| domain.state).find(is_local) {
        Some(state) => RootOwner::DomainLocal { domain: domain_number(variables, words, state) },
        None => RootOwner::GlobalC { slot: slot as u64 },
    }
}

/// The number of a domain, as `Domain.self` has it.
fn domain_number(variables: &Variables, words: Words, state: usize) -> u32 {
    // An `int`.
    words.field(state, variables.heap.unique_id) as u32
}

/// Whether the program uses the systhreads library, so that threads have a `Thread.id`.
fn uses_threads(variables: &Variables, domains: &Domains, words: Words) -> Result<bool, WalkError> {
    for state in domains.waiting() {
        if HookReport::collect(variables, words, state)?.running(words).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The stack of a domain's running thread, its local variables in C, and what hooks of libraries
/// report: the other threads of the systhreads library, and whatever else.
fn write_domain(
    variables: &Variables,
    DomainRoots { state, uses_threads }: DomainRoots,
    writer: &mut BlockWriter<'_, '_>,
    memory: &mut StackMemory,
) -> Result<(), WalkError> {
    /// Added to the domain's id where `Thread.id` is not known but other threads have one. The
    /// library numbers threads from 0.
    const NO_THREAD_ID: u32 = 1 << 31;
    let words = writer.words;
    let field = |index| words.field(state, index);
    let domain = domain_number(variables, words, state);
    let hook = HookReport::collect(variables, words, state)?;
    let thread = hook.running(words).unwrap_or(if uses_threads {
        NO_THREAD_ID.wrapping_add(domain)
    } else {
        domain
    });
    writer.encoder.thread(thread, domain, b"")?;
    let local_roots = field(variables.heap.local_roots);
    let report = |action: ScanningAction, data: *mut c_void| {
        (variables.scan_local_roots)(action, 0, data, local_roots, 0, 0);
    };
    scan(report, &mut |value, _| writer.root(RootOwner::LocalC { thread }, value))?;
    let top = StackTop {
        stack: field(variables.layout.current_stack),
        gc_regs: field(variables.heap.gc_regs),
        handler_offset: Some(field(variables.layout.trap_sp_off) as isize),
    };
    memory.add_running(words, top.stack);
    write_thread_stack(variables, writer, top, thread)?;
    hook.for_each_part(variables, words, &mut |part| match part {
        HookPart::Unknown(roots) => write_unknown(roots, writer),
        HookPart::Thread(roots) => {
            if roots.id != thread {
                writer.encoder.thread(roots.id, domain, b"")?;
            }
            if let Some(top) = roots.stack {
                memory.add_running(words, top.stack);
            }
            write_thread(variables, &roots, writer)
        }
    })
}

/// What hooks report and nothing more is known of.
fn write_unknown(roots: &[Reported], writer: &mut BlockWriter<'_, '_>) -> Result<(), WalkError> {
    for root in roots {
        writer.root(RootOwner::Hook { slot: root.slot as u64 }, root.value)?;
    }
    Ok(())
}

/// A thread of the systhreads library. The stack of the running one was written before.
fn write_thread(
    variables: &Variables,
    roots: &ThreadRoots<'_>,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    for root in roots.local {
        writer.root(RootOwner::LocalC { thread: roots.id }, root.value)?;
    }
    match roots.stack {
        Some(top) => write_thread_stack(variables, writer, top, roots.id),
        None => Ok(()),
    }
}

fn write_thread_stack(
    variables: &Variables,
    writer: &mut BlockWriter<'_, '_>,
    top: StackTop,
    thread: u32,
) -> Result<(), WalkError> {
    let owner = |SlotPlace { depth, return_address, index: slot, is_handler }| {
        if is_handler {
            RootOwner::Handler { thread, fiber: depth, return_address, slot }
        } else {
            RootOwner::Stack { thread, depth, return_address, slot }
        }
    };
    write_stack(variables, writer, top, &owner)
}

/// A stack and its parents. The runtime must find as many slots as we do.
fn write_stack(
    variables: &Variables,
    writer: &mut BlockWriter<'_, '_>,
    top: StackTop,
    owner: stack::Owner<'_>,
) -> Result<(), WalkError> {
    let StackTop { stack, gc_regs, .. } = top;
    let report = |action: ScanningAction, data: *mut c_void| {
        (variables.scan_stack)(action, 0, data, stack, gc_regs);
    };
    let mut expected = 0;
    match &variables.code {
        CodeKind::Bytecode { code, .. } => {
            let mut frames = code.map(|code| FiberFrames::new(writer.words, code, top));
            scan(report, &mut |value, slot| {
                let place = match &mut frames {
                    Some(frames) => frames.of(slot, expected),
                    None => SlotPlace { index: expected, ..SlotPlace::default() },
                };
                expected += 1;
                writer.root(owner(place), value)
            })
        }
        CodeKind::Native { descriptors, .. } => {
            let slots = stack::write(writer, descriptors, top, owner)?;
            scan(report, &mut |_, _| {
                expected += 1;
                Ok(())
            })?;
            let is_same = slots == u64::from(expected);
            if is_same { Ok(()) } else { Err(WalkError::Heap("the roots on a stack")) }
        }
    }
}

/// The stacks of suspended fibers. A continuation is a block whose first field points to one.
fn write_continuations(
    variables: &Variables,
    writer: &mut BlockWriter<'_, '_>,
    memory_of_stacks: &mut StackMemory,
) -> Result<(), WalkError> {
    let (words, memory) = (writer.words, ProcessMemory::new());
    let mut index = 0;
    while let Some(block) = writer.continuation(index) {
        index += 1;
        // `Ptr_val`: 1 if the continuation was resumed.
        let stack = words.field(block, 0) & !1;
        let is_whole = match &variables.code {
            CodeKind::Native { descriptors, .. } => stack::is_whole(&memory, descriptors, stack),
            CodeKind::Bytecode { .. } => is_readable(stack),
        };
        if !is_whole {
            continue;
        }
        let continuation = Continuation { block, stack };
        memory_of_stacks.write_suspended(writer.encoder, words, continuation)?;
        let owner = |SlotPlace { depth, return_address, index: slot, .. }| {
            RootOwner::Continuation { block: block as u64, depth, return_address, slot }
        };
        let top = StackTop { stack, gc_regs: 0, handler_offset: None };
        write_stack(variables, writer, top, &owner)?;
    }
    Ok(())
}
