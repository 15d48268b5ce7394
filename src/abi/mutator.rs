//! Mutators come and go.

use std::ffi::c_void;

use crate::abi::guard::guard;
use crate::abi::handle::{heaptap_mutator, heaptap_tracer, session, take_mutator, with_mutator};
use crate::abi::pointer::{check, write};
use crate::abi::status::{HEAPTAP_STATUS_OPTION, Refused, heaptap_status};
use crate::abi::versioned::{VersionedStruct, read_versioned};
use crate::tracer::{Mutator, StackLocator, StackSource, StackTop};

/// Where the managed stack is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_stack {
    /// By which the innermost managed frame is known; 0: there is none.
    pub return_address: usize,
    /// That frame's stack pointer.
    pub sp: usize,
    /// Where the C frames inside it end: the C stack's pointer when managed
    /// code last called C. 0: they are not looked at.
    pub native_limit: usize,
}

/// Tells where the stack is. Called on the mutator's thread when a sample is
/// taken; must be quick, and must not call heaptap.
pub type heaptap_where_fn =
    Option<unsafe extern "C-unwind" fn(host: *mut c_void, stack: *mut heaptap_stack)>;

/// A runtime's own walker. Writes the codes of at most `capacity` frames,
/// innermost first, each from 1 to 2^60 - 1, and returns how many frames there
/// are, which may be more. Called on the mutator's thread when a sample is
/// taken; must not call heaptap.
pub type heaptap_walk_fn = Option<
    unsafe extern "C-unwind" fn(host: *mut c_void, codes: *mut u64, capacity: usize) -> usize,
>;

/// How a mutator's stack is found.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_mutator_options {
    /// `sizeof(heaptap_mutator_options)`.
    pub size: usize,
    /// Handed to the functions.
    pub host: *mut c_void,
    /// Backtraces by the frame tables, from where this says; or
    pub r#where: heaptap_where_fn,
    /// by the runtime's own walker. Both NULL: backtraces are empty.
    pub walk: heaptap_walk_fn,
    /// Zero.
    pub reserved: [u8; 32],
}

// SAFETY: `repr(C)`, begins with its size; numbers, a pointer and optional
// function pointers, which the header requires to be functions or NULL.
unsafe impl VersionedStruct for heaptap_mutator_options {
    const FIRST_SIZE: usize = 64;

    const ZERO: Self = heaptap_mutator_options {
        size: 0,
        host: std::ptr::null_mut(),
        r#where: None,
        walk: None,
        reserved: [0; 32],
    };

    fn reserved_is_zero(&self) -> bool {
        self.reserved == [0; 32]
    }
}

impl heaptap_mutator_options {
    fn way(&self) -> Result<StackSource, Refused> {
        // An address may change threads, a pointer may not say so.
        let host = self.host as usize;
        match (self.r#where, self.walk) {
            (None, None) => Ok(StackSource::None),
            (Some(place), None) => Ok(StackSource::Tables(StackLocator {
                locate: ask_host,
                arguments: [place as usize, host],
            })),
            (None, Some(walk)) => Ok(StackSource::Own(Box::new(move |room| {
                // SAFETY: the host's function, called as the header says.
                unsafe { walk(host as *mut c_void, room.as_mut_ptr(), room.len()) }
            }))),
            (Some(_), Some(_)) => Err(Refused(HEAPTAP_STATUS_OPTION)),
        }
    }
}

/// Asks the host's function for the place of its stack.
fn ask_host(function: usize, host: usize) -> StackTop {
    // SAFETY: `where` of the options, as an address.
    let place = unsafe { std::mem::transmute::<usize, heaptap_where_fn>(function) };
    let Some(place) = place else { return StackTop::default() };
    let mut stack = heaptap_stack { return_address: 0, sp: 0, native_limit: 0 };
    // SAFETY: the host's function, called as the header says.
    unsafe { place(host as *mut c_void, &raw mut stack) };
    StackTop {
        return_address: stack.return_address as u64,
        sp: stack.sp as u64,
        native_limit: stack.native_limit as u64,
    }
}

/// Makes a mutator: for each thread or domain that allocates.
///
/// Any thread, not inside a hook. A mutator is used by one thread at a time:
/// its own, or another that has stopped it. Costs the memory of its deepest
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
        // SAFETY: the host's promise.
        let session = unsafe { session(tracer) }?;
        // SAFETY: the host's promise.
        let options = unsafe { read_versioned(options) }?;
        check(mutator)?;
        let handle = heaptap_mutator::leak(Mutator::start(&session, options.way()?)?);
        session.enter(handle as usize);
        // SAFETY: the host's promise.
        unsafe { write(mutator, handle) }
    })
}

/// Ends a mutator. The blocks it follows pass to `heir`, which the calling
/// thread may use; with NULL they stay with the tracer until a mutator starts or
/// `heaptap_tracer_major_sweep` finds one.
///
/// Its own thread, or another that has stopped it; not inside a hook. May wait
/// for the writer, if ends of blocks could not be told before.
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
            // An heir that is none is found before anything ends.
            // SAFETY: the host's promise.
            unsafe { with_mutator(heir, |_, _| Ok(())) }?;
        }
        // SAFETY: the host's promise.
        let mut ended = unsafe { take_mutator(mutator) }?;
        ended.session().leave(mutator as usize);
        ended.settle();
        if heir.is_null() {
            ended.leave_blocks_to_session();
        } else {
            // SAFETY: the host's promise.
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

/// Samples are not recorded until the mutator was resumed as often.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_mutator_suspend(mutator: *mut heaptap_mutator) -> heaptap_status {
    // SAFETY: the host's promise.
    guard(|| unsafe { with_mutator(mutator, |mutator, _| Ok(mutator.suspend()?)) })
}

/// Ends what `heaptap_mutator_suspend` began.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_mutator_resume(mutator: *mut heaptap_mutator) -> heaptap_status {
    // SAFETY: the host's promise.
    guard(|| unsafe { with_mutator(mutator, |mutator, _| Ok(mutator.resume()?)) })
}
