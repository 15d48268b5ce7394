//! The frame tables of the program's modules and of its plugins.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::descriptors::Descriptors;
use crate::runtimes::attach::library::lookup_in;
use crate::runtimes::attach::symbols;
use crate::stack::OcamlVersion;
use crate::tracer::{Session, say};

/// The session that plugins' tables belong to.
static SESSION: OnceLock<(Arc<Session>, OcamlVersion)> = OnceLock::new();

/// What `caml_natdynlink_hook` was before.
static NEXT_HOOK: AtomicUsize = AtomicUsize::new(0);

/// What stands between a unit's name and that of one of its symbols
/// (`getsym`, `runtime/dynlink_nat.c`): 4.14.1, and 5.3.0 on this system.
const SEPARATORS: [&[u8]; 2] = [b"__", b"."];

type PluginHook = unsafe extern "C" fn(library: *mut c_void, unit: *const c_char);

/// Makes the tables of all modules known: `caml_frametable` is a list of them that
/// ends with NULL (`runtime/roots_nat.c`, written by the linker step of `ocamlopt`).
pub(super) fn add_all(session: &Arc<Session>, version: OcamlVersion) {
    let Some(tables) = symbols::lookup(c"caml_frametable") else { return };
    if !borrow(session, version, tables) {
        // SAFETY: a table begins with the number of its frames.
        let frames = |table: *const u8| unsafe { table.cast::<u64>().read() };
        let count = list(tables).map(frames).sum::<u64>();
        session.tables.reserve(usize::try_from(count).unwrap_or(0));
        list(tables).for_each(|table| add(session, version, table));
    }
    let _ = SESSION.set((Arc::clone(session), version));
}

/// Has the tables looked up in the runtime's own index, if that can be.
fn borrow(session: &Session, version: OcamlVersion, tables: usize) -> bool {
    if asks_runtime() {
        // Frames are not met by us then.
        return false;
    }
    let Some(descriptors) = Descriptors::find(version) else { return false };
    let index = Box::new(move |return_address| descriptors.record(return_address));
    // SAFETY: the runtime's tables, which stay, and its index of them.
    let borrowed = unsafe { session.tables.borrow_ocaml(list(tables), version, index) };
    borrowed.unwrap_or(false)
}

/// Whether stacks are walked by the runtime's own unwinder, to compare it with
/// ours.
pub(super) fn asks_runtime() -> bool {
    std::env::var_os("HEAPTAP_UNWINDER").is_some_and(|value| value == "runtime")
}

/// The pointers from there to the NULL.
fn list(tables: usize) -> impl Iterator<Item = *const u8> + Clone {
    let places = (0..).map(move |index| (tables as *const *const u8).wrapping_add(index));
    // SAFETY: the list goes on until its NULL.
    places.map(|place| unsafe { place.read() }).take_while(|table| !table.is_null())
}

fn add(session: &Session, version: OcamlVersion, table: *const u8) {
    // SAFETY: one of the runtime's tables, which stay. Plugins are never
    // unloaded once they run.
    if let Err(defect) = unsafe { session.tables.add_ocaml(table, version) } {
        say(format_args!("a frame table was refused, backtraces may end early: {defect}"));
    }
}

/// From now on the tables of plugins are added when they are loaded: the runtime
/// calls a hook between registering a plugin and running it
/// (`caml_natdynlink_run`, `runtime/dynlink_nat.c`).
pub(super) fn follow_plugins() {
    let Some(hook) = symbols::lookup(c"caml_natdynlink_hook") else { return };
    let hook = hook as *mut usize;
    // SAFETY: a pointer of the runtime; OCaml does not run yet.
    let before = unsafe { ptr::replace(hook, plugin_loaded as *const () as usize) };
    NEXT_HOOK.store(before, Ordering::Relaxed);
}

/// A plugin is loaded. Not inside a hook of the profiler.
extern "C" fn plugin_loaded(library: *mut c_void, unit: *const c_char) {
    let added = std::panic::catch_unwind(|| {
        let Some((session, version)) = SESSION.get() else { return };
        // SAFETY: the runtime's string.
        let unit = unsafe { CStr::from_ptr(unit) };
        let table = SEPARATORS.iter().find_map(|separator| {
            let name = [b"caml", unit.to_bytes(), separator, b"frametable"].concat();
            // SAFETY: a handle from `dlopen`, by the runtime's promise.
            unsafe { lookup_in(library, &CString::new(name).ok()?) }
        });
        if let Some(table) = table {
            add(session, *version, table as *const u8);
        }
    });
    drop(added);
    let next = NEXT_HOOK.load(Ordering::Relaxed);
    if next != 0 {
        // SAFETY: a hook of this type, by the runtime's declaration.
        let next: PluginHook = unsafe { std::mem::transmute(next) };
        // SAFETY: what the runtime gave us.
        unsafe { next(library, unit) };
    }
}
