//! The frame tables of the program's modules and of its plugins.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::borrowed_tables::BorrowedTables;
use super::descriptors::Descriptors;
use super::frame_table::OcamlTable;
use super::version::MajorVersion;
use crate::runtimes::attach::image::for_each_image;
use crate::runtimes::attach::library::lookup_in;
use crate::runtimes::attach::symbols;
use crate::tracer::{self, Session, say};

/// The session to which the tables of plugins are added; NULL if none is live. It changes at safe
/// points, where no plugin is being loaded.
static TRACED: AtomicPtr<Session> = AtomicPtr::new(ptr::null_mut());

/// The plugin that was loaded last when tables were added to a session.
static ADDED: AtomicUsize = AtomicUsize::new(0);

/// The version of the runtime, and its own index of frames if that can be used. Its layout is proved
/// before the runtime starts, or under its lock.
static PREPARED: OnceLock<(MajorVersion, Option<Descriptors>)> = OnceLock::new();

/// What `caml_natdynlink_hook` was before.
static NEXT_HOOK: AtomicUsize = AtomicUsize::new(0);

/// A plugin, in a list that only grows. Not behind a lock, which a forked child could find taken.
struct Plugin {
    table: usize,
    /// `None` if it is not known.
    code: Option<Range<usize>>,
    next: *const Plugin,
}

/// The plugin that was loaded last.
static PLUGINS: AtomicPtr<Plugin> = AtomicPtr::new(ptr::null_mut());

/// What stands between a unit's name and that of one of its symbols
/// (`getsym`, `runtime/dynlink_nat.c`): 4.14.1, and 5.3.0 on this system.
const SEPARATORS: [&[u8]; 2] = [b"__", b"."];

type PluginHook = unsafe extern "C" fn(library: *mut c_void, unit: *const c_char);

/// Looks at what sessions need, before the runtime starts or under its lock.
pub(super) fn prepare(version: MajorVersion) {
    PREPARED.get_or_init(|| (version, Descriptors::find(version)));
}

/// Makes the tables of all modules known to a session: `caml_frametable` is a list of them that
/// ends with NULL (`runtime/roots_nat.c`, written by the linker step of `ocamlopt`). On the thread
/// that starts the session, perhaps while the program loads a plugin.
pub(super) fn add_all(session: &Arc<Session>, version: MajorVersion) {
    let Some(list) = symbols::lookup(c"caml_frametable") else { return };
    let newest = newest_plugin();
    let tables = list_of_tables(list, version);
    if borrow(session, version, tables.clone()) {
        let has_crossings = |table: &OcamlTable| table.begins_with_return_to_c() == Ok(true);
        tables.filter(has_crossings).for_each(|table| add(session, table));
    } else {
        let count = tables.clone().filter_map(|table| table.count().ok()).sum::<u64>();
        session.tables.reserve(usize::try_from(count).unwrap_or(0));
        tables.for_each(|table| add(session, table));
    }
    add_plugins(session, version, newest, 0);
    ADDED.store(newest, Ordering::Relaxed);
}

/// A session begins: adds the tables of plugins that were loaded since [`add_all`], and has those of
/// later ones added. The session lives until [`end`].
pub(super) fn begin(session: &Arc<Session>, version: MajorVersion) {
    add_plugins(session, version, newest_plugin(), ADDED.load(Ordering::Relaxed));
    TRACED.store(Arc::as_ptr(session).cast_mut(), Ordering::Release);
}

/// The session ends.
pub(super) fn end() {
    TRACED.store(ptr::null_mut(), Ordering::Release);
}

/// Adds the tables of plugins, from the one that stands at `newest` down to before `known`.
fn add_plugins(session: &Session, version: MajorVersion, newest: usize, known: usize) {
    for plugin in plugins_from(newest as *const Plugin) {
        if ptr::from_ref(plugin) as usize == known {
            break;
        }
        // SAFETY: the table of a plugin, which is never unloaded once it runs.
        add(session, unsafe { OcamlTable::new(plugin.table as *const u8, version) });
    }
}

/// Has frames looked up in the runtime's own index, if that is possible.
fn borrow(
    session: &Session,
    version: MajorVersion,
    tables: impl Iterator<Item = OcamlTable> + Clone,
) -> bool {
    if asks_runtime() {
        // Then no walk of ours enters the frames that it reaches.
        return false;
    }
    let Some(descriptors) = PREPARED.get().and_then(|(_, descriptors)| *descriptors) else {
        return false;
    };
    let find = move |return_address| descriptors.record(return_address);
    // SAFETY: the runtime's index holds the addresses of descriptors, and may be read
    // inside hooks (see `descriptors`).
    let borrowed = unsafe { BorrowedTables::new(tables, version, find) };
    match borrowed {
        Ok(Some(borrowed)) => session.tables.borrow(Arc::new(borrowed)),
        Ok(None) => true,
        Err(_) => false,
    }
}

/// Whether the runtime's own unwinder is to walk stacks, for comparison.
pub(super) fn asks_runtime() -> bool {
    // Another value has been refused before anything was attached.
    heaptap_settings::UNWINDER.is_on(|name| std::env::var_os(name)).unwrap_or(false)
}

/// The tables of the list at this address, up to its NULL.
fn list_of_tables(list: usize, version: MajorVersion) -> impl Iterator<Item = OcamlTable> + Clone {
    let pointers = (0..).map(move |index| {
        // SAFETY: the list goes on until its NULL.
        unsafe { (list as *const *const u8).wrapping_add(index).read() }
    });
    // SAFETY: tables that the compiler made for this program stay as long as it runs.
    pointers
        .take_while(|table| !table.is_null())
        .map(move |table| unsafe { OcamlTable::new(table, version) })
}

fn add(session: &Session, table: OcamlTable) {
    if let Err(defect) = session.tables.add(Arc::new(table)) {
        say(format_args!("a frame table was refused, backtraces may end early: {defect}"));
    }
}

/// The tables of the program and of the plugins that it has loaded. Any thread.
pub(super) fn all_tables(version: MajorVersion) -> impl Iterator<Item = OcamlTable> {
    let list = symbols::lookup(c"caml_frametable");
    let program = list.into_iter().flat_map(move |list| list_of_tables(list, version));
    // SAFETY: the table of a plugin, which is never unloaded once it runs.
    let plugins =
        plugins().map(move |plugin| unsafe { OcamlTable::new(plugin.table as *const u8, version) });
    program.chain(plugins)
}

/// The code of each plugin that the program has loaded; `None` if it is not known. Any thread.
pub(super) fn code_of_plugins() -> impl Iterator<Item = Option<Range<usize>>> {
    plugins().map(|plugin| plugin.code.clone())
}

/// Stands for the plugin that was loaded last; 0 if there is none. Any thread.
pub(super) fn newest_plugin() -> usize {
    PLUGINS.load(Ordering::Acquire) as usize
}

fn plugins() -> impl Iterator<Item = &'static Plugin> {
    plugins_from(PLUGINS.load(Ordering::Acquire))
}

/// NULL or a plugin, and those that were loaded before it.
fn plugins_from(newest: *const Plugin) -> impl Iterator<Item = &'static Plugin> {
    let mut next = newest;
    std::iter::from_fn(move || {
        // SAFETY: NULL, or a node that `remember` has leaked.
        let plugin = unsafe { next.as_ref() }?;
        next = plugin.next;
        Some(plugin)
    })
}

/// Notices the plugins that a program has loaded that runs already. Under the runtime's lock, after
/// [`prepare`].
///
/// A plugin is a library with `caml_plugin_header` and the tables of its units
/// (`caml_natdynlink_open`, `runtime/dynlink_nat.c`). Those of a plugin that runs, which is never unloaded,
/// are in the runtime's index; one that is being loaded is noticed when it runs.
pub(super) fn find_loaded_plugins() {
    let Some((version, Some(descriptors))) = PREPARED.get() else { return };
    let mut found = Vec::new();
    for_each_image(|image| {
        if image.defined(c"caml_plugin_header").is_none() {
            return;
        }
        image.for_each_symbol(|name, address| {
            let unit = SEPARATORS.iter().find_map(|separator| {
                let suffix = [separator, &b"frametable"[..]].concat();
                name.strip_prefix(b"caml")?.strip_suffix(&suffix[..])
            });
            if let Some(unit) = unit {
                let part = |part: &[u8]| {
                    SEPARATORS.iter().find_map(|separator| {
                        let name = [b"caml", unit, separator, part].concat();
                        image.defined(&CString::new(name).ok()?)
                    })
                };
                found.push((address, part(b"code_begin").zip(part(b"code_end"))));
            }
        });
    });
    for (address, code) in found {
        // SAFETY: the table of a unit, whose library stays loaded if the runtime's index has it.
        let table = unsafe { OcamlTable::new(address as *const u8, *version) };
        let first = table.return_addresses().ok().and_then(|mut addresses| addresses.next());
        if first.is_some_and(|first| descriptors.record(first) != 0) {
            let _ = remember(address, code.map(|(begin, end)| begin..end.max(begin)));
        }
    }
}

/// Notices plugins that are loaded from now on, and adds their tables to the trace: the
/// runtime calls a hook between registering a plugin and running it
/// (`caml_natdynlink_run`, `runtime/dynlink_nat.c`). May be called twice.
pub(super) fn watch_plugins() {
    let Some(hook) = symbols::lookup(c"caml_natdynlink_hook") else { return };
    let (hook, ours) = (hook as *mut usize, plugin_loaded as *const () as usize);
    // SAFETY: a variable of the runtime that holds a pointer; OCaml does not run yet, or its lock is
    // held.
    let before = unsafe { ptr::replace(hook, ours) };
    if before != ours {
        NEXT_HOOK.store(before, Ordering::Relaxed);
    }
}

/// Adds a plugin to the list. False if it is there: a library that is loaded again is the same one.
fn remember(table: usize, code: Option<Range<usize>>) -> bool {
    if plugins().any(|plugin| plugin.table == table) {
        return false;
    }
    let plugin = Box::leak(Box::new(Plugin { table, code, next: ptr::null() }));
    let _ = PLUGINS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |next| {
        plugin.next = next;
        Some(ptr::from_mut(plugin))
    });
    true
}

/// Called by the runtime when a plugin is loaded, not inside a hook of the profiler.
extern "C" fn plugin_loaded(library: *mut c_void, unit: *const c_char) {
    tracer::guard(|| {
        // SAFETY: `caml_natdynlink_run` passes the name of the unit, a C string.
        let unit = unsafe { CStr::from_ptr(unit) };
        let symbol = |name: &[u8]| {
            SEPARATORS.iter().find_map(|separator| {
                let name = [b"caml", unit.to_bytes(), separator, name].concat();
                // SAFETY: `caml_natdynlink_run` passes the handle that it got from `dlopen`.
                unsafe { lookup_in(library, &CString::new(name).ok()?) }
            })
        };
        let Some(table) = symbol(b"frametable") else { return };
        if plugins().any(|plugin| plugin.table == table) {
            // Its file was loaded before: the loader has returned the same code again.
            return;
        }
        // The runtime looks for these two, too.
        let code = symbol(b"code_begin").zip(symbol(b"code_end"));
        if !remember(table, code.map(|(begin, end)| begin..end.max(begin))) {
            return;
        }
        // SAFETY: NULL, or a session that lives until `end` is called at a safe point: not while
        // this function runs.
        let traced = unsafe { TRACED.load(Ordering::Acquire).as_ref() };
        if let Some((session, (version, _))) = traced.zip(PREPARED.get()) {
            // SAFETY: the symbol is the plugin's table. Plugins are never unloaded once
            // they run.
            add(session, unsafe { OcamlTable::new(table as *const u8, *version) });
        }
    });
    let next = NEXT_HOOK.load(Ordering::Relaxed);
    if next != 0 {
        // SAFETY: `void (*caml_natdynlink_hook)(void *, const char *)`
        // (`runtime/dynlink_nat.c`) held it before.
        let next: PluginHook = unsafe { symbols::function_at(next) };
        // SAFETY: the arguments are those that the runtime has passed.
        unsafe { next(library, unit) };
    }
}
