//! Hears of code that is loaded and released.
//!
//! The interpreter calls the runtime's functions for it through pointers, which
//! it takes from a table of the executable when it starts
//! (`caml_build_primitive_table`, `runtime/dynlink.c`, 4.14.1 and 5.3.0). Before
//! that we put ours in the place of two of them. Each calls the runtime's, whose
//! arguments and result it passes on.
//!
//! These run on threads of the program as any function in C that OCaml calls:
//! under the master lock of OCaml 4 or on a domain of OCaml 5, not inside hooks,
//! and not when the runtime collects. Nothing is allocated in its heap.

use std::ffi::{CStr, c_char};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::events::Events;
use super::heap::Heap;
use super::loaded;
use super::tree::Tree;
use crate::runtimes::attach::symbols::lookup;
use crate::tracer;
use crate::tracer::WORD;

const LOAD: &CStr = c"caml_reify_bytecode";
const RELEASE: &CStr = c"caml_static_release_bytecode";

/// `value caml_reify_bytecode(value, value, value)` (`runtime/meta.c`).
type Load = extern "C-unwind" fn(usize, usize, usize) -> usize;
/// `value caml_static_release_bytecode(value)` (`runtime/meta.c`).
type Release = extern "C-unwind" fn(usize) -> usize;

/// The runtime's own, which ours call.
static THEIR_LOAD: AtomicUsize = AtomicUsize::new(0);
static THEIR_RELEASE: AtomicUsize = AtomicUsize::new(0);

/// `Abstract_tag` (`runtime/caml/mlvalues.h`).
const ABSTRACT: usize = 251;

/// More primitives than any runtime has.
const MOST: usize = 100_000;

/// From now on loaded code is known. Before the runtime starts. Where that cannot
/// be, as in native code, its frames are not there.
pub(in crate::runtimes::ocaml) fn follow() {
    let Some((load, release)) = entry(LOAD).zip(entry(RELEASE)) else { return };
    THEIR_LOAD.store(load.function, Ordering::Relaxed);
    THEIR_RELEASE.store(release.function, Ordering::Relaxed);
    // Not the other way round: code whose end nobody tells would be taken for
    // what is there later.
    if release.replace(release_code as *const ()) {
        load.replace(load_code as *const ());
    }
}

/// A place in the runtime's table of primitives.
struct Entry {
    place: usize,
    function: usize,
}

/// The entry for a primitive, if it is what it should be: `caml_builtin_cprim` has
/// in the place of each name of `caml_names_of_builtin_cprim`, which ends with
/// NULL, the address of the function (`runtime/caml/prims.h`).
fn entry(name: &'static CStr) -> Option<Entry> {
    let function = lookup(name)?;
    let names = lookup(c"caml_names_of_builtin_cprim")? as *const *const c_char;
    let functions = lookup(c"caml_builtin_cprim")?;
    // SAFETY: the list goes on until its NULL.
    let names = (0..MOST).map(|index| unsafe { names.wrapping_add(index).read() });
    // SAFETY: a name of the list.
    let is_it = |known: *const c_char| unsafe { CStr::from_ptr(known) } == name;
    let index = names.take_while(|known| !known.is_null()).position(is_it)?;
    let place = functions + index * WORD;
    // SAFETY: as many as there are names.
    let there = unsafe { (place as *const usize).read() };
    (there == function).then_some(Entry { place, function })
}

impl Entry {
    /// Puts another function there; false if that cannot be. The kernel writes,
    /// as for debuggers, since the table may be among what is only to be read
    /// (always in 5.3.0), and stays so.
    fn replace(&self, with: *const ()) -> bool {
        let memory = std::fs::OpenOptions::new().write(true).open("/proc/self/mem");
        let address = (with as usize).to_ne_bytes();
        memory.is_ok_and(|memory| memory.write_all_at(&address, self.place as u64).is_ok())
    }
}

/// In the place of `caml_reify_bytecode`: makes of the code as bytes, its debug
/// events, and a digest a pair of the code and a closure.
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
    // SAFETY: the runtime's function, which is of this type.
    let load: Load = unsafe { std::mem::transmute(THEIR_LOAD.load(Ordering::Relaxed)) };
    let pair = load(bytes, events, digest);
    if let Some(known) = known {
        tracer::guard(|| {
            // SAFETY: made above.
            let known = unsafe { Box::from_raw(known) };
            // SAFETY: what the primitive returned; nothing is allocated here.
            let heap = unsafe { Heap::standing_still() };
            if let Some((start, length)) = heap.field(pair, 0).and_then(|code| extent(&heap, code))
            {
                loaded::add(start, length, known);
            }
        });
    }
    pair
}

/// In the place of `caml_static_release_bytecode`: frees the code.
extern "C-unwind" fn release_code(code: usize) -> usize {
    // Before it is freed: others may load code at the same address behind that.
    tracer::guard(|| {
        // SAFETY: an argument of the primitive that is running; nothing is
        // allocated here.
        let heap = unsafe { Heap::standing_still() };
        if let Some((start, _)) = extent(&heap, code) {
            loaded::remove(start);
        }
    });
    // SAFETY: the runtime's function, which is of this type.
    let release: Release = unsafe { std::mem::transmute(THEIR_RELEASE.load(Ordering::Relaxed)) };
    release(code)
}

/// Where code is, and how long, of the block that stands for it: `struct bytecode`
/// (`runtime/meta.c`, 4.14.1 and 5.3.0).
fn extent(heap: &Heap, code: usize) -> Option<(usize, usize)> {
    let shape = heap.shape(code)?;
    (shape == (ABSTRACT, 2)).then(|| (heap.word(code, 0), heap.word(code, 1)))
}
