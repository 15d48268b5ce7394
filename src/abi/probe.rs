//! Probes: the program's own quantities, in the sidecar of its trace.
//!
//! A program that the library attached itself to has no tracer and no mutator: it passes NULL for
//! both. If it is not traced, it gets no probe, and every function does nothing with NULL.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use crate::abi::guard::guard;
use crate::abi::handle::{heaptap_mutator, heaptap_tracer, session, with_mutator};
use crate::abi::pointer::{bytes, check, write};
use crate::abi::status::{
    HEAPTAP_STATUS_HANDLE, HEAPTAP_STATUS_OFF, HEAPTAP_STATUS_OPTION, HEAPTAP_STATUS_ORDER,
    Refused, heaptap_status,
};
use crate::probes::{self, Cell, Note, ObserveFn, ProbeKind};
use crate::runtimes;
use crate::tracer::{Mutator, Session, last_session};

/// A probe. Created by `heaptap_probe_open`; never freed. `tests/header.rs` writes its
/// declaration in the header.
#[repr(transparent)]
pub struct heaptap_probe {
    cell: Cell,
}

/// Counts how often the program passes points: `heaptap_probe_count`.
pub const HEAPTAP_PROBE_COUNT: u32 = 0;
/// Measures time: `heaptap_probe_timer_start`.
pub const HEAPTAP_PROBE_TIMER: u32 = 1;
/// Records a number: `heaptap_probe_value`.
pub const HEAPTAP_PROBE_VALUE: u32 = 2;
/// Records a text: `heaptap_probe_text`.
pub const HEAPTAP_PROBE_TEXT: u32 = 3;
/// Counts the blocks that are alive among those it marks: `heaptap_probe_tag`.
pub const HEAPTAP_PROBE_TAG: u32 = 4;

const _: () = {
    assert!(HEAPTAP_PROBE_COUNT == ProbeKind::Count as u32);
    assert!(HEAPTAP_PROBE_TIMER == ProbeKind::Timer as u32);
    assert!(HEAPTAP_PROBE_VALUE == ProbeKind::Value as u32);
    assert!(HEAPTAP_PROBE_TEXT == ProbeKind::Text as u32);
    assert!(HEAPTAP_PROBE_TAG == ProbeKind::Tag as u32);
};

/// The session of a handle, or, for NULL, the last of the runtime that the library attached itself
/// to.
///
/// # Safety
/// If not NULL and aligned, it points to a handle.
unsafe fn session_or_attached(tracer: *const heaptap_tracer) -> Result<Arc<Session>, Refused> {
    if tracer.is_null() {
        return last_session().ok_or(Refused(HEAPTAP_STATUS_OFF));
    }
    // SAFETY: this function requires `tracer` to be NULL or a handle.
    unsafe { session(tracer) }
}

/// The memory of a probe.
///
/// # Safety
/// If not NULL and aligned, it points to a probe.
unsafe fn cell<'a>(probe: *const heaptap_probe, kind: ProbeKind) -> Result<&'a Cell, Refused> {
    check(probe)?;
    // SAFETY: not NULL, aligned, and this function requires a probe, which is never freed.
    let cell = unsafe { &(*probe).cell };
    if !cell.is_probe() {
        return Err(Refused(HEAPTAP_STATUS_HANDLE));
    }
    if cell.kind == kind { Ok(cell) } else { Err(Refused(HEAPTAP_STATUS_OPTION)) }
}

/// The text in `length` bytes.
///
/// # Safety
/// If not NULL, it points to `length` bytes.
unsafe fn text(text: *const c_char, length: usize) -> Result<String, Refused> {
    check(text)?;
    if length > isize::MAX as usize {
        return Err(Refused(HEAPTAP_STATUS_OPTION));
    }
    // SAFETY: not NULL, and this function requires `length` bytes there.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    Ok(probes::text(bytes))
}

/// Writes the probe of this kind (`HEAPTAP_PROBE_COUNT`, …) and name to `*probe`. The same kind and
/// name give the same probe. Parts of a name are separated by `/`, and shown as a tree.
///
/// `tracer` may be NULL in a program that the library attached itself to. Names have at most
/// 1,024 bytes, and there are at most 4,096 probes: name kinds of work, not single requests.
///
/// Any thread, not inside a hook. Takes a lock. Returns `HEAPTAP_STATUS_OFF` if the program is
/// not traced. If it fails, `*probe` is NULL, which all other functions of probes take: they do
/// nothing, or return `HEAPTAP_STATUS_NULL`.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_probe_open(
    tracer: *mut heaptap_tracer,
    kind: u32,
    name: *const c_char,
    probe: *mut *mut heaptap_probe,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `probe` to be NULL or room for a pointer.
        unsafe { write(probe, std::ptr::null_mut()) }?;
        // SAFETY: this function requires `name` to be NULL or to end with a NUL.
        let name = unsafe { bytes(name) }?;
        let kind = ProbeKind::from_number(kind).filter(|_| !name.is_empty());
        let cell = |kind| -> Result<_, Refused> {
            if tracer.is_null() {
                // Also if no session is live now.
                let attached = runtimes::attached().ok_or(Refused(HEAPTAP_STATUS_OFF))?;
                return Ok(attached.open_probe(kind, &name));
            }
            // SAFETY: this function requires `tracer` to be NULL or a handle.
            let session = unsafe { session(tracer) }?;
            let ticks = session.stopwatch.tick_source();
            Ok(session.probes.open(kind, &name, ticks))
        };
        let cell = match kind {
            Some(kind) => cell(kind)?,
            None => None,
        };
        let cell = cell.ok_or(Refused(HEAPTAP_STATUS_OPTION))?;
        let opened = std::ptr::from_ref(cell).cast_mut().cast();
        // SAFETY: this function requires `probe` to be NULL or room for a pointer.
        unsafe { write(probe, opened) }
    })
}

/// Sets the number of a probe of the kind `HEAPTAP_PROBE_VALUE`. Any thread, at any time. Takes a
/// few nanoseconds.
///
/// # Safety
/// `probe` is NULL or a probe.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_probe_value(
    probe: *mut heaptap_probe,
    value: f64,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `probe` to be NULL or a probe.
        unsafe { cell(probe, ProbeKind::Value) }?.value.set(value);
        Ok(())
    })
}

/// Returns the number of a probe. Called on a thread of heaptap, on which all signals are blocked,
/// and of whose stack it may use some kilobytes.
///
/// It must return at once: while it runs, nothing is written. So it reads numbers of the program, and
/// waits for nothing. It must not call heaptap, nor the runtime, and must not unwind.
pub type heaptap_observe_fn = Option<unsafe extern "C-unwind" fn(context: *mut c_void) -> f64>;

/// A function of the host, and what it is called with.
#[derive(Clone, Copy)]
struct HostFunction {
    function: unsafe extern "C-unwind" fn(context: *mut c_void) -> f64,
    context: *mut c_void,
}

// SAFETY: `heaptap_probe_observe` requires that the function can be called with the context on any
// thread.
unsafe impl Send for HostFunction {}
// SAFETY: it is copied before it is called, and `heaptap_probe_observe` requires that it can be called
// on any thread.
unsafe impl Sync for HostFunction {}

impl HostFunction {
    fn call(&self) -> f64 {
        IS_OBSERVING.set(true);
        // SAFETY: `heaptap_probe_observe` requires that it can be called until it is replaced.
        let value = unsafe { (self.function)(self.context) };
        IS_OBSERVING.set(false);
        value
    }
}

thread_local! {
    /// This thread runs a function of the host.
    static IS_OBSERVING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Has a probe of the kind `HEAPTAP_PROBE_VALUE` set by a function, which is called with `context` ten
/// times a second, more often while memory runs short, as long as the program is traced. The same
/// probe can be set by `heaptap_probe_value`, too; the last value counts.
///
/// NULL for `function` ends it. When a call for this probe returns, the function that was set before
/// does not run any more and is not called again: the host may unload it, and free its context. It
/// is not called after `heaptap_tracer_stop` has returned, nor in a forked child, which may set one
/// for itself.
///
/// Any thread, not inside a hook. May wait for the function that was set before: do not hold a lock
/// that it takes. Returns `HEAPTAP_STATUS_ORDER` inside such a function.
///
/// # Safety
/// `probe` is NULL or a probe. `function` can be called with `context` on any thread, until it is
/// replaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_probe_observe(
    probe: *mut heaptap_probe,
    function: heaptap_observe_fn,
    context: *mut c_void,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `probe` to be NULL or a probe.
        let cell = unsafe { cell(probe, ProbeKind::Value) }?;
        if IS_OBSERVING.get() {
            return Err(Refused(HEAPTAP_STATUS_ORDER));
        }
        let host = function.map(|function| HostFunction { function, context });
        cell.observer.replace(host.map(|host| -> ObserveFn { Box::new(move || host.call()) }));
        Ok(())
    })
}

/// Sets the text of a probe of the kind `HEAPTAP_PROBE_TEXT`, of which at most 1,024 bytes are
/// kept. Any thread, not inside a hook. Allocates memory.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_probe_text(
    probe: *mut heaptap_probe,
    bytes: *const c_char,
    length: usize,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `probe` to be NULL or a probe.
        let cell = unsafe { cell(probe, ProbeKind::Text) }?;
        // SAFETY: this function requires `bytes` to be NULL or to point to `length` bytes.
        cell.text.set(unsafe { text(bytes, length) }?);
        Ok(())
    })
}

/// Begins an interval of a timer. Any number of them may run at once, on any threads; all are
/// added up. Any thread, at any time.
///
/// # Safety
/// `probe` is NULL or a probe.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_probe_timer_start(probe: *mut heaptap_probe) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `probe` to be NULL or a probe.
        unsafe { cell(probe, ProbeKind::Timer) }?.start_timer();
        Ok(())
    })
}

/// Ends an interval of a timer. Returns `HEAPTAP_STATUS_ORDER` if none is running. Any thread, at
/// any time.
///
/// # Safety
/// `probe` is NULL or a probe.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_probe_timer_stop(probe: *mut heaptap_probe) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `probe` to be NULL or a probe.
        let running = unsafe { cell(probe, ProbeKind::Timer) }?.stop_timer();
        if running { Ok(()) } else { Err(Refused(HEAPTAP_STATUS_ORDER)) }
    })
}

/// Marks a block with a tag: it is counted as live until the collector reports its end, whether
/// it was sampled or not. A block that is marked twice counts twice. The trace does not change.
///
/// `young` is 1 if the block is in the young heap, else 0. With the option `follow` set to
/// addresses it does not matter. In a program that the library attached itself to, `mutator` is
/// NULL.
///
/// The mutator's thread, not inside a hook. Takes some memory for each block.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_probe_tag(
    mutator: *mut heaptap_mutator,
    probe: *mut heaptap_probe,
    block: *mut c_void,
    young: u32,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `probe` to be NULL or a probe.
        let cell = unsafe { cell(probe, ProbeKind::Tag) }?;
        check(block)?;
        if mutator.is_null() {
            let attached = runtimes::attached().ok_or(Refused(HEAPTAP_STATUS_OFF))?;
            return Ok(attached.runtime.tag(cell, block as usize, young != 0)?);
        }
        let tag = |mutator: &mut Mutator, _: &mut isize| {
            Ok(mutator.tag(cell, block as usize, young != 0)?)
        };
        // SAFETY: this function requires that `mutator` is NULL or a handle that no other
        // thread uses.
        unsafe { with_mutator(mutator, tag) }
    })
}

/// Adds a line to the log of the program, of which at most 1,024 bytes are kept. More than some
/// thousand lines in a tenth of a second are lost and counted. `tracer` as for
/// `heaptap_probe_open`. Any thread, not inside a hook. Takes a lock.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_probe_log(
    tracer: *mut heaptap_tracer,
    line: *const c_char,
    length: usize,
) -> heaptap_status {
    // SAFETY: this function has the same requirements.
    guard(|| unsafe { note(tracer, line, length, Note::Log) })
}

/// Has views of the program stop at this moment, and show the text. The program runs on.
/// Otherwise like `heaptap_probe_log`.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_probe_pause(
    tracer: *mut heaptap_tracer,
    why: *const c_char,
    length: usize,
) -> heaptap_status {
    // SAFETY: this function has the same requirements.
    guard(|| unsafe { note(tracer, why, length, Note::Stop) })
}

/// # Safety
/// `tracer` is NULL or a handle, `bytes` NULL or points to `length` bytes.
unsafe fn note(
    tracer: *mut heaptap_tracer,
    bytes: *const c_char,
    length: usize,
    kind: fn(String) -> Note,
) -> Result<(), Refused> {
    // SAFETY: this function requires `tracer` to be NULL or a handle.
    let session = unsafe { session_or_attached(tracer) }?;
    // SAFETY: this function requires `bytes` to be NULL or to point to `length` bytes.
    let note = kind(unsafe { text(bytes, length) }?);
    session.probes.note(session.stopwatch.ticks(), note);
    Ok(())
}
