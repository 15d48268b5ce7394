//! A page near the text, with what a near jump can reach.
//!
//! Each function has a slot in it: a relay, which is a far jump to the hook, and, if the hook calls
//! the function, the instructions that the jump displaces and a far jump to those behind them.

use std::ffi::c_void;
use std::io::Error;

use super::instructions;

pub(super) const PAGE: usize = 4096;
const SLOT: usize = 64;
/// How many slots the page has.
pub(super) const SLOTS: usize = PAGE / SLOT;
/// The length of `jmp *0(%rip)` and the address behind it, aligned.
const RELAY: usize = 16;

/// A page that is writable until it is done.
#[derive(Clone, Copy)]
pub(super) struct NearPage(usize);

impl NearPage {
    /// Maps a page below the text. Above it the program's heap may grow.
    pub(super) fn map(text: usize) -> Option<NearPage> {
        const STEP: usize = 1 << 20;
        const FARTHEST: usize = 1 << 30;
        let text = text & !(STEP - 1);
        let addresses = (STEP..FARTHEST).step_by(STEP).filter_map(|below| text.checked_sub(below));
        let mut addresses = addresses.take_while(|&address| address >= PAGE).take(512);
        addresses.find_map(map_at).map(NearPage)
    }

    /// Maps a page that need not be near: a far jump leads to what it has.
    pub(super) fn map_anywhere() -> Option<NearPage> {
        map_at(0).map(NearPage)
    }

    /// The address of a slot; `None` if there is no such one.
    pub(super) fn slot(self, index: usize) -> Option<usize> {
        (index < SLOTS).then(|| self.0 + index * SLOT)
    }

    /// Makes a slot lead to a hook. Before the page is done.
    pub(super) fn put_relay(self, slot: usize, hook: usize) {
        self.put(slot, &relay(hook));
    }

    /// Makes a slot a callable original of the function whose code this is, from `from` on, where
    /// `room` bytes are displaced. Returns its address; `None` if that cannot be done. Before the
    /// page is done.
    pub(super) fn put_original(
        self,
        slot: usize,
        code: &[u8],
        from: usize,
        room: usize,
    ) -> Option<usize> {
        let to = slot + RELAY;
        let (length, mut bytes) = instructions::displace(code, from, to, room)?;
        bytes.extend_from_slice(&relay(from + length));
        (RELAY + bytes.len() <= SLOT).then(|| self.put(to, &bytes))?;
        Some(to)
    }

    fn put(self, at: usize, bytes: &[u8]) {
        assert!(at >= self.0 && at + bytes.len() <= self.0 + PAGE, "outside the page");
        // SAFETY: `map` has mapped the page writable, only this type knows it, and the bytes lie
        // within it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
    }

    /// Makes the page executable. Nothing can be put into it any more.
    pub(super) fn finish(self) -> Result<(), i32> {
        protect(self.0, PAGE, libc::PROT_READ | libc::PROT_EXEC)
    }
}

/// Maps a writable page at an address if nothing is there, or anywhere if it is 0.
fn map_at(address: usize) -> Option<usize> {
    let fixed = if address == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    // SAFETY: maps free addresses only, by the flag or without an address.
    let page = unsafe {
        libc::mmap(
            address as *mut c_void,
            PAGE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed,
            -1,
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    if address != 0 && page as usize != address {
        // A kernel before 4.17 ignores the flag and may map another address.
        // SAFETY: the page was just mapped, and nobody knows it.
        unsafe { libc::munmap(page, PAGE) };
        return None;
    }
    Some(page as usize)
}

/// Changes the protection of text, which stays readable and executable, or of a page of ours.
pub(super) fn protect(start: usize, length: usize, protection: libc::c_int) -> Result<(), i32> {
    // SAFETY: what is readable stays so, and what is executed stays executable, as this
    // function's callers ask for nothing else.
    let failed = unsafe { libc::mprotect(start as *mut c_void, length, protection) };
    if failed == 0 { Ok(()) } else { Err(Error::last_os_error().raw_os_error().unwrap_or(0)) }
}

/// `jmp *0(%rip)`, and where to.
fn relay(to: usize) -> [u8; RELAY] {
    let mut bytes = [0xff, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xcc, 0xcc];
    bytes[6..14].copy_from_slice(&to.to_le_bytes());
    bytes
}
