//! A trace as a whole: starting, stopping, flushing, rotating, labels.

use std::ffi::c_char;

use crate::abi::guard::guard;
use crate::abi::handle::{heaptap_mutator, heaptap_tracer, on_mutator, session};
use crate::abi::options::heaptap_options;
use crate::abi::pointer::{bytes, check, write};
use crate::abi::status::{HEAPTAP_STATUS_OPTION, HEAPTAP_STATUS_RATE, Refused, heaptap_status};
use crate::abi::versioned::read_versioned;
use crate::control;
use crate::tracer::{self, Options, Rate};

/// Starts a trace. A process has at most one trace at a time. If the call fails,
/// the host runs untraced.
///
/// Any thread, not inside a collection. Starts the writer thread and reserves
/// `buffer_kib` of memory, of which only the used part is ever touched.
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
        // SAFETY: this function requires `options` to be NULL or a struct of the size
        // that it starts with.
        let given = unsafe { read_versioned(options) }?;
        // SAFETY: the header requires the strings in the options to be NULL or to end
        // with a NUL.
        let options = unsafe { given.checked() }?;
        // SAFETY: the header requires the strings in the options to be NULL or to end
        // with a NUL.
        let file = unsafe { given.file() }?;
        // SAFETY: this function requires `tracer` to be NULL or room for a pointer.
        unsafe { start(Options { file, ..options }, tracer) }
    })
}

/// Starts a trace if the environment asks for one. Returns
/// `HEAPTAP_STATUS_NOT_ASKED` if it does not.
///
/// `HEAPTAP` (or `MEMTRACE`) is the file and asks for the trace, `HEAPTAP_RATE`
/// (or `MEMTRACE_RATE`) the rate, `HEAPTAP_BUDGET` the budget, `HEAPTAP_SEED` the seed and `HEAPTAP_FRAMES` the
/// most frames in a backtrace. Each replaces the value in `options`. Otherwise
/// like `heaptap_tracer_start`.
///
/// If `HEAPTAP_TIMELINE` is 1, figures of the process are recorded over time beside the trace.
/// `HEAPTAP_PROBES_LIMIT` is how large the file of probes and time line may become.
/// `HEAPTAP_ROTATE` makes the trace a series of files, of which `HEAPTAP_KEEP` are kept.
/// `HEAPTAP_RECORDER` keeps the trace in memory until it is asked for, or the process dies.
/// If `HEAPTAP_LISTEN` is 1, the process takes commands; `HEAPTAP_SNAPSHOT` says when
/// snapshots of the heap are taken, and `HEAPTAP_SNAPSHOT_FILE` names them, with or without
/// a trace. Starts a thread for each of the first two.
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
        // SAFETY: this function requires `options` to be NULL or a struct of the size
        // that it starts with.
        let given = unsafe { read_versioned(options) }?;
        // SAFETY: the header requires the strings in the options to be NULL or to end
        // with a NUL.
        let options = unsafe { given.checked() }?;
        let control = control::settings_of_host()?;
        let started = tracer::options_from_environment(options).map_err(Refused::from);
        // SAFETY: this function requires `tracer` to be NULL or room for a pointer.
        let started = started.and_then(|options| unsafe { start(options, tracer) });
        control::start_for_host(&control);
        started
    })
}

/// # Safety
/// `tracer` is NULL or room for a pointer.
unsafe fn start(options: Options, tracer: *mut *mut heaptap_tracer) -> Result<(), Refused> {
    let session = tracer::start(options)?;
    // SAFETY: this function requires `tracer` to be NULL or room for a pointer.
    unsafe { write(tracer, heaptap_tracer::leak(session)) }
}

/// Writes everything recorded so far and ends the trace. Happens by itself at
/// `exit`.
///
/// Any thread, not inside a hook. End the mutators first, so that all their
/// events are written. Hooks that are running on other threads finish; later ones
/// do nothing. Returns `HEAPTAP_STATUS_FILE` if the end could not be written.
///
/// # Safety
/// `tracer` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_stop(tracer: *mut heaptap_tracer) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `tracer` to be NULL or a handle.
        let session = unsafe { session(tracer) }?;
        Ok(session.stop()?)
    })
}

/// Returns when everything recorded so far is in the file.
///
/// Any thread, not inside a hook. Call it before `_exit` and `exec`, which run no
/// exit handlers. Otherwise events reach the file at least every 100 ms.
///
/// # Safety
/// `tracer` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_flush(tracer: *mut heaptap_tracer) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `tracer` to be NULL or a handle.
        let session = unsafe { session(tracer) }?;
        Ok(session.flush()?)
    })
}

/// Begins the next file of a trace that is a series (`rotate_bytes`, `rotate_seconds` and `keep` in
/// `heaptap_options`). From then on samples are taken at `rate`; 0 stays at the one before. All
/// files of the series are read as one trace.
///
/// Any thread, not inside a hook. `HEAPTAP_STATUS_ORDER`: the trace is one file.
///
/// # Safety
/// `tracer` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_next_part(
    tracer: *mut heaptap_tracer,
    rate: f64,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `tracer` to be NULL or a handle.
        let session = unsafe { session(tracer) }?;
        let rate = match rate {
            0.0 => None,
            rate => Some(Rate::new(rate).ok_or(Refused(HEAPTAP_STATUS_RATE))?),
        };
        session.next_part(rate)?;
        Ok(())
    })
}

/// Ends the current file and continues in `file`, which gets the blocks that are
/// sampled from now on. What happens later to blocks in the old file is recorded
/// in neither.
///
/// Any thread, not inside a hook. If the call fails, the trace continues in the
/// old file. `HEAPTAP_STATUS_ORDER`: the trace is a series, which has names of its own:
/// `heaptap_tracer_next_part`.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_rotate(
    tracer: *mut heaptap_tracer,
    file: *const c_char,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `tracer` to be NULL or a handle.
        let session = unsafe { session(tracer) }?;
        // SAFETY: this function requires `file` to be NULL or to end with a NUL.
        let file = unsafe { bytes(file) }?;
        Ok(session.rotate(&file)?)
    })
}

/// Writes the label with this name to `*label`. The same name gives the same
/// label, which is never 0.
///
/// Any thread, not inside a hook. Takes a lock. There are at most 65,536 labels;
/// names beyond them share the last one.
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
        // SAFETY: this function requires `tracer` to be NULL or a handle.
        let session = unsafe { session(tracer) }?;
        // SAFETY: this function requires `name` to be NULL or to end with a NUL.
        let name = unsafe { bytes(name) }?;
        check(label)?;
        if name.is_empty() {
            return Err(Refused(HEAPTAP_STATUS_OPTION));
        }
        // SAFETY: this function requires `label` to be NULL or room for the result.
        unsafe { write(label, session.labels.intern(&name)) }
    })
}

/// Sets what the mutator is working on: the label becomes the outermost frame of
/// its backtraces. 0 for none. The mutator's thread.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_mutator_label(
    mutator: *mut heaptap_mutator,
    label: u32,
) -> heaptap_status {
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe {
        on_mutator(mutator, |mutator, _| {
            mutator.set_label(label);
            Ok(())
        })
    }
}
