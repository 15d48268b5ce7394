//! What a host's walk reports: the heap, block by block.
//!
//! These functions run where the heap is walked, perhaps in a copy of the process: they
//! neither allocate nor lock.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use heaptap_heap::{
    EphemeronKey, Finaliser, FinaliserKind, KindNamespace, Pointer, Segment, SegmentKind,
};

use crate::abi::guard::guard;
use crate::abi::pointer::check;
use crate::abi::status::{
    HEAPTAP_STATUS_FILE, HEAPTAP_STATUS_HANDLE, HEAPTAP_STATUS_NULL, HEAPTAP_STATUS_OPTION,
    HEAPTAP_STATUS_ORDER, Refused, heaptap_status,
};
use crate::snapshot::{HostBlock, HostFault, HostWalk};

/// A snapshot that is being taken. A `heaptap_snapshot_walk_fn` is given one, which is valid
/// until it returns.
pub struct heaptap_snapshot {
    /// The thread that walks, as `pthread_self` identifies it; 0 if none does.
    owner: AtomicUsize,
    /// The walk; NULL while a call is being carried out.
    walk: AtomicPtr<HostWalk<'static, 'static>>,
}

/// The only one: one snapshot is taken at a time. It is never freed, so that a host that uses
/// it too late gets a status.
static SNAPSHOT: heaptap_snapshot =
    heaptap_snapshot { owner: AtomicUsize::new(0), walk: AtomicPtr::new(ptr::null_mut()) };

fn this_thread() -> usize {
    // SAFETY: takes nothing, and cannot fail.
    unsafe { libc::pthread_self() as usize }
}

/// Closes the walk when it is dropped, also if the host's function throws.
struct OpenWalk;

impl Drop for OpenWalk {
    fn drop(&mut self) {
        SNAPSHOT.owner.store(0, Ordering::Release);
        SNAPSHOT.walk.store(ptr::null_mut(), Ordering::Release);
    }
}

/// Calls `report` with a handle through which it fills the walk. One walk at a time.
pub(super) fn with_handle<R>(
    walk: &mut HostWalk<'_, '_>,
    report: impl FnOnce(*mut heaptap_snapshot) -> R,
) -> R {
    SNAPSHOT.walk.store(ptr::from_mut(walk).cast(), Ordering::Release);
    SNAPSHOT.owner.store(this_thread(), Ordering::Release);
    let _open = OpenWalk;
    report(ptr::from_ref(&SNAPSHOT).cast_mut())
}

impl From<HostFault> for Refused {
    fn from(fault: HostFault) -> Refused {
        Refused(match fault {
            HostFault::Null => HEAPTAP_STATUS_NULL,
            HostFault::Order(_) => HEAPTAP_STATUS_ORDER,
            HostFault::Argument(_) => HEAPTAP_STATUS_OPTION,
            HostFault::Write(_) => HEAPTAP_STATUS_FILE,
        })
    }
}

/// Runs the body of an export with the walk that the handle stands for. Only the address of the
/// handle is looked at, so that any pointer can be passed.
fn report(
    snapshot: *mut heaptap_snapshot,
    run: impl FnOnce(&mut HostWalk<'static, 'static>) -> Result<(), HostFault>,
) -> heaptap_status {
    guard(|| {
        check(snapshot)?;
        let owner = SNAPSHOT.owner.load(Ordering::Acquire);
        if !ptr::eq(snapshot, &raw const SNAPSHOT) || owner == 0 {
            return Err(Refused(HEAPTAP_STATUS_HANDLE));
        }
        if owner != this_thread() {
            return Err(Refused(HEAPTAP_STATUS_ORDER));
        }
        let pointer = SNAPSHOT.walk.load(Ordering::Acquire);
        SNAPSHOT.walk.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: `with_handle` has stored it on this thread and borrows the walk until it
        // clears the owner. A call inside of this one, by a signal handler, finds NULL.
        let Some(walk) = (unsafe { pointer.as_mut() }) else {
            return Err(Refused(HEAPTAP_STATUS_ORDER));
        };
        let result = walk.call(run);
        SNAPSHOT.walk.store(pointer, Ordering::Release);
        Ok(result?)
    })
}

/// The values at a pointer, which may be NULL if there are none.
///
/// # Safety
/// If not NULL and aligned, it points to `count` values.
unsafe fn slice<'a, T>(start: *const T, count: usize) -> Result<&'a [T], HostFault> {
    if count == 0 {
        return Ok(&[]);
    }
    let fits = count.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= isize::MAX as usize);
    if check(start).is_err() || !fits {
        return Err(HostFault::Null);
    }
    // SAFETY: not NULL, aligned, not longer than memory, and this function requires `count`
    // values there.
    Ok(unsafe { std::slice::from_raw_parts(start, count) })
}

/// A part of the major heap.
pub const HEAPTAP_SEGMENT_MAJOR: u32 = 0;
/// A young heap.
pub const HEAPTAP_SEGMENT_YOUNG: u32 = 1;
/// Memory for one large block.
pub const HEAPTAP_SEGMENT_LARGE: u32 = 2;
/// Memory of another kind.
pub const HEAPTAP_SEGMENT_OTHER: u32 = 3;

/// A field that points to a block. Its layout never changes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_pointer {
    /// The index of the field in its block, from 0.
    pub field: u64,
    /// The block that it points to.
    pub target: *const c_void,
}

/// Begins a segment: a range of memory in which the blocks lie that are reported next.
/// `kind` is one of `HEAPTAP_SEGMENT_...`, `start` a multiple of 8. Segments must not overlap; one of 0
/// words overlaps none.
///
/// Only inside a `heaptap_snapshot_walk_fn`, like all functions that take a
/// `heaptap_snapshot`: on its thread, with the `snapshot` that it was given, otherwise they
/// return `HEAPTAP_STATUS_HANDLE` or `HEAPTAP_STATUS_ORDER`. None of them allocates or locks.
/// If one fails, all later ones return the same status, and no snapshot is taken.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_snapshot_segment(
    snapshot: *mut heaptap_snapshot,
    kind: u32,
    start: *const c_void,
    words: usize,
) -> heaptap_status {
    report(snapshot, |walk| {
        let kind = match kind {
            HEAPTAP_SEGMENT_MAJOR => SegmentKind::Major,
            HEAPTAP_SEGMENT_YOUNG => SegmentKind::Young,
            HEAPTAP_SEGMENT_LARGE => SegmentKind::Large,
            HEAPTAP_SEGMENT_OTHER => SegmentKind::Host,
            _ => return Err(HostFault::Argument("a segment is of an unknown kind")),
        };
        walk.segment(Segment { kind, start: start as u64, words: words as u64 })
    })
}

/// Reports a block with its pointers: `heaptap_snapshot_block_begin`,
/// `heaptap_snapshot_pointer` for each and `heaptap_snapshot_block_end` in one call. `pointers`
/// may be NULL if `count` is 0.
///
/// # Safety
/// `pointers` is NULL or points to `count` pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_snapshot_block(
    snapshot: *mut heaptap_snapshot,
    address: *const c_void,
    words: usize,
    tag: u32,
    pointers: *const heaptap_pointer,
    count: usize,
) -> heaptap_status {
    report(snapshot, |walk| {
        // SAFETY: this function requires `pointers` to be NULL or to point to `count` of them.
        let pointers = unsafe { slice(pointers, count) }?;
        walk.begin_block(HostBlock { address: address as u64, words: words as u64, tag })?;
        for pointer in pointers {
            walk.pointer(Pointer { field: pointer.field, target: pointer.target as u64 })?;
        }
        walk.end_block()
    })
}

/// Begins a block. `address` is the one by which other blocks point to it, behind the header,
/// `words` its size without the header, and `tag` any number that says what kind of block it is.
///
/// The block and its header lie inside of the segment, behind the block before.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_snapshot_block_begin(
    snapshot: *mut heaptap_snapshot,
    address: *const c_void,
    words: usize,
    tag: u32,
) -> heaptap_status {
    let block = HostBlock { address: address as u64, words: words as u64, tag };
    report(snapshot, |walk| walk.begin_block(block))
}

/// Reports that a field of the block points to a block. Fields ascend and are below the
/// block's size. `target` is the address of a block that is reported too, earlier or later: leave
/// out pointers to anything else.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_snapshot_pointer(
    snapshot: *mut heaptap_snapshot,
    field: u64,
    target: *const c_void,
) -> heaptap_status {
    report(snapshot, |walk| walk.pointer(Pointer { field, target: target as u64 }))
}

/// Reports the contents of the block, such as the characters of a string. At most once for a
/// block. As many bytes are kept as the user asked for, by default none: call it for every block
/// with contents that may be of interest.
///
/// # Safety
/// `contents` is NULL or points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_snapshot_contents(
    snapshot: *mut heaptap_snapshot,
    contents: *const c_void,
    length: usize,
) -> heaptap_status {
    report(snapshot, |walk| {
        // SAFETY: this function requires `contents` to be NULL or to point to `length` bytes.
        walk.contents(unsafe { slice(contents.cast::<u8>(), length) }?)
    })
}

/// Reports memory outside the heap that the block owns. At most once for a block.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_snapshot_outside(
    snapshot: *mut heaptap_snapshot,
    bytes: usize,
) -> heaptap_status {
    report(snapshot, |walk| walk.outside(bytes as u64))
}

/// Ends the block.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_snapshot_block_end(snapshot: *mut heaptap_snapshot) -> heaptap_status {
    report(snapshot, HostWalk::end_block)
}

/// Reports a root: something outside the heap that keeps the block `target` alive. `kind`
/// says what it is, such as a global variable or a stack, and `index` which one of the kind;
/// both are the host's own numbers. Not between the beginning and the end of a block.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_snapshot_root(
    snapshot: *mut heaptap_snapshot,
    kind: u32,
    index: u64,
    target: *const c_void,
) -> heaptap_status {
    report(snapshot, |walk| walk.root(kind, index, target as u64))
}

/// `kind` of a finaliser that gets the block itself, which lives until it has run.
pub const HEAPTAP_FINALISER_FIRST: u32 = 0;
/// `kind` of a finaliser that runs when the block is gone.
pub const HEAPTAP_FINALISER_LAST: u32 = 1;
/// `kind` of a finaliser that is due: it keeps the block until it has run.
pub const HEAPTAP_FINALISER_PENDING: u32 = 2;

/// Reports a finaliser of the block `value`. `kind` is one of `HEAPTAP_FINALISER_...`,
/// `function` the block of the function, which is kept alive; NULL if the function is no block.
/// Not between the beginning and the end of a block.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_snapshot_finaliser(
    snapshot: *mut heaptap_snapshot,
    kind: u32,
    value: *const c_void,
    function: *const c_void,
) -> heaptap_status {
    report(snapshot, |walk| {
        let kind = match kind {
            HEAPTAP_FINALISER_FIRST => FinaliserKind::First,
            HEAPTAP_FINALISER_LAST => FinaliserKind::Last,
            HEAPTAP_FINALISER_PENDING => FinaliserKind::Pending,
            _ => return Err(HostFault::Argument("a finaliser is of an unknown kind")),
        };
        walk.finaliser(Finaliser { kind, value: value as u64, function: function as u64 })
    })
}

/// Reports that a block refers weakly to others: `keys` do not keep what they point to, and
/// `data` is kept only while the block and all its keys are alive. `data` is NULL if there
/// is none, as in a weak reference. The block itself is reported too, without these
/// pointers. `keys` ascend. Not between the beginning and the end of a block.
///
/// # Safety
/// `keys` is NULL or points to `count` pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_snapshot_weak(
    snapshot: *mut heaptap_snapshot,
    block: *const c_void,
    keys: *const heaptap_pointer,
    count: usize,
    data: *const c_void,
) -> heaptap_status {
    report(snapshot, |walk| {
        // SAFETY: this function requires `keys` to be NULL or to point to `count` of them.
        let keys = unsafe { slice(keys, count) }?;
        let keys =
            keys.iter().map(|key| EphemeronKey { index: key.field, target: key.target as u64 });
        walk.weak(block as u64, keys, (!data.is_null()).then_some(data as u64))
    })
}

/// `subject` of a name: a tag of blocks.
pub const HEAPTAP_KIND_TAG: u32 = 0;
/// `subject` of a name: a kind of roots.
pub const HEAPTAP_KIND_ROOT: u32 = 1;

/// Names a tag of blocks or a kind of roots for the user. `subject` is one of
/// `HEAPTAP_KIND_...`. Bytes after the first 4,096 are left out. Not between the beginning and the
/// end of a block.
///
/// # Safety
/// `name` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_snapshot_kind_name(
    snapshot: *mut heaptap_snapshot,
    subject: u32,
    kind: u32,
    name: *const c_char,
) -> heaptap_status {
    report(snapshot, |walk| {
        if name.is_null() {
            return Err(HostFault::Null);
        }
        // SAFETY: not NULL, and this function requires it to end with a NUL.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        let namespace = match subject {
            HEAPTAP_KIND_TAG => KindNamespace::Tag,
            HEAPTAP_KIND_ROOT => KindNamespace::HostRoot,
            _ => return Err(HostFault::Argument("a name is for an unknown kind")),
        };
        walk.kind_name(namespace, kind, name)
    })
}
