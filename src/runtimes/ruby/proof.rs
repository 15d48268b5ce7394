//! The live proof of a layout, before anything is changed.

use std::ffi::{CStr, c_char, c_void};

use super::hook_list::HookList;
use super::layout::{
    END_OF_MARKING, FAST_PATH, FLAGS, HAS_HOOK, HOOK_EVENTS, NEW_OBJECT, NIL, RAW_ARGUMENT,
    VM_OBJSPACE,
};
use super::symbols::{Runtime, Value};
use super::values::Object;
use crate::runtimes::attach::Refusal;
use crate::runtimes::attach::symbols::code_of;
use crate::sys::process_memory::read_word;

/// What was proved.
#[derive(Clone, Copy)]
pub(super) struct Proved {
    /// The address of the one `rb_objspace_t`.
    pub(super) objspace: usize,
    /// The hooks of the program.
    pub(super) hooks: HookList,
}

/// Proves the layout. Once the heap is there and before the program runs. Adds a hook and removes it again.
pub(super) fn prove(runtime: &Runtime) -> Result<Proved, Refusal> {
    prove_fast_path(code_of(runtime.fast_path, usize::MAX))?;
    let objspace = objspace(runtime).ok_or(Refusal::Layout("there is no heap"))?;
    let hooks = HookList::find(runtime).ok_or(Refusal::Layout("there is no list of hooks"))?;
    prove_hooks(runtime, objspace, hooks)?;
    prove_strings(runtime)?;
    Ok(Proved { objspace, hooks })
}

/// The code of the fast path names the offsets, and tests the bit that the gate changes.
fn prove_fast_path(code: &[u8]) -> Result<(), Refusal> {
    let has = |wanted: &&[u8]| code.windows(wanted.len()).any(|here| here == *wanted);
    match FAST_PATH.iter().all(has) {
        true => Ok(()),
        false => Err(Refusal::Layout("the allocation of objects")),
    }
}

fn objspace(runtime: &Runtime) -> Option<usize> {
    let vm = read_word(runtime.vm).filter(|&vm| vm != 0)?;
    read_word(vm + VM_OBJSPACE).filter(|&objspace| objspace != 0)
}

/// The flags and events of a heap.
fn hooks_at(objspace: usize) -> Option<(u32, u32)> {
    const _: () = assert!(HOOK_EVENTS == FLAGS + 4, "both are in one word");
    read_word(objspace + FLAGS).map(|word| (word as u32, (word >> 32) as u32))
}

/// A hook that is added and removed shows in the fields, and in no other bit of them.
fn prove_hooks(runtime: &Runtime, objspace: usize, hooks: HookList) -> Result<(), Refusal> {
    /// Never called: no object is allocated while it is there.
    extern "C" fn nothing(_: Value, _: *mut c_void) {}
    const EVENTS: [u32; 2] = [NEW_OBJECT, NEW_OBJECT | END_OF_MARKING];
    let before = hooks_at(objspace);
    let Some((flags, 0)) = before.filter(|(flags, _)| flags & HAS_HOOK == 0) else {
        return Err(Refusal::Layout("a tool has a hook for objects before the program begins"));
    };
    let listed: Vec<_> = hooks.hooks().collect();
    for events in EVENTS {
        (runtime.add_hook)(nothing, events, NIL, RAW_ARGUMENT);
        let during = hooks_at(objspace);
        let with_ours = std::iter::once((nothing as *const () as usize, events));
        let is_listed = hooks.hooks().eq(with_ours.chain(listed.iter().copied()));
        let removed = (runtime.remove_hook)(nothing, NIL);
        let is_known = during == Some((flags | HAS_HOOK, events)) && is_listed;
        if !is_known || removed != 1 || hooks_at(objspace) != before {
            return Err(Refusal::Layout("the hooks for objects"));
        }
    }
    Ok(())
}

/// A short string and a long one have the bytes that are known.
fn prove_strings(runtime: &Runtime) -> Result<(), Refusal> {
    let object_class = runtime.variable(runtime.object_class);
    // SAFETY: `const char ruby_copyright[]` (`version.c`).
    let copyright = unsafe { CStr::from_ptr(runtime.copyright as *const c_char) };
    let name_of_constant = runtime.id(c"RUBY_COPYRIGHT");
    if (runtime.has_constant)(object_class, name_of_constant) == 0 {
        return Err(Refusal::Layout("constants"));
    }
    let constant = (runtime.constant)(object_class, name_of_constant);
    let name = (runtime.class_name)(object_class);
    let is_known = |value, wanted: &[u8]| {
        // SAFETY: a constant of the program, which is alive.
        let bytes = unsafe { Object::new(value) }.and_then(|object| unsafe { object.bytes() });
        bytes == Some(wanted)
    };
    if is_known(name, b"Object") && is_known(constant, copyright.to_bytes()) {
        return Ok(());
    }
    Err(Refusal::Layout("strings"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_fast_path_is_refused() {
        let mut code =
            [b"\x48\x83\xec\x08".as_slice(), FAST_PATH[0], FAST_PATH[1], FAST_PATH[2]].concat();
        assert_eq!(prove_fast_path(&code), Ok(()));
        for at in 4..code.len() {
            code[at] ^= 1;
            assert!(prove_fast_path(&code).is_err(), "byte {at}");
            code[at] ^= 1;
        }
    }
}
