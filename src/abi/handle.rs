//! Handles that hosts hold: a tracer, and its mutators.
//!
//! A handle is never freed, only emptied: a host that uses one after its end, or
//! ends it twice, gets a status. A few words of each remain.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};

use crate::abi::guard::guard;
use crate::abi::pointer::check;
use crate::abi::status::{HEAPTAP_STATUS_HANDLE, HEAPTAP_STATUS_ORDER, Refused, heaptap_status};
use crate::tracer::{Countdown, Mutator, Session};

/// A trace that is being written. Created by `heaptap_tracer_start`; never freed.
pub struct heaptap_tracer {
    magic: AtomicU64,
    session: Arc<Session>,
}

/// A thread or domain that allocates. Created by `heaptap_mutator_start`; never
/// freed. `tests/header.rs` writes its declaration in the header.
#[repr(C)]
pub struct heaptap_mutator {
    /// Words until the next sample outside the young heap. First, because the
    /// header's inline functions count it down.
    until_sample: isize,
    /// For each value of 16 bits of an address, how many blocks are tracked there. Second, because
    /// the header's inline functions read it. Valid as long as the mutator lives; afterwards all
    /// counts are 0.
    sampled: *const u16,
    magic: AtomicU64,
    /// Whether a call is running. Set and cleared by the thread that uses the
    /// mutator; refuses calls from that thread's own signal handlers.
    busy: AtomicBool,
    mutator: UnsafeCell<Option<Mutator>>,
}

/// What the header's inline functions see of a mutator.
struct PublicFields<'a> {
    until_sample: &'a mut isize,
    sampled: &'a mut *const u16,
}

const TRACER: u64 = u64::from_le_bytes(*b"heaptapT");
const MUTATOR: u64 = u64::from_le_bytes(*b"heaptapM");
const ENDED: u64 = u64::from_le_bytes(*b"heaptapE");

impl heaptap_tracer {
    pub(crate) fn leak(session: Arc<Session>) -> *mut heaptap_tracer {
        Box::into_raw(Box::new(heaptap_tracer { magic: AtomicU64::new(TRACER), session }))
    }
}

/// The session of a handle. In a forked child that is traced, the child's.
///
/// # Safety
/// If not NULL and aligned, it points to a handle.
pub(crate) unsafe fn session(tracer: *const heaptap_tracer) -> Result<Arc<Session>, Refused> {
    check(tracer)?;
    // SAFETY: not NULL, aligned, and this function requires a handle, which is never
    // freed.
    let tracer = unsafe { &*tracer };
    if tracer.magic.load(Ordering::Relaxed) != TRACER {
        return Err(Refused(HEAPTAP_STATUS_HANDLE));
    }
    Ok(tracer.session.current())
}

impl heaptap_mutator {
    /// Where the header's inline functions find the countdown.
    pub(super) const UNTIL_SAMPLE_OFFSET: usize = std::mem::offset_of!(Self, until_sample);
    /// Where they find the counts.
    pub(super) const SAMPLED_OFFSET: usize = std::mem::offset_of!(Self, sampled);

    pub(crate) fn leak(mut mutator: Mutator) -> *mut heaptap_mutator {
        let until_sample = mutator.countdown();
        Box::into_raw(Box::new(heaptap_mutator {
            until_sample,
            sampled: mutator.sampled_counts(),
            magic: AtomicU64::new(MUTATOR),
            busy: AtomicBool::new(false),
            mutator: UnsafeCell::new(Some(mutator)),
        }))
    }
}

/// The body of an export that works on one mutator: [`with_mutator`], guarded.
///
/// # Safety
/// As for [`with_mutator`].
#[inline]
pub(crate) unsafe fn on_mutator(
    mutator: *mut heaptap_mutator,
    with: impl FnOnce(&mut Mutator, &mut isize) -> Result<(), Refused>,
) -> heaptap_status {
    // SAFETY: this function requires what `with_mutator` does.
    guard(|| unsafe { with_mutator(mutator, with) })
}

/// Runs `with` on a mutator and its countdown.
///
/// A call while another is running, as from a signal handler, is refused.
///
/// # Safety
/// If not NULL and aligned, `mutator` points to a handle that no other thread
/// is using.
#[inline]
pub(crate) unsafe fn with_mutator<R>(
    mutator: *mut heaptap_mutator,
    with: impl FnOnce(&mut Mutator, &mut isize) -> Result<R, Refused>,
) -> Result<R, Refused> {
    // SAFETY: this function requires `mutator` to be NULL, misaligned or a handle that
    // no other thread is using.
    unsafe {
        with_slot(mutator, |slot, fields| match slot {
            Some(mutator) => {
                if mutator.has_forked() {
                    mutator.resume_after_fork(fields.until_sample);
                    *fields.sampled = mutator.sampled_counts();
                }
                with(mutator, fields.until_sample)
            }
            None => Err(Refused(HEAPTAP_STATUS_HANDLE)),
        })
    }
}

/// Takes the mutator out of its handle, which has ended then.
///
/// # Safety
/// If not NULL and aligned, `mutator` points to a handle that no other thread is
/// using.
pub(crate) unsafe fn take_mutator(mutator: *mut heaptap_mutator) -> Result<Mutator, Refused> {
    // SAFETY: this function requires `mutator` to be NULL, misaligned or a handle that
    // no other thread is using.
    let taken = unsafe {
        with_slot(mutator, |slot, fields| {
            *fields.until_sample = Countdown::NEVER;
            *fields.sampled = Mutator::nothing_sampled();
            slot.take().ok_or(Refused(HEAPTAP_STATUS_HANDLE))
        })
    }?;
    // SAFETY: `with_slot` has checked the pointer, and handles are never freed.
    unsafe { &*mutator }.magic.store(ENDED, Ordering::Relaxed);
    Ok(taken)
}

/// # Safety
/// If not NULL and aligned, `mutator` points to a handle that no other thread is
/// using.
#[inline]
unsafe fn with_slot<R>(
    mutator: *mut heaptap_mutator,
    with: impl FnOnce(&mut Option<Mutator>, PublicFields<'_>) -> Result<R, Refused>,
) -> Result<R, Refused> {
    check(mutator)?;
    // SAFETY: not NULL, aligned, and this function requires a handle, which is never
    // freed.
    let magic = unsafe { &(*mutator).magic };
    // SAFETY: not NULL, aligned, and a handle.
    let busy = unsafe { &(*mutator).busy };
    if magic.load(Ordering::Relaxed) != MUTATOR {
        return Err(Refused(HEAPTAP_STATUS_HANDLE));
    }
    if busy.load(Ordering::Relaxed) {
        return Err(Refused(HEAPTAP_STATUS_ORDER));
    }
    let _in_use = InUse::new(busy);
    // SAFETY: not NULL, aligned, and a handle.
    let slot = unsafe { &(*mutator).mutator };
    // SAFETY: `busy` was clear, so that no other call on this thread has a reference,
    // and this function requires that no other thread uses the mutator.
    let slot = unsafe { &mut *slot.get() };
    // SAFETY: the same, for a field that `slot` does not include.
    let until_sample = unsafe { &mut (*mutator).until_sample };
    // SAFETY: the same.
    let sampled = unsafe { &mut (*mutator).sampled };
    with(slot, PublicFields { until_sample, sampled })
}

/// A running call. Its end clears `busy`, also after a panic: the session is off
/// then, and later hooks must report that.
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
