//! The memory of this process, read by the kernel: a wrong address is an error, not a
//! crash.
//!
//! A source location is made of a few bytes here and there, and a suspended stack of a few words
//! in each frame. A system call for each of them would be most of the work, so pages are cached. The
//! cache is never invalidated: only for memory that does not change, such as the debug
//! information in frame tables, or any memory while a heap is walked.

#![allow(unsafe_code, reason = "asks the kernel")]

use std::cell::RefCell;
use std::ffi::c_void;

use super::memory::MappedVec;

const PAGE: usize = 4096;

/// How many pages are cached: as many as the tables of a compiler take.
const KEPT: usize = 256;

/// A page that was read.
#[derive(Clone, Copy)]
struct Page {
    /// Its first address.
    address: u64,
    bytes: [u8; PAGE],
}

impl Page {
    /// No page begins here.
    const NOWHERE: u64 = 1;
}

/// Memory that is read page by page. Neither allocates nor locks: a copy of the process can use it.
pub(crate) struct ProcessMemory {
    /// This process. Asked for once: a forked child has a `ProcessMemory` of its own.
    process: libc::pid_t,
    cache: RefCell<PageCache>,
}

/// A direct-mapped cache of pages.
struct PageCache {
    /// For page number n, at n modulo [`KEPT`]: one more than its place in `pages`, or 0.
    places: [u16; KEPT],
    /// `None` without memory for it: then nothing is cached.
    pages: Option<MappedVec<Page>>,
}

impl PageCache {
    /// The page at an address; `None` if it cannot be read or kept.
    fn page(&mut self, process: libc::pid_t, start: u64) -> Option<&Page> {
        let pages = self.pages.as_mut()?;
        let place = self.places.get_mut(start as usize / PAGE % KEPT)?;
        if *place == 0 {
            let is_kept = pages.push(Page { address: Page::NOWHERE, bytes: [0; PAGE] });
            *place = if is_kept { pages.len() as u16 } else { return None };
        }
        let page = pages.get_mut(usize::from(*place) - 1)?;
        if page.address != start {
            page.address = Page::NOWHERE;
            if !read_live(process, start, &mut page.bytes) {
                return None;
            }
            page.address = start;
        }
        Some(page)
    }
}

impl ProcessMemory {
    pub(crate) fn new() -> ProcessMemory {
        // SAFETY: `getpid` has no preconditions.
        let process = unsafe { libc::getpid() };
        let cache = PageCache { places: [0; KEPT], pages: MappedVec::new(1) };
        ProcessMemory { process, cache: RefCell::new(cache) }
    }

    /// The word at an address; `None` if there is no memory.
    pub(crate) fn word(&self, address: usize) -> Option<usize> {
        let mut bytes = [0; size_of::<usize>()];
        self.read(address as u64, &mut bytes).then(|| usize::from_ne_bytes(bytes))
    }

    /// Fills `into` from `address` on; false if that is not possible in full.
    pub(crate) fn read(&self, mut address: u64, mut into: &mut [u8]) -> bool {
        while !into.is_empty() {
            let here = into.len().min(PAGE - address as usize % PAGE);
            let (first, rest) = into.split_at_mut(here);
            if !self.read_in_page(address, first) {
                return false;
            }
            let Some(next) = address.checked_add(here as u64) else { return rest.is_empty() };
            (address, into) = (next, rest);
        }
        true
    }

    /// Copies bytes that lie within one page.
    fn read_in_page(&self, address: u64, into: &mut [u8]) -> bool {
        let within = address as usize % PAGE;
        let mut cache = self.cache.borrow_mut();
        let page = cache.page(self.process, address - within as u64);
        match page.and_then(|page| page.bytes.get(within..within + into.len())) {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                true
            }
            None => read_live(self.process, address, into),
        }
    }
}

fn read_live(process: libc::pid_t, address: u64, into: &mut [u8]) -> bool {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: into.len() };
    // SAFETY: the kernel writes into `into` only, `iov_len` bytes at most.
    let read = unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) };
    usize::try_from(read) == Ok(into.len())
}

/// The word at an address of this process; `None` if there is no memory. Neither allocates
/// nor locks.
pub(crate) fn read_word(address: usize) -> Option<usize> {
    let mut bytes = [0; size_of::<usize>()];
    // SAFETY: `getpid` has no preconditions.
    let process = unsafe { libc::getpid() };
    read_live(process, address as u64, &mut bytes).then(|| usize::from_ne_bytes(bytes))
}

/// Changes a byte of this process; false if that memory is not there or read-only.
pub(crate) fn write_byte(address: usize, byte: u8) -> bool {
    let local = libc::iovec { iov_base: (&raw const byte).cast_mut().cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: 1 };
    // SAFETY: `getpid` has no preconditions.
    let process = unsafe { libc::getpid() };
    // SAFETY: the kernel reads one byte of ours, and writes only where the process may.
    unsafe { libc::process_vm_writev(process, &local, 1, &remote, 1, 0) == 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_what_is_not_is_not() {
        let bytes: Vec<u8> = (0..3 * PAGE).map(|index| (index % 251) as u8).collect();
        let start = bytes.as_ptr() as u64;
        let memory = ProcessMemory::new();
        for (from, count) in [(0, 8), (1, 64), (PAGE - 3, 8), (PAGE / 2, 2 * PAGE), (3, 0)] {
            // Twice: read, and kept.
            for _ in 0..2 {
                let mut found = vec![0; count];
                assert!(memory.read(start + from as u64, &mut found));
                assert_eq!(found, bytes[from..from + count]);
            }
        }
        let mut found = [0; 8];
        for address in [0, 8, u64::MAX - 3, 1 << 60] {
            assert!(!memory.read(address, &mut found), "{address:#x}");
        }
    }

    #[test]
    fn pages_in_one_place_do_not_mix() {
        let bytes: Vec<u8> = (0..2 * KEPT).flat_map(|page| [page as u8; PAGE]).collect();
        let memory = ProcessMemory::new();
        for page in (0..2 * KEPT).chain(0..2 * KEPT) {
            let mut found = [0; 2];
            assert!(memory.read(bytes.as_ptr() as u64 + (page * PAGE) as u64, &mut found));
            assert_eq!(found, [page as u8; 2]);
        }
    }
}
