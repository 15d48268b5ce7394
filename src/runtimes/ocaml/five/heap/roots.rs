//! The roots: modules, C code, stacks, continuations, and what hooks of libraries report.

use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use heaptap_heap::RootOwner;

use super::domains::Domains;
use super::fiber_frames::{FiberFrames, StackTop};
use super::scan::scan;
use super::stack;
use super::variables::{CodeKind, Variables};
use crate::runtimes::ocaml::five::symbols::ScanningAction;
use crate::runtimes::ocaml::heap::blocks::BlockWriter;
use crate::runtimes::ocaml::heap::modules::OcamlModule;
use crate::snapshot::WalkError;
use crate::sys::memory::MappedVec;

/// A root that the runtime has reported.
#[derive(Clone, Copy)]
struct Reported {
    value: usize,
    slot: usize,
}

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
    let mut is_complete = true;
    scan(|action, data| (variables.scan_global_roots)(action, data), &mut |value, slot| {
        is_complete &= roots.push(Reported { value, slot });
    });
    if !is_complete {
        *global = None;
    }
}

/// Writes all roots but finalisers and ephemerons.
pub(super) fn write(
    variables: &Variables,
    domains: &Domains,
    modules: &[OcamlModule],
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    write_global(modules, writer)?;
    for state in domains.waiting() {
        write_domain(variables, state, writer)?;
    }
    write_continuations(variables, writer)
}

/// The runtime reports the roots of C code first, then the fields of the modules, then those
/// of plugins (`caml_scan_global_roots`, `runtime/globroots.c`).
fn write_global(
    modules: &[OcamlModule],
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    const WRONG: WalkError = WalkError::Heap("the roots of modules");
    let Ok(global) = GLOBAL.lock() else { return Err(WRONG) };
    let roots = global.as_ref().ok_or(WalkError::Write(libc::ENOMEM))?;
    let words = writer.words;
    let first = modules.iter().map(|module| words.word(module.blocks)).find(|&block| block != 0);
    let from_c = first
        .and_then(|first| roots.iter().position(|root| root.slot == first))
        .unwrap_or(roots.len());
    for root in roots.iter().take(from_c) {
        writer.root(RootOwner::GlobalC { slot: root.slot as u64 }, root.value)?;
    }
    let mut rest = roots.iter().skip(from_c);
    for (index, module) in modules.iter().enumerate() {
        let id = index as u32;
        writer.encoder.module(id, &module.name)?;
        for (field, slot) in module.fields(words).enumerate() {
            let root = rest.next().filter(|root| root.slot == slot).ok_or(WRONG)?;
            let owner = RootOwner::Global { module: id, field: field as u32 };
            writer.root(owner, root.value)?;
        }
    }
    let plugins = modules.len() as u32;
    for (field, root) in rest.enumerate() {
        if field == 0 {
            writer.encoder.module(plugins, b"plugins")?;
        }
        let owner = RootOwner::Global { module: plugins, field: field as u32 };
        writer.root(owner, root.value)?;
    }
    Ok(())
}

/// The stack of a domain's running thread, its local variables in C, and what the hook of the
/// systhreads library reports for its other threads.
fn write_domain(
    variables: &Variables,
    state: usize,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    let words = writer.words;
    let field = |index| words.field(state, index);
    // An `int`.
    let id = field(variables.heap.id) as u32;
    writer.encoder.thread(id, id, b"")?;
    let (local_roots, stack, gc_regs) = (
        field(variables.heap.local_roots),
        field(variables.layout.current_stack),
        field(variables.heap.gc_regs),
    );
    let report = |action: ScanningAction, data: *mut c_void| {
        (variables.scan_local_roots)(action, 0, data, local_roots, 0, 0);
    };
    let mut result = Ok(());
    scan(report, &mut |value, _| {
        if result.is_ok() {
            result = writer.root(RootOwner::LocalC { thread: id }, value);
        }
    });
    result?;
    let owner =
        |depth, return_address, slot| RootOwner::Stack { thread: id, depth, return_address, slot };
    let top = StackTop {
        stack,
        gc_regs,
        handler_offset: Some(field(variables.layout.trap_sp_off) as isize),
    };
    write_stack(variables, writer, top, &owner)?;
    write_hook(variables, state, writer)
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
    let mut result = Ok(());
    match &variables.code {
        CodeKind::Bytecode(code) => {
            let mut frames = code.map(|code| FiberFrames::new(writer.words, code, top));
            scan(report, &mut |value, slot| {
                if result.is_ok() {
                    let frame = frames.as_mut().map(|frames| frames.of(slot)).unwrap_or_default();
                    let owner = owner(frame.depth, frame.return_address, expected);
                    result = writer.root(owner, value);
                    expected += 1;
                }
            });
        }
        CodeKind::Native { descriptors, .. } => {
            let slots = stack::write(writer, descriptors, stack, gc_regs, owner)?;
            scan(report, &mut |_, _| expected += 1);
            if slots != u64::from(expected) {
                return Err(WalkError::Heap("the roots on a stack"));
            }
        }
    }
    result
}

fn write_hook(
    variables: &Variables,
    state: usize,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    type Hook = extern "C" fn(ScanningAction, c_int, *mut c_void, usize);
    let hook = writer.words.word(variables.scan_roots_hook);
    if hook == 0 {
        return Ok(());
    }
    // SAFETY: `scan_roots_hook` (`runtime/caml/roots.h`).
    let hook = unsafe { std::mem::transmute::<usize, Hook>(hook) };
    let mut result = Ok(());
    scan(|action, data| hook(action, 0, data, state), &mut |value, slot| {
        if result.is_ok() {
            result = writer.root(RootOwner::Hook { slot: slot as u64 }, value);
        }
    });
    result
}

/// The stacks of suspended fibers. A continuation is a block whose first field points to one.
fn write_continuations(
    variables: &Variables,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    let words = writer.words;
    let mut index = 0;
    while let Some(block) = writer.continuation(index) {
        index += 1;
        // `Ptr_val`: 1 if the continuation was resumed.
        let stack = words.field(block, 0) & !1;
        if let CodeKind::Native { descriptors, .. } = &variables.code
            && !stack::is_whole(descriptors, stack)
        {
            continue;
        }
        let owner = |depth, return_address, slot| RootOwner::Continuation {
            block: block as u64,
            depth,
            return_address,
            slot,
        };
        let top = StackTop { stack, gc_regs: 0, handler_offset: None };
        write_stack(variables, writer, top, &owner)?;
    }
    Ok(())
}
