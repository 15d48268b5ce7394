//! Starting, stopping and everything else about a trace as a whole.

use std::ffi::c_char;

use crate::abi::guard::guard;
use crate::abi::handle::{heaptap_mutator, heaptap_tracer, session, with_mutator};
use crate::abi::options::heaptap_options;
use crate::abi::pointer::{bytes, check, write};
use crate::abi::status::{HEAPTAP_STATUS_OPTION, Refused, heaptap_status};
use crate::abi::versioned::read_versioned;
use crate::tracer::{self, Options};

/// Starts a trace.
///
/// Any thread, not inside a collection; once at a time in a process. Costs a
/// thread and the options' `buffer_kib` of memory, of which only what is used is
/// ever touched. When it fails the host runs on untraced.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_start(
    options: *const heaptap_options,
    tracer: *mut *mut heaptap_tracer,
) -> heaptap_status {
    guard(|| {
        check(tracer)?;
        // SAFETY: the host's promise.
        let given = unsafe { read_versioned(options) }?;
        // SAFETY: the host's promise.
        let options = unsafe { given.checked() }?;
        // SAFETY: the host's promise.
        let file = unsafe { given.file() }?;
        // SAFETY: the host's promise.
        unsafe { start(Options { file, ..options }, tracer) }
    })
}

/// Starts a trace if the environment asks for one, `HEAPTAP_STATUS_NOT_ASKED`
/// if not.
///
/// `HEAPTAP` (or `MEMTRACE`) names the file, `HEAPTAP_RATE` (or
/// `MEMTRACE_RATE`) the rate, `HEAPTAP_SEED` the seed, in place of those in
/// `options`; `HEAPTAP_FRAMES` the most frames in a backtrace. Otherwise as
/// `heaptap_tracer_start`.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_start_from_env(
    options: *const heaptap_options,
    tracer: *mut *mut heaptap_tracer,
) -> heaptap_status {
    guard(|| {
        check(tracer)?;
        // SAFETY: the host's promise.
        let given = unsafe { read_versioned(options) }?;
        // SAFETY: the host's promise.
        let options = unsafe { given.checked() }?;
        let options = tracer::options_from_environment(options)?;
        // SAFETY: the host's promise.
        unsafe { start(options, tracer) }
    })
}

/// # Safety
/// `tracer` is as for [`heaptap_tracer_start`].
unsafe fn start(options: Options, tracer: *mut *mut heaptap_tracer) -> Result<(), Refused> {
    let session = tracer::start(options)?;
    // SAFETY: the caller's promise.
    unsafe { write(tracer, heaptap_tracer::leak(session)) }
}

/// Writes everything and ends the trace.
///
/// Any thread, not inside a hook; end your mutators before, so that nothing they
/// still have to tell is missing. Hooks of other threads that are under way
/// finish; later ones do nothing. Also happens at `exit`.
///
/// # Safety
/// `tracer` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_stop(tracer: *mut heaptap_tracer) -> heaptap_status {
    guard(|| {
        // SAFETY: the host's promise.
        let session = unsafe { session(tracer) }?;
        Ok(session.stop()?)
    })
}

/// Returns when everything recorded so far is in the file.
///
/// Any thread, not inside a hook. Worth calling before `_exit` and `exec`,
/// which end a process without ceremony; otherwise it happens every 100 ms.
///
/// # Safety
/// `tracer` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_flush(tracer: *mut heaptap_tracer) -> heaptap_status {
    guard(|| {
        // SAFETY: the host's promise.
        let session = unsafe { session(tracer) }?;
        Ok(session.flush()?)
    })
}

/// Ends the file and goes on in another, which holds what is sampled from now
/// on. The ends of blocks in the old file are in neither.
///
/// Any thread, not inside a hook. When it fails the old file goes on.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_rotate(
    tracer: *mut heaptap_tracer,
    file: *const c_char,
) -> heaptap_status {
    guard(|| {
        // SAFETY: the host's promise.
        let session = unsafe { session(tracer) }?;
        // SAFETY: the host's promise.
        let file = unsafe { bytes(file) }?;
        Ok(session.rotate(&file)?)
    })
}

/// A label for what mutators do: the same name gives the same label. Never 0.
///
/// Any thread, not inside a hook; takes a lock. There are at most 65,536.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_label_intern(
    tracer: *mut heaptap_tracer,
    name: *const c_char,
    label: *mut u32,
) -> heaptap_status {
    guard(|| {
        // SAFETY: the host's promise.
        let session = unsafe { session(tracer) }?;
        // SAFETY: the host's promise.
        let name = unsafe { bytes(name) }?;
        check(label)?;
        if name.is_empty() {
            return Err(Refused(HEAPTAP_STATUS_OPTION));
        }
        // SAFETY: the host's promise.
        unsafe { write(label, session.labels.intern(&name)) }
    })
}

/// What the mutator is doing from now on: the outermost frame of its
/// backtraces. 0: nothing in particular.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_mutator_label(
    mutator: *mut heaptap_mutator,
    label: u32,
) -> heaptap_status {
    guard(|| {
        // SAFETY: the host's promise.
        unsafe {
            with_mutator(mutator, |mutator, _| {
                mutator.set_label(label);
                Ok(())
            })
        }
    })
}
