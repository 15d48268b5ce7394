//! Jumps from the runtime's functions to ours.
//!
//! A jump of twelve bytes goes anywhere. One of five bytes reaches two gibibytes,
//! so where a function is shorter than twelve, the addresses of ours go into a
//! page near the text, with a jump through each.
//!
//! Before `main`, while no other thread runs the runtime's code.

use std::ffi::{CStr, c_void};
use std::io::Error;
use std::os::unix::fs::FileExt;
use std::ptr;

use super::refusal::Refusal;
use super::symbols::{Symbol, c_function};

/// What is to be replaced by what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replacement {
    pub(crate) name: &'static CStr,
    /// The runtime's function, and how many bytes it has.
    pub(crate) address: usize,
    pub(crate) size: usize,
    /// Ours.
    pub(crate) with: usize,
}

impl Replacement {
    /// The runtime's functions of these names by ours, in the same order.
    pub(crate) fn each<const N: usize>(
        names: [&'static CStr; N],
        functions: [Symbol; N],
        ours: [*const (); N],
    ) -> [Replacement; N] {
        std::array::from_fn(|index| {
            let Symbol { address, size } = functions[index];
            Replacement { name: names[index], address, size, with: ours[index] as usize }
        })
    }

    fn code(&self) -> &[u8] {
        // SAFETY: a function's code, at least so long as its size says, and
        // readable: the processor reads it too.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.size) }
    }

    /// How many bytes stay in front of the jump.
    fn landing(&self) -> usize {
        if self.code().starts_with(&LANDING) { LANDING.len() } else { 0 }
    }

    fn has_room(&self, jump: usize) -> bool {
        self.size >= self.landing() + jump
    }
}

/// `endbr64`: stays in front of the jump.
const LANDING: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// `jmp rel32`
const NEAR: usize = 5;
/// `mov $imm64, %rax; jmp *%rax`
const FAR: usize = 12;
/// `jmp *0(%rip)` and the address behind it, aligned.
const RELAY: usize = 16;

const PAGE: usize = 4096;

/// Replaces functions of the C library, those that can be: each is of use alone.
pub(crate) fn replace_in_c_library(functions: &[(&'static CStr, *const ())]) {
    let replacements: Vec<_> = functions
        .iter()
        .filter_map(|&(name, ours)| {
            let Symbol { address, size } = c_function(name)?;
            Some(Replacement { name, address, size, with: ours as usize })
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

/// Bytes to write somewhere in the text.
struct Write {
    address: usize,
    bytes: [u8; FAR],
    length: usize,
    /// What was there.
    before: [u8; FAR],
}

/// Jumps that are ready to be written.
pub(crate) struct Jumps {
    writes: Vec<Write>,
}

impl Jumps {
    /// Everything that can be refused is refused here, before the first write.
    pub(crate) fn prepare(replacements: &[Replacement]) -> Result<Jumps, Refusal> {
        let short = replacements.iter().find(|replacement| !replacement.has_room(FAR));
        let relays = short.and_then(|short| relays_near(short.address));
        let mut writes = Vec::with_capacity(replacements.len());
        for (index, replacement) in replacements.iter().enumerate() {
            let Replacement { name, address, with, .. } = *replacement;
            let (code, skip) = (replacement.code(), replacement.landing());
            let at = address + skip;
            let relay = relays.filter(|_| !replacement.has_room(FAR));
            let relay = relay.map(|relays| relays + index * RELAY);
            let near = relay.and_then(|relay| near_jump(at, relay));
            let (bytes, length) = near.map_or((far_jump(with), FAR), |bytes| (bytes, NEAR));
            let old = code.get(skip..skip + length).ok_or(Refusal::Symbol(name))?;
            let mut before = [0; FAR];
            before.iter_mut().zip(old).for_each(|(to, from)| *to = *from);
            if let (Some(relay), Some(_)) = (relay, near) {
                // SAFETY: within the page mapped above, which is still writable.
                unsafe { (relay as *mut [u8; RELAY]).write(relay_bytes(with)) };
            }
            writes.push(Write { address: at, bytes, length, before });
        }
        if let Some(relays) = relays {
            protect(relays, PAGE, libc::PROT_READ | libc::PROT_EXEC).map_err(Refusal::Patch)?;
        }
        Ok(Jumps { writes })
    }

    /// Writes them all, or leaves everything as it was.
    pub(crate) fn write(&mut self) -> Result<(), Refusal> {
        let starts = self.writes.iter().map(|write| write.address);
        let ends = self.writes.iter().map(|write| write.address + write.length);
        let (Some(start), Some(end)) = (starts.min(), ends.max()) else { return Ok(()) };
        let start = start & !(PAGE - 1);
        let length = end - start;
        let text = libc::PROT_READ | libc::PROT_EXEC;
        // Executable throughout: to get that right back later may be denied.
        if protect(start, length, text | libc::PROT_WRITE).is_ok() {
            for write in &self.writes {
                // SAFETY: writable now, and nobody executes it.
                unsafe {
                    ptr::copy_nonoverlapping(
                        write.bytes.as_ptr(),
                        write.address as *mut u8,
                        write.length,
                    );
                }
            }
            // Text that stays writable is a pity, not a defect.
            let _ = protect(start, length, text);
            return Ok(());
        }
        self.write_through_the_kernel()
    }

    /// The kernel writes where the pages deny it, as for debuggers.
    fn write_through_the_kernel(&self) -> Result<(), Refusal> {
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

/// Whether a function begins with such a jump already: another copy of this
/// library traces the program.
pub(crate) fn is_replaced(function: usize) -> bool {
    // SAFETY: the code of a function. None is shorter than the shortest of the
    // profiler's, which is as long as the far jump.
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

fn protect(start: usize, length: usize, how: libc::c_int) -> Result<(), i32> {
    // SAFETY: whole pages of text, or our own; they stay readable and
    // executable.
    let failed = unsafe { libc::mprotect(start as *mut c_void, length, how) };
    if failed == 0 { Ok(()) } else { Err(Error::last_os_error().raw_os_error().unwrap_or(0)) }
}

/// A writable page below the text: above it the heap may want to grow.
fn relays_near(text: usize) -> Option<usize> {
    const STEP: usize = 1 << 20;
    const FARTHEST: usize = 1 << 30;
    let text = text & !(STEP - 1);
    let places = (STEP..FARTHEST).step_by(STEP).filter_map(|below| text.checked_sub(below));
    places.take_while(|&place| place >= PAGE).take(512).find(|&place| {
        // SAFETY: takes free addresses only.
        let page = unsafe {
            libc::mmap(
                place as *mut c_void,
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        if page != libc::MAP_FAILED && page as usize != place {
            // A kernel that does not know the flag gave another place.
            // SAFETY: just mapped.
            unsafe { libc::munmap(page, PAGE) };
        }
        page as usize == place
    })
}

/// None if it is too far.
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
mod tests {
    use super::*;

    #[test]
    fn jumps_are_relative_to_their_end() {
        assert_eq!(near_jump(0x1000, 0x1005).unwrap()[..NEAR], [0xe9, 0, 0, 0, 0]);
        assert_eq!(near_jump(0x1000, 0xff0).unwrap()[1], 0xeb);
        assert!(near_jump(0x1000, 0x1_0000_0000).is_none());
    }

    extern "C" fn ours() -> i32 {
        42
    }

    /// A page with two functions, with and without a landing, that return 7.
    fn theirs() -> usize {
        // SAFETY: a fresh page.
        let page = unsafe {
            libc::mmap(
                ptr::null_mut(),
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        } as usize;
        let body = [0xb8, 7, 0, 0, 0, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90];
        for (offset, code) in [(0, &body[..]), (64, &LANDING), (68, &body[..])] {
            // SAFETY: within the page.
            unsafe {
                ptr::copy_nonoverlapping(code.as_ptr(), (page + offset) as *mut u8, code.len());
            };
        }
        protect(page, PAGE, libc::PROT_READ | libc::PROT_EXEC).unwrap();
        page
    }

    fn call(address: usize) -> i32 {
        // SAFETY: one of the two functions.
        let function: extern "C" fn() -> i32 = unsafe { std::mem::transmute(address) };
        function()
    }

    fn both(page: usize) -> [Replacement; 2] {
        let with = ours as *const () as usize;
        [
            Replacement { name: c"a", address: page, size: 12, with },
            Replacement { name: c"b", address: page + 64, size: 16, with },
        ]
    }

    #[test]
    fn a_jump_is_near_where_a_far_one_does_not_fit() {
        for short in [0, 1] {
            let page = theirs();
            let mut replacements = both(page);
            replacements[short].size -= 1;
            let mut jumps = Jumps::prepare(&replacements).unwrap();
            assert_eq!(jumps.writes[short].length, NEAR);
            assert_eq!(jumps.writes[1 - short].length, FAR);
            jumps.write().unwrap();
            assert_eq!((call(page), call(page + 64)), (42, 42));
            assert_eq!((is_replaced(page), is_replaced(page + 64)), (true, true));
        }
    }

    #[test]
    fn functions_are_replaced() {
        let page = theirs();
        let mut jumps = Jumps::prepare(&both(page)).unwrap();
        assert_eq!((call(page), call(page + 64)), (7, 7));
        assert_eq!((is_replaced(page), is_replaced(page + 64)), (false, false));
        jumps.write().unwrap();
        assert_eq!((call(page), call(page + 64)), (42, 42));
        assert_eq!((is_replaced(page), is_replaced(page + 64)), (true, true));
    }

    #[test]
    fn the_kernel_writes_where_pages_deny_it() {
        let page = theirs();
        Jumps::prepare(&both(page)).unwrap().write_through_the_kernel().unwrap();
        assert_eq!((call(page), call(page + 64)), (42, 42));
    }

    #[test]
    fn a_function_too_small_refuses_all() {
        let page = theirs();
        let mut replacements = both(page);
        replacements[1].size = 6;
        assert!(
            matches!(Jumps::prepare(&replacements), Err(Refusal::Symbol(name)) if name == c"b")
        );
        assert_eq!(call(page), 7);
    }
}
