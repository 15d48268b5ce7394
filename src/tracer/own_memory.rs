//! The memory of this process, read by the kernel: a wrong address is an error
//! there, not a crash.
//!
//! A system call for each of the few bytes that a location is made of would be
//! most of what the writer does, so pages are kept. What is read here, the debug
//! information in frame tables, does not change.

use std::cell::RefCell;
use std::ffi::c_void;

use heaptap_symbols::ocaml_debuginfo::Memory;

const PAGE: usize = 4096;

/// Pages kept, those that were asked for: as many as a compiler's tables take.
const KEPT: usize = 256;

/// A page that was read.
struct Page {
    /// Its first address.
    address: u64,
    bytes: [u8; PAGE],
}

/// See the module. For the writer thread.
pub(crate) struct OwnMemory {
    /// This process, which the writer thread never leaves.
    process: libc::pid_t,
    /// Each in the place that its number leaves; none before it was asked for.
    pages: RefCell<[Option<Box<Page>>; KEPT]>,
}

impl OwnMemory {
    pub(crate) fn new() -> OwnMemory {
        // SAFETY: takes nothing.
        let process = unsafe { libc::getpid() };
        OwnMemory { process, pages: RefCell::new([const { None }; KEPT]) }
    }

    /// Copies what lies within one page.
    fn read_in_page(&self, address: u64, into: &mut [u8]) -> bool {
        let within = address as usize % PAGE;
        let start = address - within as u64;
        let mut pages = self.pages.borrow_mut();
        let Some(kept) = pages.get_mut(start as usize / PAGE % KEPT) else { return false };
        if kept.as_ref().is_none_or(|page| page.address != start) {
            let page = kept.get_or_insert_with(|| Box::new(Page { address: 0, bytes: [0; PAGE] }));
            // No page begins there, if this fails.
            page.address = 1;
            if !read_live(self.process, start, &mut page.bytes) {
                return false;
            }
            page.address = start;
        }
        let bytes = kept.as_ref().and_then(|page| page.bytes.get(within..within + into.len()));
        bytes.map(|bytes| into.copy_from_slice(bytes)).is_some()
    }
}

impl Memory for OwnMemory {
    fn read(&self, mut address: u64, mut into: &mut [u8]) -> bool {
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
}

fn read_live(process: libc::pid_t, address: u64, into: &mut [u8]) -> bool {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: into.len() };
    // SAFETY: writes into `into` only, as much as fits.
    let read = unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) };
    usize::try_from(read) == Ok(into.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_what_is_not_is_not() {
        let bytes: Vec<u8> = (0..3 * PAGE).map(|index| (index % 251) as u8).collect();
        let start = bytes.as_ptr() as u64;
        let memory = OwnMemory::new();
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
        let memory = OwnMemory::new();
        for page in (0..2 * KEPT).chain(0..2 * KEPT) {
            let mut found = [0; 2];
            assert!(memory.read(bytes.as_ptr() as u64 + (page * PAGE) as u64, &mut found));
            assert_eq!(found, [page as u8; 2]);
        }
    }
}
