//! Notices when code is loaded and released.
//!
//! The interpreter calls the runtime's functions for that through pointers, which
//! it takes from a table of the executable when it starts
//! (`caml_build_primitive_table`, `runtime/dynlink.c`, 4.14.1 and 5.3.0). Before
//! that, two entries of the table are replaced. Each replacement calls the runtime's
//! function and passes its arguments and result on.
//!
//! They run on threads of the program, as any C function that OCaml calls:
//! under the master lock of OCaml 4 or on a domain of OCaml 5, not inside hooks,
//! and not while the runtime collects. Nothing is allocated in its heap.

use std::ffi::{CStr, c_char};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use super::events::Events;
use super::heap::Heap;
use super::loaded;
use super::tree::Tree;
use crate::runtimes::attach::hook_table::RuntimeFunction;
use crate::runtimes::attach::symbols::{Symbol, lookup};
use crate::runtimes::ocaml::values::UNIT;
use crate::tracer;
use crate::tracer::WORD;

/// `value caml_reify_bytecode(value, value, value)` (`runtime/meta.c`).
type Load = extern "C-unwind" fn(usize, usize, usize) -> usize;
/// `value caml_static_release_bytecode(value)` (`runtime/meta.c`).
type Release = extern "C-unwind" fn(usize) -> usize;

/// The runtime's own functions, which the replacements call. Set before they are.
static LOAD: OnceLock<RuntimeFunction<Load>> = OnceLock::new();
static RELEASE: OnceLock<RuntimeFunction<Release>> = OnceLock::new();

/// `Abstract_tag` (`runtime/caml/mlvalues.h`).
const ABSTRACT: u8 = 251;

/// More primitives than any runtime has.
const MOST: usize = 100_000;

/// Watches for loaded code from now on. Before the runtime starts. Where that is not
/// possible, as in native code, backtraces lack its frames.
pub(crate) fn watch() {
    let load: Option<Entry<Load>> = entry(c"caml_reify_bytecode");
    let release: Option<Entry<Release>> = entry(c"caml_static_release_bytecode");
    let Some((load, release)) = load.zip(release) else { return };
    let _ = LOAD.set(load.function);
    let _ = RELEASE.set(release.function);
    // In this order: code whose release is not noticed would be taken for what is at its
    // address later.
    if release.replace(release_code) {
        load.replace(load_code);
    }
}

/// An entry of the runtime's table of primitives, for a function of type `F`.
struct Entry<F> {
    /// The address of the entry.
    place: usize,
    function: RuntimeFunction<F>,
}

/// The entry for a primitive, if it holds that: `caml_builtin_cprim` has the address of
/// a function at the index at which `caml_names_of_builtin_cprim`, which ends with NULL,
/// has its name (`runtime/caml/prims.h`).
fn entry<F: Copy>(name: &'static CStr) -> Option<Entry<F>> {
    let function = lookup(name)?;
    let names = lookup(c"caml_names_of_builtin_cprim")? as *const *const c_char;
    let functions = lookup(c"caml_builtin_cprim")?;
    // SAFETY: the list goes on until its NULL.
    let names = (0..MOST).map(|index| unsafe { names.wrapping_add(index).read() });
    // SAFETY: not NULL, so a C string of the executable.
    let is_it = |known: *const c_char| unsafe { CStr::from_ptr(known) } == name;
    let index = names.take_while(|known| !known.is_null()).position(is_it)?;
    let place = functions + index * WORD;
    // SAFETY: the table has as many entries as there are names.
    let there = unsafe { (place as *const usize).read() };
    let function = RuntimeFunction::new(name, Symbol { address: function, size: 0 });
    (there == function.address()).then_some(Entry { place, function })
}

impl<F: Copy> Entry<F> {
    /// Puts another function there; false if that is not possible. The kernel writes,
    /// as for debuggers, since the table may be read-only (always in 5.3.0), and stays
    /// so.
    fn replace(&self, with: F) -> bool {
        let memory = std::fs::OpenOptions::new().write(true).open("/proc/self/mem");
        let address = self.function.replaced_by(with).with.to_ne_bytes();
        memory.is_ok_and(|memory| memory.write_all_at(&address, self.place as u64).is_ok())
    }
}

/// In place of `caml_reify_bytecode`: turns the bytes of code, its debug events and a
/// digest into a pair of the code and a closure.
extern "C-unwind" fn load_code(bytes: usize, events: usize, digest: usize) -> usize {
    // Read before the runtime's function allocates, which may move them. It may
    // also raise, when there is no memory, and jump over this frame: then what
    // was read is lost.
    let known = tracer::guard(|| {
        // SAFETY: an argument of the primitive that is running; nothing is
        // allocated here.
        let heap = unsafe { Heap::standing_still() };
        Box::into_raw(Box::new(Events::of_units(&heap, events)))
    });
    let Some(load) = LOAD.get() else { return UNIT };
    // SAFETY: declared in `runtime/meta.c` with this type.
    let load = unsafe { load.get() };
    let pair = load(bytes, events, digest);
    if let Some(known) = known {
        tracer::guard(|| {
            // SAFETY: from `Box::into_raw` above, and used once.
            let known = unsafe { Box::from_raw(known) };
            // SAFETY: `pair` is what the primitive returned, and nothing is allocated here.
            let heap = unsafe { Heap::standing_still() };
            if let Some((start, length)) = heap.field(pair, 0).and_then(|code| extent(&heap, code))
            {
                loaded::add(start, length, known);
            }
        });
    }
    pair
}

/// In place of `caml_static_release_bytecode`: frees the code.
extern "C-unwind" fn release_code(code: usize) -> usize {
    // Before it is freed: others may load code at the same address after that.
    tracer::guard(|| {
        // SAFETY: an argument of the primitive that is running; nothing is
        // allocated here.
        let heap = unsafe { Heap::standing_still() };
        if let Some((start, _)) = extent(&heap, code) {
            loaded::remove(start);
        }
    });
    let Some(release) = RELEASE.get() else { return UNIT };
    // SAFETY: declared in `runtime/meta.c` with this type.
    let release = unsafe { release.get() };
    release(code)
}

/// The address and length of code, from the block that stands for it: `struct bytecode`
/// (`runtime/meta.c`, 4.14.1 and 5.3.0).
fn extent(heap: &Heap, code: usize) -> Option<(usize, usize)> {
    let shape = heap.shape(code)?;
    (shape == (ABSTRACT, 2)).then(|| (heap.word(code, 0), heap.word(code, 1)))
}
