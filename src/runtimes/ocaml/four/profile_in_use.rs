//! Whether the program takes a profile of its own, by `Gc.Memprof`.
//!
//! The runtime has that in a static variable, `started` (`runtime/memprof.c`, 4.14.1), which
//! `caml_memprof_stop` reads first: without a profile it raises. The address is in that
//! instruction.

use std::sync::atomic::{AtomicI32, Ordering};

use super::symbols::Runtime;
use crate::runtimes::attach::symbols::{Symbol, code_of};
use crate::sys::process_memory::read_word;

/// `started`, an `int`.
pub(super) struct InUse(&'static AtomicI32);

impl InUse {
    /// `None` if the variable is not found, or a profile is being taken now. Before the runtime
    /// starts, or under its lock.
    pub(super) fn find(runtime: &Runtime) -> Option<InUse> {
        let address = runtime.functions.caml_memprof_stop.address();
        // The shortest function that is replaced has this many bytes, and this one is longer.
        let code = code_of(Symbol { address, size: BYTES }, BYTES);
        let place = address.checked_add_signed(first_read(code)?)?;
        let is_zero = place % 4 == 0 && read_word(place).is_some_and(|word| word as u32 == 0);
        // SAFETY: memory that can be read, at the address from which the runtime reads an `int`.
        is_zero.then(|| InUse(unsafe { &*(place as *const AtomicI32) }))
    }

    /// Under the master lock.
    pub(super) fn is_in_use(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

/// How many bytes of the function are looked at.
const BYTES: usize = 48;

/// How far from the function's start the first number is that it reads by its distance from the
/// instruction: `mov disp32(%rip), %eax`, or `cmpl $0, disp32(%rip)`.
fn first_read(code: &[u8]) -> Option<isize> {
    code.windows(7).enumerate().find_map(|(at, bytes)| {
        let (distance_at, length) = match bytes {
            [0x8b, 0x05, ..] => (2, 6),
            [0x83, 0x3d, _, _, _, _, 0] => (2, 7),
            _ => return None,
        };
        let distance = bytes.get(distance_at..distance_at + 4)?;
        let distance = i32::from_le_bytes(distance.try_into().ok()?);
        Some((at + length) as isize + distance as isize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_that_of_the_first_read() {
        // sub $8,%rsp; mov 0x100(%rip),%eax; test %eax,%eax
        let moved = [0x48, 0x83, 0xec, 8, 0x8b, 0x05, 0, 1, 0, 0, 0x85, 0xc0];
        assert_eq!(first_read(&moved), Some(10 + 0x100));
        // push %rbp; cmpl $0,-0x10(%rip)
        let compared = [0x55, 0x83, 0x3d, 0xf0, 0xff, 0xff, 0xff, 0, 0x74, 0x10];
        assert_eq!(first_read(&compared), Some(8 - 0x10));
        assert_eq!(first_read(&[0x90; BYTES]), None);
    }
}
