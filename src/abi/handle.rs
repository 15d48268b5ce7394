//! What hosts hold: a tracer, and its mutators.
//!
//! A handle is never freed, only emptied: a host may use one after it ended, or
//! end it twice, and learns that it did. What stays of each is a few words.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};

use crate::abi::pointer::check;
use crate::abi::status::{HEAPTAP_STATUS_HANDLE, HEAPTAP_STATUS_ORDER, Refused};
use crate::sampling::Countdown;
use crate::tracer::{Mutator, Session};

/// A trace being taken. Made by `heaptap_tracer_start`; never freed.
pub struct heaptap_tracer {
    magic: AtomicU64,
    session: Arc<Session>,
}

/// What allocates: one for each thread or domain. Made by
/// `heaptap_mutator_start`; never freed. Only the inline functions of this
/// header look inside.
#[repr(C)]
pub struct heaptap_mutator {
    /// Words until the next sample outside the young heap. First, since the
    /// header's inline functions know where it is.
    until_sample: isize,
    magic: AtomicU64,
    /// A call is under way. Set and cleared by the thread that uses the
    /// mutator; it guards against that thread's own signal handlers.
    busy: AtomicBool,
    mutator: UnsafeCell<Option<Mutator>>,
}

const TRACER: u64 = u64::from_le_bytes(*b"heaptapT");
const MUTATOR: u64 = u64::from_le_bytes(*b"heaptapM");
const ENDED: u64 = u64::from_le_bytes(*b"heaptapE");

impl heaptap_tracer {
    pub(crate) fn leak(session: Arc<Session>) -> *mut heaptap_tracer {
        Box::into_raw(Box::new(heaptap_tracer { magic: AtomicU64::new(TRACER), session }))
    }
}

/// The session of a handle: in a forked child that traces on, the child's.
///
/// # Safety
/// If not NULL and aligned, it points to a handle.
pub(crate) unsafe fn session(tracer: *const heaptap_tracer) -> Result<Arc<Session>, Refused> {
    check(tracer)?;
    // SAFETY: not NULL and aligned, and by the caller's promise a handle, which
    // is never freed.
    let tracer = unsafe { &*tracer };
    if tracer.magic.load(Ordering::Relaxed) != TRACER {
        return Err(Refused(HEAPTAP_STATUS_HANDLE));
    }
    Ok(tracer.session.current())
}

impl heaptap_mutator {
    /// Where the header's inline functions find the countdown.
    pub(super) const UNTIL_SAMPLE_OFFSET: usize = std::mem::offset_of!(Self, until_sample);

    pub(crate) fn leak(mut mutator: Mutator) -> *mut heaptap_mutator {
        let until_sample = mutator.countdown();
        Box::into_raw(Box::new(heaptap_mutator {
            until_sample,
            magic: AtomicU64::new(MUTATOR),
            busy: AtomicBool::new(false),
            mutator: UnsafeCell::new(Some(mutator)),
        }))
    }
}

/// Runs `with` on a mutator and its countdown.
///
/// A second call while one is under way, as from a signal handler, is refused.
///
/// # Safety
/// If not NULL and aligned, `mutator` points to a handle that no other thread
/// is using.
#[inline]
pub(crate) unsafe fn with_mutator<R>(
    mutator: *mut heaptap_mutator,
    with: impl FnOnce(&mut Mutator, &mut isize) -> Result<R, Refused>,
) -> Result<R, Refused> {
    // SAFETY: the caller's promise.
    unsafe {
        with_slot(mutator, |slot, left| match slot {
            Some(mutator) => {
                mutator.resume_after_fork(left);
                with(mutator, left)
            }
            None => Err(Refused(HEAPTAP_STATUS_HANDLE)),
        })
    }
}

/// Takes the mutator out of its handle, which is dead from then on.
///
/// # Safety
/// As for [`with_mutator`].
pub(crate) unsafe fn take_mutator(mutator: *mut heaptap_mutator) -> Result<Mutator, Refused> {
    // SAFETY: the caller's promise.
    let taken = unsafe {
        with_slot(mutator, |slot, left| {
            *left = Countdown::NEVER;
            slot.take().ok_or(Refused(HEAPTAP_STATUS_HANDLE))
        })
    }?;
    // SAFETY: `with_slot` has checked the pointer, and handles are never freed.
    unsafe { &*mutator }.magic.store(ENDED, Ordering::Relaxed);
    Ok(taken)
}

/// # Safety
/// As for [`with_mutator`].
#[inline]
unsafe fn with_slot<R>(
    mutator: *mut heaptap_mutator,
    with: impl FnOnce(&mut Option<Mutator>, &mut isize) -> Result<R, Refused>,
) -> Result<R, Refused> {
    check(mutator)?;
    // SAFETY: not NULL and aligned, and by the caller's promise a handle, which
    // is never freed.
    let magic = unsafe { &(*mutator).magic };
    // SAFETY: as above.
    let busy = unsafe { &(*mutator).busy };
    if magic.load(Ordering::Relaxed) != MUTATOR {
        return Err(Refused(HEAPTAP_STATUS_HANDLE));
    }
    if busy.load(Ordering::Relaxed) {
        return Err(Refused(HEAPTAP_STATUS_ORDER));
    }
    let _in_use = InUse::new(busy);
    // SAFETY: a handle, as above.
    let slot = unsafe { &(*mutator).mutator };
    // SAFETY: `busy` was clear, so no other call on this thread has a reference;
    // other threads do not use the mutator, as the caller promises.
    let slot = unsafe { &mut *slot.get() };
    // SAFETY: as above; a field of its own.
    let left = unsafe { &mut (*mutator).until_sample };
    with(slot, left)
}

/// A call under way. After a panic too the mutator is free again: the session is
/// over then, and its hooks must still say so.
struct InUse<'a>(&'a AtomicBool);

impl<'a> InUse<'a> {
    fn new(busy: &'a AtomicBool) -> InUse<'a> {
        busy.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        InUse(busy)
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.0.store(false, Ordering::Relaxed);
    }
}
