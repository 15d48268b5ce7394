//! What the runtime calls: for objects that are allocated, for collections, and for objects that move.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::host::{self, Host};
use super::layout::{
    END_OF_MARKING, ENTRY, EXIT, FALSE, NEW_OBJECT, RAW_ARGUMENT, START_OF_COLLECTION, T_DATA, TRUE,
};
use super::symbols::{DataType, Runtime, Value};
use super::values::Object;
use crate::tracer::{self, say};

/// The events of the hook.
const EVENTS: u32 = NEW_OBJECT | START_OF_COLLECTION | END_OF_MARKING;
/// And those of the time line.
const TIMED: u32 = EVENTS | ENTRY | EXIT;

/// The type of the object that has the runtime call us when objects have moved.
static MOVES: DataType = DataType {
    name: c"heaptap".as_ptr(),
    mark: None,
    free: None,
    size: None,
    compact: Some(on_move),
    reserved: ptr::null(),
    parent: ptr::null(),
    data: ptr::null(),
    flags: 0,
};

/// That object; 0 before the first session. The hook, whose datum it is, keeps it alive and in its place.
static WATCHER: AtomicUsize = AtomicUsize::new(0);

/// Adds the hook. Allocates one object, which the program's own listing of objects leaves out.
pub(super) fn add(runtime: &Runtime, has_time_line: bool) {
    // Not NULL: else the function for moves is not called.
    let unused = (&raw const MOVES).cast_mut().cast();
    let watcher = (runtime.wrap)(FALSE, unused, &raw const MOVES);
    WATCHER.store(watcher, Ordering::Relaxed);
    let events = if has_time_line { TIMED } else { EVENTS };
    (runtime.add_hook)(on_event, events, watcher, RAW_ARGUMENT);
}

/// Removes it. Inside the hook it takes effect when that returns.
pub(super) fn remove(runtime: &Runtime) {
    (runtime.remove_hook)(on_event, WATCHER.load(Ordering::Relaxed));
}

/// The hook.
pub(super) extern "C" fn on_event(_: Value, event: *mut c_void) {
    tracer::guard(|| {
        // SAFETY: the runtime calls hooks under its lock, and none inside another; references end where
        // the functions below say.
        let Some(host) = (unsafe { host::host() }) else { return };
        match (host.runtime.event_of)(event) {
            NEW_OBJECT => on_new_object(event),
            // SAFETY: under the lock; `host` is not used any more.
            END_OF_MARKING => unsafe { host::on_own_stack(Host::marked) },
            // The first object starts the session of a forked child.
            _ if host.has_forked() => {}
            START_OF_COLLECTION => host.collection_begins(),
            ENTRY => host.slice_begins(),
            EXIT => host.slice_ends(),
            _ => {}
        }
    });
}

#[inline]
fn on_new_object(event: *mut c_void) {
    // SAFETY: as in `on_event`, which uses its reference no more.
    let Some(mut host) = (unsafe { host::host() }) else { return };
    let runtime = host.runtime;
    // SAFETY: the object that was just allocated, which has its type and class already.
    let Some(object) = (unsafe { Object::new((runtime.object_of)(event)) }) else { return };
    if object.has_type(T_DATA) && is_ractor(&runtime, object) {
        return give_up(host);
    }
    if host.has_forked() {
        // Starts the child's own session, if it has one.
        // SAFETY: under the lock; the reference is taken anew.
        unsafe { host::on_own_stack(|_| ()) };
        // SAFETY: as above.
        let Some(again) = (unsafe { host::host() }) else { return };
        host = again;
    }
    if host.counts_to_sample() {
        // SAFETY: under the lock; `host` is not used any more.
        unsafe { host::on_own_stack(|host| host.record(object)) };
    }
}

/// Whether the program makes a second ractor. Its object never takes the fast path, so no gate hides it.
fn is_ractor(runtime: &Runtime, object: Object) -> bool {
    let is_of =
        |class: Object| (runtime.inherits)(class.value(), runtime.variable(runtime.ractor_class));
    object.class().is_some_and(|class| is_of(class) == TRUE)
}

/// With a hook for objects Ruby 3.1 crashes in the first ractor beside the main one, whoever added the
/// hook.
#[cold]
fn give_up(host: &Host) {
    host.give_up();
    remove(&host.runtime);
    say(format_args!(
        "this Ruby program starts a ractor, which cannot be traced; the trace ends here, the program goes on"
    ));
}

/// Called for `WATCHER` while references are updated, with the program standing still.
extern "C" fn on_move(_: *mut c_void) {
    // SAFETY: the collector holds the lock, outside of hooks.
    unsafe { host::on_own_stack(Host::moved) };
}
