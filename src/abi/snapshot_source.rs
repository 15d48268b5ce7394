//! A host's heap, of which snapshots can be taken.

use std::cell::Cell;
use std::ffi::{c_char, c_void};

use crate::abi::guard::guard;
use crate::abi::pointer::bytes;
use crate::abi::snapshot_walk::{heaptap_snapshot, with_handle};
use crate::abi::status::{
    HEAPTAP_STATUS_NULL, HEAPTAP_STATUS_OK, HEAPTAP_STATUS_OPTION, HEAPTAP_STATUS_ORDER, Refused,
    heaptap_status,
};
use crate::abi::versioned::{VersionedStruct, read_versioned};
use crate::safe_point::{self, SafePoints};
use crate::snapshot::{self, HeapEncoder, HeapWalker, HostWalk, WalkError};

/// Reports the whole heap by the functions that take a `heaptap_snapshot`: each segment
/// and then its blocks, all roots, names of tags and kinds of roots. Returns
/// `HEAPTAP_STATUS_OK`, or what one of these functions returned; then no snapshot is taken.
///
/// It is called at a safe point of the host (`heaptap_snapshot_point`,
/// `heaptap_snapshot_take`), usually in a copy of the process, which has no other thread: a
/// lock that another thread held stays locked for ever there. So it must neither
/// allocate nor take a lock, must only read, and must not leave by an exception or `longjmp`.
pub type heaptap_snapshot_walk_fn = Option<
    unsafe extern "C-unwind" fn(
        host: *mut c_void,
        snapshot: *mut heaptap_snapshot,
    ) -> heaptap_status,
>;

/// Asks the host to call `heaptap_snapshot_point` soon. Called on a thread of heaptap while
/// the host runs, every few milliseconds until it has; it must return at once and touch no
/// block. Raising the limit of the young heap, as for stopping the world, is a good way.
pub type heaptap_snapshot_request_fn = Option<unsafe extern "C-unwind" fn(host: *mut c_void)>;

/// A heap that its host can walk.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct heaptap_snapshot_source {
    /// `sizeof(heaptap_snapshot_source)`.
    pub size: usize,
    /// The runtime and its version, for readers of snapshots.
    pub runtime: *const c_char,
    /// Reports the heap.
    pub walk: heaptap_snapshot_walk_fn,
    /// Asks for a safe point. NULL: the host comes to one often enough.
    pub request: heaptap_snapshot_request_fn,
    /// Passed to both functions.
    pub host: *mut c_void,
    /// Words of a block's header, which lie before its address. At most 8.
    pub header_words: u32,
    /// Must be zero.
    pub reserved: [u8; 60],
}

// SAFETY: `repr(C)`, starts with its size, no padding; numbers, pointers and optional function
// pointers, which the header requires to be functions or NULL.
unsafe impl VersionedStruct for heaptap_snapshot_source {
    const FIRST_SIZE: usize = 104;

    fn reserved_is_zero(&self) -> bool {
        self.reserved == [0; 60]
    }
}

/// A source that was registered.
struct HostHeap {
    runtime: String,
    header_words: u32,
    walk: unsafe extern "C-unwind" fn(*mut c_void, *mut heaptap_snapshot) -> heaptap_status,
    request: heaptap_snapshot_request_fn,
    host: *mut c_void,
}

// SAFETY: `host` is only passed to the host's functions, which the header requires to work on any
// thread.
unsafe impl Sync for HostHeap {}

impl SafePoints for HostHeap {
    fn poke(&self) {
        if let Some(request) = self.request {
            // SAFETY: the host's function of the documented type.
            unsafe { request(self.host) };
        }
    }

    /// Only the host knows whether a thread of its is at a safe point.
    fn come_to_safe_point(&self) {
        if IS_AT_SAFE_POINT.get() {
            safe_point::at_safe_point();
        }
    }
}

impl HeapWalker for HostHeap {
    fn runtime(&self) -> String {
        self.runtime.clone()
    }

    fn header_words(&self) -> u32 {
        self.header_words
    }

    fn walk(&self, encoder: &mut HeapEncoder<'_>, string_bytes: u32) -> Result<(), WalkError> {
        let mut walk = HostWalk::new(encoder, self.header_words, string_bytes);
        let status = with_handle(&mut walk, |handle| {
            // SAFETY: the host's function of the documented type; the handle is static.
            unsafe { (self.walk)(self.host, handle) }
        });
        walk.finish(status == HEAPTAP_STATUS_OK)
    }
}

thread_local! {
    /// Whether this thread is at a safe point, and waits there for a snapshot.
    static IS_AT_SAFE_POINT: Cell<bool> = const { Cell::new(false) };
}

/// Runs `wait` on a thread at a safe point, at which snapshots can be taken meanwhile.
pub(super) fn at_safe_point<R>(wait: impl FnOnce() -> R) -> R {
    /// Also when `wait` panics.
    struct Leave(bool);
    impl Drop for Leave {
        fn drop(&mut self) {
            IS_AT_SAFE_POINT.set(self.0);
        }
    }
    let _leave = Leave(IS_AT_SAFE_POINT.replace(true));
    wait()
}

/// Makes snapshots of the host's heap possible: those that the host takes itself, and those
/// that its users ask for. The source stays registered as long as the process lives.
///
/// Returns `HEAPTAP_STATUS_ORDER` if a source was registered before. Any thread, not inside
/// a hook. Costs nothing until a snapshot is taken.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_snapshot_source_register(
    source: *const heaptap_snapshot_source,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `source` to be NULL or a struct of the size that it
        // starts with.
        let source = unsafe { read_versioned(source) }?;
        // SAFETY: the header requires `runtime` to be NULL or to end with a NUL.
        let runtime = unsafe { bytes(source.runtime) }?;
        let walk = source.walk.ok_or(Refused(HEAPTAP_STATUS_NULL))?;
        if source.header_words > 8 {
            return Err(Refused(HEAPTAP_STATUS_OPTION));
        }
        let heap = HostHeap {
            runtime: String::from_utf8_lossy(&runtime).into_owned(),
            header_words: source.header_words,
            walk,
            request: source.request,
            host: source.host,
        };
        // It is never freed: a snapshot may be under way at any time.
        if snapshot::register(Box::leak(Box::new(heap))) {
            Ok(())
        } else {
            Err(Refused(HEAPTAP_STATUS_ORDER))
        }
    })
}

/// Returns 1 if a snapshot waits for a safe point, otherwise 0. A host with several threads
/// stops them then, and calls `heaptap_snapshot_point`.
///
/// Any thread. Costs one load.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_snapshot_wanted() -> i32 {
    i32::from(safe_point::is_wanted())
}

/// Takes the snapshot that waits for a safe point, if one does.
///
/// Call it where the heap can be walked: all threads that change it are stopped until this
/// returns, every block has its header, and what lies in its fields can be told apart. At the
/// beginning and the end of a collection is a good place. Not inside a hook.
///
/// Costs one load and a call if no snapshot is wanted. Otherwise the program stands still
/// while the kernel copies its page tables, about 10 ms for each GiB of memory, or for the whole
/// walk if the process cannot be copied. Needs 100 KiB of stack then.
#[unsafe(no_mangle)]
pub extern "C" fn heaptap_snapshot_point() -> heaptap_status {
    if !safe_point::is_wanted() {
        return HEAPTAP_STATUS_OK;
    }
    guard(|| {
        safe_point::at_safe_point();
        Ok(())
    })
}
