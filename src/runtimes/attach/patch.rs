//! Jumps from the runtime's functions to hooks.
//!
//! A far jump takes twelve bytes and reaches any address. A near jump takes five
//! and reaches two gibibytes. Where a function has no room for a far jump, a near
//! one leads to a relay: a far jump in a page that is mapped near the text.
//!
//! Either all functions are replaced or none. A written jump is never removed.
//! Everything that can fail is checked by [`Jumps::prepare`], except for the writing
//! itself, which is undone if it fails halfway.
//!
//! Before `main`, or before the runtime has a heap: no other thread may be running
//! the code that is replaced.

use std::ffi::{CStr, c_void};
use std::io::Error;
use std::os::unix::fs::FileExt;
use std::ptr;

use super::refusal::Refusal;
use super::symbols::{Symbol, c_function};

/// A function, and the hook that replaces it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacement {
    pub(crate) name: &'static CStr,
    /// The address of the runtime's function.
    pub(crate) address: usize,
    /// Its size in bytes. All of them are code of that function.
    pub(crate) size: usize,
    /// The address of the hook, which has the type of the function.
    pub(crate) with: usize,
}

impl Replacement {
    fn code(&self) -> &[u8] {
        // SAFETY: `size` is from the symbol or unwind table of a loaded image, so
        // that many bytes of code are mapped; x86-64 maps executable pages readable.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.size) }
    }

    /// The number of bytes that stay before the jump.
    fn landing(&self) -> usize {
        if self.code().starts_with(&LANDING) { LANDING.len() } else { 0 }
    }

    fn has_room(&self, jump: usize) -> bool {
        self.size >= self.landing() + jump
    }
}

/// `endbr64`, which must stay the target of indirect calls.
const LANDING: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// The length of `jmp rel32`.
const NEAR: usize = 5;
/// The length of `mov $imm64, %rax; jmp *%rax`.
const FAR: usize = 12;
/// The length of `jmp *0(%rip)` and the address behind it, aligned.
const RELAY: usize = 16;

const PAGE: usize = 4096;
/// How many relays the page has room for.
const RELAYS: usize = PAGE / RELAY;

/// Replaces those of these functions of the C library that can be replaced. Unlike a
/// runtime's, each is useful without the others.
pub(crate) fn replace_in_c_library(functions: &[(&'static CStr, *const ())]) {
    let replacements: Vec<_> = functions
        .iter()
        .filter_map(|&(name, hook)| {
            let Symbol { address, size } = c_function(name)?;
            Some(Replacement { name, address, size, with: hook as usize })
        })
        .collect();
    let replace = |replacements: &[Replacement]| {
        Jumps::prepare(replacements).and_then(|mut jumps| jumps.write())
    };
    if replace(&replacements).is_err() {
        for replacement in replacements {
            let _ = replace(&[replacement]);
        }
    }
}

/// A jump to be written.
struct Write {
    address: usize,
    bytes: [u8; FAR],
    /// How many of `bytes` and `before` count.
    length: usize,
    /// The bytes that it replaces.
    before: [u8; FAR],
}

/// Jumps that are checked and ready to be written.
pub(crate) struct Jumps {
    writes: Vec<Write>,
}

impl Jumps {
    /// Checks the functions and makes the relays. Changes no code.
    pub(crate) fn prepare(replacements: &[Replacement]) -> Result<Jumps, Refusal> {
        let short = replacements.iter().find(|replacement| !replacement.has_room(FAR));
        let relays = short.and_then(|short| relays_near(short.address));
        let mut writes = Vec::with_capacity(replacements.len());
        for (index, replacement) in replacements.iter().enumerate() {
            let Replacement { name, address, with, .. } = *replacement;
            let (code, skip) = (replacement.code(), replacement.landing());
            let at = address + skip;
            // Without a relay, a function that has no room for a far jump is refused.
            let relay = relays.filter(|_| !replacement.has_room(FAR) && index < RELAYS);
            let relay = relay.map(|relays| relays + index * RELAY);
            let near = relay.and_then(|relay| near_jump(at, relay));
            let (bytes, length) = near.map_or((far_jump(with), FAR), |bytes| (bytes, NEAR));
            let old = code.get(skip..skip + length).ok_or(Refusal::Symbol(name))?;
            let mut before = [0; FAR];
            before.iter_mut().zip(old).for_each(|(to, from)| *to = *from);
            if let (Some(relay), Some(_)) = (relay, near) {
                // SAFETY: `relays_near` mapped a writable page that only this function
                // knows; `index < RELAYS`, so the relay lies within it.
                unsafe { (relay as *mut [u8; RELAY]).write(relay_bytes(with)) };
            }
            writes.push(Write { address: at, bytes, length, before });
        }
        if let Some(relays) = relays {
            protect(relays, PAGE, libc::PROT_READ | libc::PROT_EXEC).map_err(Refusal::Patch)?;
        }
        Ok(Jumps { writes })
    }

    /// Writes all of them, or leaves the code as it was.
    pub(crate) fn write(&mut self) -> Result<(), Refusal> {
        let starts = self.writes.iter().map(|write| write.address);
        let ends = self.writes.iter().map(|write| write.address + write.length);
        let (Some(start), Some(end)) = (starts.min(), ends.max()) else { return Ok(()) };
        let start = start & !(PAGE - 1);
        let length = end - start;
        let text = libc::PROT_READ | libc::PROT_EXEC;
        // Executable all the time: a security policy may deny making it so again.
        if protect(start, length, text | libc::PROT_WRITE).is_ok() {
            for write in &self.writes {
                // SAFETY: `protect` has made these pages writable, `prepare` has checked
                // that the function is that long, and no thread executes it.
                unsafe {
                    ptr::copy_nonoverlapping(
                        write.bytes.as_ptr(),
                        write.address as *mut u8,
                        write.length,
                    );
                }
            }
            // If this fails, the pages stay writable, and the program still runs.
            let _ = protect(start, length, text);
            return Ok(());
        }
        self.write_through_proc()
    }

    /// Writes through `/proc/self/mem`, which ignores the protection of pages, as
    /// debuggers do.
    fn write_through_proc(&self) -> Result<(), Refusal> {
        let refusal = |error: Error| Refusal::Patch(error.raw_os_error().unwrap_or(0));
        let memory =
            std::fs::OpenOptions::new().write(true).open("/proc/self/mem").map_err(refusal)?;
        for (index, write) in self.writes.iter().enumerate() {
            let bytes = write.bytes.get(..write.length).unwrap_or(&[]);
            if let Err(error) = memory.write_all_at(bytes, write.address as u64) {
                for written in self.writes.iter().take(index + 1) {
                    let before = written.before.get(..written.length).unwrap_or(&[]);
                    let _ = memory.write_all_at(before, written.address as u64);
                }
                return Err(refusal(error));
            }
        }
        Ok(())
    }
}

/// Whether a function begins with such a jump already: then another copy of this
/// library traces the program.
///
/// # Safety
/// `function` is the address of a function in mapped text, and at least 16 bytes can be
/// read there: a landing and a far jump. If it begins with a near jump, at least 12
/// bytes can be read at the target.
pub(crate) unsafe fn is_replaced(function: usize) -> bool {
    // SAFETY: used for the function, the function behind its landing, and the target of
    // a near jump, where this function requires that many bytes.
    let code = |at: usize| unsafe { (at as *const [u8; FAR]).read_unaligned() };
    let start = code(function);
    let at = if start.starts_with(&LANDING) { function + LANDING.len() } else { function };
    match code(at) {
        [0x48, 0xb8, _, _, _, _, _, _, _, _, 0xff, 0xe0] => true,
        [0xe9, a, b, c, d, ..] => {
            let distance = i32::from_le_bytes([a, b, c, d]) as usize;
            code((at + NEAR).wrapping_add(distance)).starts_with(&[0xff, 0x25, 0, 0, 0, 0])
        }
        _ => false,
    }
}

fn protect(start: usize, length: usize, protection: libc::c_int) -> Result<(), i32> {
    // SAFETY: the pages are text, which stays readable and executable, or the page of
    // relays, which nobody uses yet.
    let failed = unsafe { libc::mprotect(start as *mut c_void, length, protection) };
    if failed == 0 { Ok(()) } else { Err(Error::last_os_error().raw_os_error().unwrap_or(0)) }
}

/// Maps a writable page below the text. Above it the program's heap may grow.
fn relays_near(text: usize) -> Option<usize> {
    const STEP: usize = 1 << 20;
    const FARTHEST: usize = 1 << 30;
    let text = text & !(STEP - 1);
    let addresses = (STEP..FARTHEST).step_by(STEP).filter_map(|below| text.checked_sub(below));
    addresses.take_while(|&address| address >= PAGE).take(512).find(|&address| {
        // SAFETY: `MAP_FIXED_NOREPLACE` maps free addresses only.
        let page = unsafe {
            libc::mmap(
                address as *mut c_void,
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        if page != libc::MAP_FAILED && page as usize != address {
            // A kernel before 4.17 ignores the flag and may map another address.
            // SAFETY: the page was just mapped, and nobody knows it.
            unsafe { libc::munmap(page, PAGE) };
        }
        page as usize == address
    })
}

/// `None` if it is too far.
fn near_jump(from: usize, to: usize) -> Option<[u8; FAR]> {
    let distance = to.wrapping_sub(from + NEAR) as isize;
    let distance = i32::try_from(distance).ok()?.to_le_bytes();
    let mut bytes = [0; FAR];
    bytes[0] = 0xe9;
    bytes[1..NEAR].copy_from_slice(&distance);
    Some(bytes)
}

fn far_jump(to: usize) -> [u8; FAR] {
    let mut bytes = [0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0];
    bytes[2..10].copy_from_slice(&to.to_le_bytes());
    bytes
}

fn relay_bytes(to: usize) -> [u8; RELAY] {
    let mut bytes = [0xff, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xcc, 0xcc];
    bytes[6..14].copy_from_slice(&to.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests;
