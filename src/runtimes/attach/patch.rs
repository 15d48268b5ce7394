//! Jumps from the runtime's functions to hooks.
//!
//! A far jump takes twelve bytes and reaches any address. A near jump takes five
//! and reaches two gibibytes. Where a function has no room for a far jump, a near
//! one leads to a relay: a far jump in a page that is mapped near the text
//! (`near_page`).
//!
//! A hook that calls the function it replaces has an [`Original`]: the instructions that the
//! jump displaces, in that page, and a jump to those behind them (`instructions`). It is
//! callable whether the jump is there or not. Such a function has a near jump where there is a
//! page for it, which displaces the least. If its first instructions cannot be executed
//! elsewhere, it is refused.
//!
//! Either all functions are replaced or none. [`Jumps::remove`] makes the code what it was, byte
//! for byte; the page stays, since a thread may be in it. Everything that can fail is checked by
//! [`Jumps::prepare`], except for the writing itself, which is undone if it fails halfway.
//!
//! While jumps are written or removed, no thread may be running the bytes that change: before
//! `main`, before the runtime has a heap, or while it stands still elsewhere. Nor may one return to
//! them: a function calls others behind its first twelve bytes only.

use std::ffi::CStr;
use std::io::Error;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::refusal::Refusal;
use super::symbols::{Symbol, c_function};
use crate::sys::instruction_sync;

mod instructions;
mod near_page;

use near_page::{NearPage, PAGE, protect};

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
    /// Where the hook finds the function, if it calls it: the place of an [`Original`].
    pub(crate) original: Option<&'static AtomicUsize>,
}

/// A function that is replaced, as its hook calls it. `F` is a function pointer.
pub(crate) struct Original<F> {
    /// Its address; 0 before [`Jumps::prepare`].
    address: AtomicUsize,
    pointer: PhantomData<fn() -> F>,
}

impl<F: Copy> Original<F> {
    pub(crate) const fn new() -> Self {
        const { assert!(size_of::<F>() == size_of::<usize>(), "not a function pointer") };
        Original { address: AtomicUsize::new(0), pointer: PhantomData }
    }

    /// For [`Replacement::original`].
    pub(crate) fn place(&'static self) -> &'static AtomicUsize {
        &self.address
    }

    /// The function. `None` before the jump is prepared.
    ///
    /// # Safety
    /// `F` is the type of the function whose replacement has this place.
    #[inline]
    pub(crate) unsafe fn get(&self) -> Option<F> {
        let address = self.address.load(Ordering::Relaxed);
        // SAFETY: of the same size; by the contract, and since the page near the text is never
        // unmapped, a function of this type.
        (address != 0).then(|| unsafe { std::mem::transmute_copy::<usize, F>(&address) })
    }
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

    /// Whether its jump is a near one, if there is a page for that.
    fn is_near(&self) -> bool {
        self.original.is_some() || self.size < self.landing() + FAR
    }
}

/// `endbr64`, which must stay the target of indirect calls.
const LANDING: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// The length of `jmp rel32`.
const NEAR: usize = 5;
/// The length of `mov $imm64, %rax; jmp *%rax`.
const FAR: usize = 12;
/// A function of the C library, replaced by a hook; `None` if there is none whose size is known.
pub(crate) fn in_c_library(
    name: &'static CStr,
    hook: *const (),
    original: Option<&'static AtomicUsize>,
) -> Option<Replacement> {
    let Symbol { address, size } = c_function(name)?;
    Some(Replacement { name, address, size, with: hook as usize, original })
}

/// Replaces those of these functions that can be replaced. Unlike a runtime's, each is useful
/// without the others.
pub(crate) fn replace_each(replacements: &[Replacement]) {
    let replace =
        |replacements: &[Replacement]| Jumps::prepare(replacements).and_then(|jumps| jumps.write());
    if replace(replacements).is_err() {
        for replacement in replacements {
            let _ = replace(&[*replacement]);
        }
    }
}

/// A jump to be written.
struct Write {
    name: &'static CStr,
    address: usize,
    bytes: [u8; FAR],
    /// How many of `bytes` and `before` count.
    length: usize,
    /// The bytes that it replaces.
    before: [u8; FAR],
}

/// What is written.
#[derive(Clone, Copy)]
enum Side {
    Jump,
    Before,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Jump => Side::Before,
            Side::Before => Side::Jump,
        }
    }
}

impl Write {
    fn side(&self, side: Side) -> &[u8] {
        let bytes = match side {
            Side::Jump => &self.bytes,
            Side::Before => &self.before,
        };
        bytes.get(..self.length).unwrap_or(&[])
    }

    /// Whether this is what the code is now.
    fn is(&self, side: Side) -> bool {
        let expected = self.side(side);
        // SAFETY: `prepare` has checked that the function is that long; its code stays mapped and
        // readable.
        let now = unsafe { std::slice::from_raw_parts(self.address as *const u8, expected.len()) };
        now == expected
    }
}

/// Jumps that are checked and ready to be written.
pub(crate) struct Jumps {
    writes: Vec<Write>,
}

impl Jumps {
    /// Checks the functions, and makes relays and originals. Changes no code.
    pub(crate) fn prepare(replacements: &[Replacement]) -> Result<Jumps, Refusal> {
        let near = replacements.iter().find(|replacement| replacement.is_near());
        let map = |near: &Replacement| NearPage::map(near.address).or_else(NearPage::map_anywhere);
        Jumps::prepare_with(replacements, near.and_then(map))
    }

    /// The same, with this page for relays and originals.
    fn prepare_with(
        replacements: &[Replacement],
        page: Option<NearPage>,
    ) -> Result<Jumps, Refusal> {
        let mut writes = Vec::with_capacity(replacements.len());
        let mut originals = Vec::new();
        for (index, replacement) in replacements.iter().enumerate() {
            let Replacement { name, address, with, original, .. } = *replacement;
            let code = replacement.code().get(replacement.landing()..).unwrap_or(&[]);
            let at = address + replacement.landing();
            let slot = page.filter(|_| replacement.is_near());
            let slot = slot.and_then(|page| Some((page, page.slot(index)?)));
            let near = slot.and_then(|(_, slot)| near_jump(at, slot));
            // Without a relay, a function that has no room for a far jump is refused.
            let (bytes, length) = near.map_or((far_jump(with), FAR), |bytes| (bytes, NEAR));
            let old = code.get(..length).ok_or(Refusal::Symbol(name))?;
            let mut before = [0; FAR];
            before.iter_mut().zip(old).for_each(|(to, from)| *to = *from);
            if let Some((page, slot)) = slot {
                page.put_relay(slot, with);
            }
            if let Some(place) = original {
                let made = |(page, slot): (NearPage, _)| page.put_original(slot, code, at, length);
                originals.push((place, slot.and_then(made).ok_or(Refusal::Original(name))?));
            }
            writes.push(Write { name, address: at, bytes, length, before });
        }
        page.map_or(Ok(()), NearPage::finish).map_err(Refusal::Patch)?;
        for (place, address) in originals {
            place.store(address, Ordering::Relaxed);
        }
        Ok(Jumps { writes })
    }

    /// Writes all of them, or leaves the code as it was.
    pub(crate) fn write(&self) -> Result<(), Refusal> {
        self.put(Side::Jump)
    }

    /// Makes the code what it was before [`Jumps::write`], or leaves the jumps.
    pub(crate) fn remove(&self) -> Result<(), Refusal> {
        self.put(Side::Before)
    }

    /// Writes one side over the other. If something else is there, somebody has replaced these
    /// functions too, and nothing is written.
    fn put(&self, side: Side) -> Result<(), Refusal> {
        let other = side.other();
        if let Some(changed) = self.writes.iter().find(|write| !write.is(other)) {
            return Err(Refusal::Replaced(changed.name));
        }
        self.put_over(side)?;
        instruction_sync::synchronise();
        Ok(())
    }

    fn put_over(&self, side: Side) -> Result<(), Refusal> {
        let starts = self.writes.iter().map(|write| write.address);
        let ends = self.writes.iter().map(|write| write.address + write.length);
        let (Some(start), Some(end)) = (starts.min(), ends.max()) else { return Ok(()) };
        let start = start & !(PAGE - 1);
        let length = end - start;
        let text = libc::PROT_READ | libc::PROT_EXEC;
        // Executable all the time: a security policy may deny making it so again.
        if protect(start, length, text | libc::PROT_WRITE).is_ok() {
            for write in &self.writes {
                let (bytes, to) = (write.side(side), write.address as *mut u8);
                // SAFETY: `protect` has made these pages writable, `prepare` has checked
                // that the function is that long, and no thread executes it.
                unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
            }
            // If this fails, the pages stay writable, and the program still runs.
            let _ = protect(start, length, text);
            return Ok(());
        }
        self.put_through_proc(side)
    }

    /// Writes through `/proc/self/mem`, which ignores the protection of pages, as
    /// debuggers do.
    fn put_through_proc(&self, side: Side) -> Result<(), Refusal> {
        let refusal = |error: Error| Refusal::Patch(error.raw_os_error().unwrap_or(0));
        let memory =
            std::fs::OpenOptions::new().write(true).open("/proc/self/mem").map_err(refusal)?;
        let other = side.other();
        let put = |write: &Write, side| memory.write_all_at(write.side(side), write.address as u64);
        for (index, write) in self.writes.iter().enumerate() {
            if let Err(error) = put(write, side) {
                for written in self.writes.iter().take(index + 1) {
                    let _ = put(written, other);
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

#[cfg(test)]
mod tests;
