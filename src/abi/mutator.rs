//! Mutators: starting, ending, suspending, and where their stacks are.

use std::ffi::c_void;

use crate::abi::guard::guard;
use crate::abi::handle::{
    heaptap_mutator, heaptap_tracer, on_mutator, session, take_mutator, with_mutator,
};
use crate::abi::pointer::{check, write};
use crate::abi::status::{HEAPTAP_STATUS_OPTION, Refused, heaptap_status};
use crate::abi::versioned::{VersionedStruct, read_versioned};
use crate::tracer::{Mutator, StackLocator, StackSource, StackTop};

/// The top of the managed stack. Its layout never changes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_stack {
    /// The return address of the innermost managed frame. 0: there is none.
    pub return_address: usize,
    /// The stack pointer of that frame.
    pub sp: usize,
    /// The C stack pointer at the time when managed code last called C, where the
    /// C frames inside that frame end. 0: C frames are left out.
    pub native_limit: usize,
}

/// Writes the top of the managed stack to `*stack`. Called on the mutator's
/// thread when a sample is taken. It must be quick and must not call heaptap.
pub type heaptap_where_fn =
    Option<unsafe extern "C-unwind" fn(host: *mut c_void, stack: *mut heaptap_stack)>;

/// The runtime's own stack walker. Writes the codes of at most `capacity` frames
/// to `codes`, innermost first, each from 1 to 2^60 - 1. Returns the number of
/// frames on the stack, which may be larger than `capacity`. Called on the
/// mutator's thread when a sample is taken. It must not call heaptap.
pub type heaptap_walk_fn = Option<
    unsafe extern "C-unwind" fn(host: *mut c_void, codes: *mut u64, capacity: usize) -> usize,
>;

/// Options of a mutator: how its stack is walked.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_mutator_options {
    /// `sizeof(heaptap_mutator_options)`.
    pub size: usize,
    /// Passed to `where` and `walk`.
    pub host: *mut c_void,
    /// Finds the top of the stack, which is then walked with the frame tables.
    pub r#where: heaptap_where_fn,
    /// Walks the stack instead. Set at most one of `where` and `walk`; if both
    /// are NULL, backtraces are empty.
    pub walk: heaptap_walk_fn,
    /// Must be zero.
    pub reserved: [u8; 32],
}

// SAFETY: `repr(C)`, starts with its size, no padding; numbers, a pointer and
// optional function pointers, which the header requires to be functions or NULL.
unsafe impl VersionedStruct for heaptap_mutator_options {
    const FIRST_SIZE: usize = 64;

    fn reserved_is_zero(&self) -> bool {
        self.reserved == [0; 32]
    }
}

impl heaptap_mutator_options {
    fn stack_source(&self) -> Result<StackSource, Refused> {
        // As an address: a closure that holds a pointer is not `Send`.
        let host = self.host as usize;
        match (self.r#where, self.walk) {
            (None, None) => Ok(StackSource::None),
            (Some(function), None) => Ok(StackSource::Tables(StackLocator {
                locate: ask_host,
                arguments: [function as usize, host],
            })),
            (None, Some(walk)) => Ok(StackSource::Own(Box::new(move |room| {
                // SAFETY: `walk` is the host's function of the documented type, and `room`
                // holds `room.len()` codes.
                unsafe { walk(host as *mut c_void, room.as_mut_ptr(), room.len()) }
            }))),
            (Some(_), Some(_)) => Err(Refused(HEAPTAP_STATUS_OPTION)),
        }
    }
}

/// Calls the host's `heaptap_where_fn`.
fn ask_host(function: usize, host: usize) -> StackTop {
    // SAFETY: `stack_source` has made the address from a `heaptap_where_fn`.
    let function = unsafe { std::mem::transmute::<usize, heaptap_where_fn>(function) };
    let Some(function) = function else { return StackTop::default() };
    let mut stack = heaptap_stack { return_address: 0, sp: 0, native_limit: 0 };
    // SAFETY: the host's function of the documented type; `stack` outlives the call.
    unsafe { function(host as *mut c_void, &raw mut stack) };
    StackTop {
        return_address: stack.return_address as u64,
        sp: stack.sp as u64,
        native_limit: stack.native_limit as u64,
    }
}

/// Creates a mutator. Each thread or domain that allocates needs one.
///
/// Any thread, not inside a hook. A mutator is used by one thread at a time: its
/// own, or another that has stopped it. It needs memory for its deepest
/// backtrace.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_mutator_start(
    tracer: *mut heaptap_tracer,
    options: *const heaptap_mutator_options,
    mutator: *mut *mut heaptap_mutator,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `tracer` to be NULL or a handle.
        let session = unsafe { session(tracer) }?;
        // SAFETY: this function requires `options` to be NULL or a struct of the size
        // that it starts with.
        let options = unsafe { read_versioned(options) }?;
        check(mutator)?;
        let handle = heaptap_mutator::leak(Mutator::start(&session, options.stack_source()?)?);
        session.enter(handle as usize);
        // SAFETY: this function requires `mutator` to be NULL or room for the result.
        unsafe { write(mutator, handle) }
    })
}

/// Ends a mutator. The blocks that it follows pass to `heir`, a mutator that the
/// calling thread may use. If `heir` is NULL they stay with the tracer until a
/// mutator starts or `heaptap_tracer_major_sweep` runs.
///
/// The mutator's thread, or another that has stopped it; not inside a hook. May
/// wait for the writer, if promotions and collections are still to be recorded.
///
/// # Safety
/// The pointers are NULL or handles that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_mutator_end(
    mutator: *mut heaptap_mutator,
    heir: *mut heaptap_mutator,
) -> heaptap_status {
    guard(|| {
        if std::ptr::eq(mutator, heir) && !heir.is_null() {
            return Err(Refused(HEAPTAP_STATUS_OPTION));
        }
        if !heir.is_null() {
            // An invalid heir is refused before anything ends.
            // SAFETY: this function requires `heir` to be NULL or a handle that no other
            // thread uses.
            unsafe { with_mutator(heir, |_, _| Ok(())) }?;
        }
        // SAFETY: this function requires that `mutator` is NULL or a handle that no
        // other thread uses.
        let mut ended = unsafe { take_mutator(mutator) }?;
        ended.session().leave(mutator as usize);
        ended.settle();
        if heir.is_null() {
            ended.leave_blocks_to_session();
        } else {
            // SAFETY: this function requires `heir` to be NULL or a handle that no other
            // thread uses.
            unsafe {
                with_mutator(heir, |heir, _| {
                    heir.adopt(&mut ended);
                    Ok(())
                })
            }?;
        }
        ended.end();
        Ok(())
    })
}

/// Suspends a mutator: no samples are recorded until it has been resumed as often
/// as it was suspended. The mutator's thread.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_mutator_suspend(mutator: *mut heaptap_mutator) -> heaptap_status {
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { on_mutator(mutator, |mutator, _| Ok(mutator.suspend()?)) }
}

/// Undoes one `heaptap_mutator_suspend`. The mutator's thread.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_mutator_resume(mutator: *mut heaptap_mutator) -> heaptap_status {
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { on_mutator(mutator, |mutator, _| Ok(mutator.resume()?)) }
}
