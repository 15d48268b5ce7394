//! An account of each thread's allocations, kept by the global allocator.

#![allow(unsafe_code)] // A global allocator has no safe form.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What this thread's allocations amount to.
#[derive(Clone, Copy, Default)]
struct Account {
    /// Bytes there are now, and the most there were.
    bytes: isize,
    peak: isize,
    /// Calls for new memory.
    calls: u64,
}

thread_local! {
    // Without a destructor, so that it can be used at any time.
    static ACCOUNT: Cell<Account> = const { Cell::new(Account { bytes: 0, peak: 0, calls: 0 }) };
}

/// Memory that grew by so much; what was moved counts twice while it moves.
fn note(bytes: isize, moving: isize) {
    ACCOUNT.with(|account| {
        let mut now = account.get();
        now.calls += u64::from(bytes > 0);
        now.bytes += bytes;
        now.peak = now.peak.max(now.bytes + moving);
        account.set(now);
    });
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every call is passed on to the system's allocator as it came; the
// account is a thread-local cell, whose use allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize, 0);
        // SAFETY: `layout` is not zero-sized, as `GlobalAlloc::alloc` requires of its caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize, 0);
        // SAFETY: `layout` is not zero-sized, as `GlobalAlloc` requires of its caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(-(layout.size() as isize), 0);
        // SAFETY: every block of this allocator comes from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size as isize - layout.size() as isize, layout.size() as isize);
        // SAFETY: every block of this allocator comes from `System`, with this layout;
        // `size` is not 0, as `GlobalAlloc` requires of its caller.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// The most bytes that `work` holds at a time, beyond what there was before.
pub(crate) fn peak(work: impl FnOnce()) -> usize {
    let start = ACCOUNT.with(|account| {
        let now = account.get();
        account.set(Account { peak: now.bytes, ..now });
        now.bytes
    });
    work();
    (ACCOUNT.with(Cell::get).peak - start) as usize
}

/// How often `work` asks for memory.
pub(crate) fn calls(work: impl FnOnce()) -> u64 {
    let start = ACCOUNT.with(Cell::get).calls;
    work();
    ACCOUNT.with(Cell::get).calls - start
}
